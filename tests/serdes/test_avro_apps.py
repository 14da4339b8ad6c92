"""Applications whose topics hold Avro: in the test driver, and natively over the embedded log."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.errors import ConfigError, RegistryError, SerdeError
from kstreams.kernel.murmur2 import partition_of
from kstreams.log.schema_registries import registry_of
from kstreams.schemas import Schema
from kstreams.testing import TopologyTestDriver
from tests.native.world import World
from tests.support.avro_schemas import by_fastavro


@dataclasses.dataclass(frozen=True)
class CustomerId:
    region: str
    number: int


@dataclasses.dataclass(frozen=True)
class Order:
    id: int
    customer: str
    amount: float
    note: str | None = None


@dataclasses.dataclass(frozen=True)
class Total:
    customer: CustomerId
    amount: float


Serde = Callable[[Any, str], Any]


def totals() -> ks.Topology:
    """Orders by customer, as a table of totals whose keys are records."""
    builder = ks.StreamsBuilder()
    orders = builder.stream("orders", key=str, value=ks.Avro(Order))
    by_customer = orders.group_by(
        lambda _, order: CustomerId(order.customer[:2], order.id % 3), key=ks.Avro(CustomerId)
    )
    sums = by_customer.aggregate(
        lambda: 0.0, lambda key, order, total: total + order.amount, value=float, materialized="totals"
    )
    sums.to_stream().map_values(Total, with_key=True).to("totals", key=ks.Avro(CustomerId), value=ks.Avro(Total))
    return builder.build()


ORDERS = [Order(n, f"{'de' if n % 2 else 'fr'}-{n % 5}", n / 4, None if n % 3 else "x") for n in range(60)]


def expected_totals() -> dict[CustomerId, float]:
    sums: dict[CustomerId, float] = {}
    for order in ORDERS:
        key = CustomerId(order.customer[:2], order.id % 3)
        sums[key] = sums.get(key, 0.0) + order.amount
    return sums


def test_an_application_in_the_driver(tmp_path: Path) -> None:
    settings = {"schema.registry.url": "local:", "log.dir": tmp_path / "log"}
    with TopologyTestDriver(totals(), settings) as driver:
        driver.create_input_topic("orders", key=str, value=ks.Avro(Order)).pipe_values(ORDERS)
        out = driver.create_output_topic("totals", key=ks.Avro(CustomerId), value=ks.Avro(Total))
        by_customer = out.read_key_values_to_map()
        assert driver.get_key_value_store("totals").get(CustomerId("fr", 0)) == expected_totals()[CustomerId("fr", 0)]
    assert by_customer == {key: Total(key, amount) for key, amount in expected_totals().items()}


def test_an_application_over_the_embedded_log(world: World, bound: Any) -> None:
    world.create("orders", 2)
    world.create("totals", 3)
    write = bound(ks.Avro(Order), "orders").serialize
    world.write("orders", [(str(order.id), write(order), order.id) for order in ORDERS])
    world.run(totals())
    keys, values = bound(ks.Avro(CustomerId), "totals", True), bound(ks.Avro(Total), "totals")
    assert world.table("totals", keys, values) == {key: Total(key, sum_) for key, sum_ in expected_totals().items()}
    for number, rows in enumerate(world.partitions("totals", bytes, bytes)):
        assert all(partition_of(row.key, 3) == number for row in rows)


def test_state_is_found_again_after_a_restart(world: World, bound: Any) -> None:
    for topic in ("orders", "totals"):
        world.create(topic)
    write = bound(ks.Avro(Order), "orders").serialize
    for part in (ORDERS[:30], ORDERS[30:]):
        world.write("orders", [(str(order.id), write(order), order.id) for order in part])
        world.run(totals(), once=True)
    keys, values = bound(ks.Avro(CustomerId), "totals", True), bound(ks.Avro(Total), "totals")
    assert world.table("totals", keys, values) == {key: Total(key, sum_) for key, sum_ in expected_totals().items()}


def test_keys_lie_where_a_producer_of_java_puts_them(world: World, bound: Any) -> None:
    """murmur2 over the frame and the bytes that Avro says: those that fastavro writes."""
    world.create("ids", 7)
    world.create("by-id", 7)
    builder = ks.StreamsBuilder()
    ids = builder.stream("ids", key=str, value=int)
    ids.select_key(lambda key, number: CustomerId(key[:3], number), key=ks.Avro(CustomerId)).to(
        "by-id", key=ks.Avro(CustomerId), value=int
    )
    world.write("ids", [(f"{n * 7919 % 1000:03}", n.to_bytes(8, "big"), n) for n in range(1000)])
    world.run(builder.build())
    with _closing(world) as registry:
        registered = registry.version("by-id-key")
    schema = json.loads(registered.schema.text)
    seen = 0
    for number, rows in enumerate(world.partitions("by-id", bytes, int)):
        for row in rows:
            key = {"region": f"{row.value * 7919 % 1000:03}", "number": row.value}
            data = b"\x00" + registered.id.to_bytes(4, "big") + by_fastavro(schema, key)
            assert row.key == data
            assert partition_of(data, 7) == number
            seen += 1
    assert seen == 1000


def _closing(world: World) -> Any:
    return closing(registry_of(Config.of(world.settings)))


V1: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "customer", "type": "string"},
        {"name": "amount", "type": "float"},
    ],
}
V2: dict[str, Any] = {
    **V1,
    "fields": [
        *V1["fields"],
        {"name": "coupon", "type": ["null", "string"]},
        {"name": "note", "type": "string", "default": ""},
    ],
}


def test_three_versions_in_one_topic(world: World, bound: Any) -> None:
    world.create("orders")
    world.create("notes")
    with _closing(world) as registry:
        registry.set_compatibility("NONE")
        first = registry.register("orders-value", Schema(json.dumps(V1))).id
        second = registry.register("orders-value", Schema(json.dumps(V2))).id
    rows: list[tuple[str, bytes, int]] = []
    third = bound(ks.Avro(Order), "orders").serialize
    for n in range(300):
        order = {"id": n, "customer": "c", "amount": n / 2, "coupon": None, "note": f"note {n}"}
        old = {name: order[name] for name in ("id", "customer", "amount")}
        data = (
            b"\x00" + first.to_bytes(4, "big") + by_fastavro(V1, old),
            b"\x00" + second.to_bytes(4, "big") + by_fastavro(V2, order),
            third(Order(n, "c", n / 2, f"note {n}")),
        )[n % 3]
        rows.append(("k", data, n))
    world.write("orders", rows)
    builder = ks.StreamsBuilder()
    orders = builder.stream("orders", key=str, value=ks.Avro(Order))
    orders.filter(ks.col("amount") >= 0.0).to("notes", key=str, value=ks.Avro(Order))
    world.run(builder.build())
    read = [row.value for row in world.rows("notes", str, bound(ks.Avro(Order), "notes"))]
    assert read == [Order(n, "c", n / 2, None if n % 3 == 0 else f"note {n}") for n in range(300)]


def test_a_record_that_does_not_decode_names_its_place(world: World, bound: Any) -> None:
    for topic in ("orders", "out", "letters"):
        world.create(topic)
    write = bound(ks.Avro(Order), "orders").serialize
    good, bad = write(ORDERS[0]), write(ORDERS[1])[:-2]
    world.write("orders", [("a", good, 0), ("b", bad, 1), ("c", good, 2)])
    builder = ks.StreamsBuilder()
    builder.stream("orders", key=str, value=ks.Avro(Order)).to("out", key=str, value=ks.Avro(Order))
    with pytest.raises(SerdeError, match=r"value of orders-0@1 with Avro\(Order\): .*field amount"):
        world.run(builder.build())
    world.run(
        builder.build(),
        deserialization_exception_handler="continue",
        errors_dead_letter_queue_topic_name="letters",
    )
    assert [row.key for row in world.rows("out", str, bytes)] == ["a", "c"]
    assert [row.value for row in world.rows("letters", bytes, bytes)] == [bad]


def test_a_registry_that_does_not_answer_costs_no_record(world: World) -> None:
    """A handler may skip records that do not decode: a registry that is away says nothing about any."""
    for topic in ("orders", "out"):
        world.create(topic)
    world.write("orders", [("a", b"\x00\x00\x00\x00\x01\x02\x02c" + bytes(9), 0)])
    builder = ks.StreamsBuilder()
    builder.stream("orders", key=str, value=ks.Avro(Order)).to("out", key=str, value=ks.Avro(Order))
    away: dict[str, Any] = {
        "schema.registry.url": "http://127.0.0.1:9",
        "schema.registry.max.retries": 0,
        "task.timeout.ms": 0,
        "deserialization.exception.handler": "continue",
    }
    with pytest.raises(RegistryError, match=r"127\.0\.0\.1:9"):
        world.run(builder.build(), **away)
    assert world.rows("out", bytes, bytes) == []


def test_a_guid_in_a_header_comes_back_from_the_log(world: World, bound: Any) -> None:
    for topic in ("orders", "middle", "out"):
        world.create(topic)
    write = bound(ks.Avro(Order), "orders").serialize
    world.write("orders", [(str(order.id), write(order), order.id) for order in ORDERS])
    builder = ks.StreamsBuilder()
    in_header = ks.Avro(Order, schema_id="header")
    orders = builder.stream("orders", key=str, value=ks.Avro(Order))
    orders.to("middle", key=str, value=in_header)
    world.run(builder.build())
    builder = ks.StreamsBuilder()
    table = builder.table("middle", key=str, value=ks.Avro(Order), materialized="orders")
    table.to_stream().map_values(lambda order: order.id, value=int).to("out", key=str, value=int)
    world.run(builder.build({"topology.optimization": "all"}), application_id="second")
    assert sorted(row.value for row in world.rows("out", str, int)) == list(range(60))
    bare = [row.value[:1] for row in world.rows("middle", str, bytes)]
    assert bare != [b"\x00"] * 60


def test_without_a_registry_an_application_does_not_start(tmp_path: Path) -> None:
    world = World(tmp_path)
    builder = ks.StreamsBuilder()
    builder.stream("orders", key=str, value=ks.Avro(Order)).to("out", key=str, value=ks.Avro(Order))
    with pytest.raises(ConfigError, match=r"topic orders .* schema\.registry\.url"):
        world.run(builder.build())


def test_expressions_read_fields_of_records_with_their_schema_in_a_header(world: World, bound: Any) -> None:
    for topic in ("orders", "middle", "out"):
        world.create(topic)
    write = bound(ks.Avro(Order), "orders").serialize
    rows: list[tuple[str, bytes | None, int]] = [(str(order.id), write(order), order.id) for order in ORDERS]
    world.write("orders", [*rows, ("gone", None, 60)])
    builder = ks.StreamsBuilder()
    orders = builder.stream("orders", key=str, value=ks.Avro(Order))
    orders.to("middle", key=str, value=ks.Avro(Order, schema_id="header"))
    world.run(builder.build())
    builder = ks.StreamsBuilder()
    orders = builder.stream("middle", key=str, value=ks.Avro(Order))
    large = orders.filter(ks.col("amount") > 10.0).map_values(ks.struct(id=ks.col("id"), note=ks.col("note")))
    large.to("out")
    for application, least in (("columns", 1), ("rows", 10**9)):
        world.run(builder.build(), application_id=application, columns_min_rows=least)
    expected = [{"id": order.id, "note": order.note} for order in ORDERS if order.amount > 10.0]
    assert [row.value for row in world.rows("out", str, dict)] == expected * 2


@dataclasses.dataclass(frozen=True)
class Customer:
    name: str


@dataclasses.dataclass(frozen=True)
class Sale:
    customer: CustomerId
    amount: float


SALES = [Sale(CustomerId("de" if n % 2 else "fr", n % 3), n / 2) for n in range(30)]
CUSTOMERS = {CustomerId(region, n): Customer(f"{region} {n}") for region in ("de", "fr") for n in range(3)}


def joined(kind: str) -> ks.Topology:
    """Sales with the names of their customers, by a global table, a foreign key, or a repartition."""
    builder = ks.StreamsBuilder()
    keys, customers = ks.Avro(CustomerId), ks.Avro(Customer)

    def named(sale: Sale, customer: Customer) -> str:
        return f"{customer.name}: {sale.amount}"

    if kind == "global":
        table = builder.global_table("customers", key=keys, value=customers)
        sales = builder.stream("sales", key=str, value=ks.Avro(Sale))
        sales.join(table, named, key_selector=lambda _, sale: sale.customer, value=str).to("named")
    elif kind == "foreign key":
        sold = builder.table("sales", key=str, value=ks.Avro(Sale))
        table_of_customers = builder.table("customers", key=keys, value=customers)
        names = sold.join(table_of_customers, named, foreign_key=lambda sale: sale.customer, value=str)
        names.to_stream().to("named")
    else:
        sales = builder.stream("sales", key=str, value=ks.Avro(Sale))
        by_customer = sales.select_key(lambda _, sale: sale.customer, key=keys)
        by_customer.join(builder.table("customers", key=keys, value=customers), named, value=str).to("named", key=keys)
    return builder.build()


@pytest.mark.parametrize("kind", ["global", "foreign key", "repartition"])
def test_joins_by_keys_that_are_records(kind: str, world: World, bound: Any) -> None:
    for topic in ("customers", "sales", "named"):
        world.create(topic, 3)
    keys, customers = bound(ks.Avro(CustomerId), "customers", True), bound(ks.Avro(Customer), "customers")
    rows = [(keys.serialize(key), customers.serialize(customer), 1) for key, customer in CUSTOMERS.items()]
    world.write("customers", rows)
    write = bound(ks.Avro(Sale), "sales").serialize
    world.write("sales", [(f"{n:02}", write(sale), 100 + n) for n, sale in enumerate(SALES)])
    world.run(joined(kind))
    named = [row.value for row in world.rows("named", bytes, str)]
    assert sorted(named) == sorted(f"{CUSTOMERS[sale.customer].name}: {sale.amount}" for sale in SALES)
