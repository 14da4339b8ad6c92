"""A foreign-key join over several partitions: sub-topologies that feed each other in a circle, in runs that end."""

from __future__ import annotations

import pytest

import kstreams as ks
from tests.native.world import World

ROWS, PARTNERS = 300, 7


def topology(kind: str = "join") -> ks.Topology:
    """Orders with the price of their product, which each order's value names."""
    builder = ks.StreamsBuilder()
    orders, prices = (builder.table(topic, key=str, value=str) for topic in ("orders", "prices"))
    join = getattr(orders, kind)
    priced = join(
        prices, lambda order, price: f"{order}@{price}", foreign_key=product, value=str, materialized="priced"
    )
    priced.to_stream().to("out")
    return builder.build()


def product(order: str) -> str:
    return order.split(":", maxsplit=1)[0]


def orders(step: int) -> list[tuple[str, str, int]]:
    return [(f"o{i}", f"p{(i * step) % (PARTNERS + 1)}:{i}", i) for i in range(ROWS)]


def prices(factor: int) -> list[tuple[str, str, int]]:
    return [(f"p{i}", str(i * factor), i) for i in range(PARTNERS)]


def expected(step: int, factor: int, kind: str = "join") -> dict[str, str]:
    known = {key: value for key, value, _ in prices(factor)}
    found = {key: (order, known.get(product(order))) for key, order, _ in orders(step)}
    return {key: f"{order}@{price}" for key, (order, price) in found.items() if kind == "left_join" or price}


@pytest.fixture
def shop(world: World) -> World:
    world.create("orders", 3)
    world.create("prices", 2)
    world.create("out", 3)
    world.write("orders", orders(1))
    world.write("prices", prices(10))
    return world


@pytest.mark.parametrize("kind", ["join", "left_join"])
@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_a_bounded_run_ends_with_every_row_joined(shop: World, kind: str, guarantee: str) -> None:
    shop.run(topology(kind), num_stream_threads=2, processing_guarantee=guarantee)
    assert shop.table("out") == expected(1, 10, kind)
    assert {"app-KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000006-topic"} <= set(shop.topics())


def test_the_next_run_takes_back_what_changed(shop: World) -> None:
    shop.run(topology(), once=True)
    shop.write("orders", orders(2))
    shop.write("prices", prices(100))
    shop.run(topology(), once=True, num_stream_threads=2)
    assert shop.table("out") == expected(2, 100)


def test_subscriptions_survive_the_loss_of_the_state(shop: World) -> None:
    shop.run(topology())
    shop.write("prices", prices(100))
    shop.run(topology(), state_dir=shop.folder / "another")
    assert shop.table("out") == expected(1, 100)


def test_answers_go_to_the_partition_that_asked_however_the_left_table_is_partitioned(world: World) -> None:
    world.create("orders", 3)
    world.create("prices", 2)
    world.create("out", 3)
    for key, value, timestamp in orders(1)[:30]:
        world.write("orders", [(key, value, timestamp)], partition=int(key[1:]) % 3)
    world.write("prices", prices(10))
    world.run(topology())
    known = expected(1, 10)
    assert world.table("out") == {f"o{i}": known[f"o{i}"] for i in range(30) if f"o{i}" in known}


@pytest.mark.parametrize("cache_bytes", [0, 1_000_000], ids=["uncached", "cached"])
@pytest.mark.parametrize("kind", ["join", "left_join"])
def test_rows_that_change_before_their_answers_come_leave_no_result_behind(
    world: World, kind: str, cache_bytes: int
) -> None:
    """Every order has a price, is deleted or changed, and then names a product that has none."""
    world.create("orders", 2)
    world.create("prices", 2)
    world.create("out", 2)
    world.write("prices", prices(10))
    missing = [(f"o{i}", f"none:{i}", ROWS + i) for i in range(0, ROWS, 2)]
    world.write("orders", orders(1))
    world.write("orders", [(key, None if i % 2 else "none:0", at) for i, (key, _, at) in enumerate(missing)])
    world.write("orders", missing)
    world.run(topology(kind), max_poll_records=17, statestore_cache_max_bytes=cache_bytes)
    kept = {key: value for key, value in expected(1, 10, kind).items() if int(key[1:]) % 2}
    found = {key: f"{order}@None" for key, order, _ in missing} if kind == "left_join" else {}
    assert world.table("out") == kept | found
