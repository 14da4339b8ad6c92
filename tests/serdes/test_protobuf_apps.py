"""Applications whose topics hold Protobuf: in the test driver, and natively over the embedded log."""

from __future__ import annotations

import pickle
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.errors import SerdeError
from kstreams.kernel.murmur2 import partition_of
from kstreams.log.schema_registries import registry_of
from kstreams.schemas import Schema
from kstreams.testing import TopologyTestDriver
from tests.native.world import World
from tests.support.schema_serdes import message_class


@dataclass(frozen=True)
class CustomerId:
    region: str
    number: int


@dataclass(frozen=True)
class Order:
    id: int
    customer: str
    amount: float
    note: str | None = None


@dataclass(frozen=True)
class Total:
    customer: CustomerId
    amount: float


@dataclass(frozen=True)
class NamedOrder:
    order: Order
    name: str | None


def totals() -> ks.Topology:
    """Orders by customer, as a table of totals whose keys are messages."""
    builder = ks.StreamsBuilder()
    orders = builder.stream("orders", key=str, value=ks.Protobuf(Order))
    by_customer = orders.group_by(
        lambda _, order: CustomerId(order.customer[:2], order.id % 3), key=ks.Protobuf(CustomerId)
    )
    sums = by_customer.aggregate(
        lambda: Total(CustomerId("", 0), 0.0),
        lambda key, order, total: Total(key, total.amount + order.amount),
        value=ks.Protobuf(Total),
        materialized="totals",
    )
    sums.to_stream().to("totals")
    return builder.build()


ORDERS = [Order(n, f"{'de' if n % 2 else 'fr'}-{n % 5}", n / 4, None if n % 3 else "x") for n in range(60)]


def expected_totals() -> dict[CustomerId, Total]:
    sums: dict[CustomerId, float] = {}
    for order in ORDERS:
        key = CustomerId(order.customer[:2], order.id % 3)
        sums[key] = sums.get(key, 0.0) + order.amount
    return {key: Total(key, amount) for key, amount in sums.items()}


def test_an_application_in_the_driver(tmp_path: Path) -> None:
    settings = {"schema.registry.url": "local:", "log.dir": tmp_path / "log"}
    with TopologyTestDriver(totals(), settings) as driver:
        driver.create_input_topic("orders", key=str, value=ks.Protobuf(Order)).pipe_values(ORDERS)
        out = driver.create_output_topic("totals", key=ks.Protobuf(CustomerId), value=ks.Protobuf(Total))
        assert out.read_key_values_to_map() == expected_totals()
        assert driver.get_key_value_store("totals").get(CustomerId("fr", 0)) == expected_totals()[CustomerId("fr", 0)]


def test_an_application_over_the_embedded_log(world: World, bound: Any) -> None:
    world.create("orders", 2)
    world.create("totals", 3)
    write = bound(ks.Protobuf(Order), "orders").serialize
    world.write("orders", [(str(order.id), write(order), order.id) for order in ORDERS])
    world.run(totals())
    keys, values = bound(ks.Protobuf(CustomerId), "totals", True), bound(ks.Protobuf(Total), "totals")
    assert world.table("totals", keys, values) == expected_totals()
    for number, rows in enumerate(world.partitions("totals", bytes, bytes)):
        assert all(partition_of(row.key, 3) == number for row in rows)


def test_state_is_found_again_after_a_restart(world: World, bound: Any) -> None:
    for topic in ("orders", "totals"):
        world.create(topic)
    write = bound(ks.Protobuf(Order), "orders").serialize
    for part in (ORDERS[:30], ORDERS[30:]):
        world.write("orders", [(str(order.id), write(order), order.id) for order in part])
        world.run(totals(), once=True)
    keys, values = bound(ks.Protobuf(CustomerId), "totals", True), bound(ks.Protobuf(Total), "totals")
    assert world.table("totals", keys, values) == expected_totals()


def test_keys_lie_where_a_producer_of_java_puts_them(world: World, bound: Any) -> None:
    """murmur2 over the frame, the index and the bytes that protobuf itself gives."""
    world.create("ids", 7)
    world.create("by-id", 7)
    builder = ks.StreamsBuilder()
    ids = builder.stream("ids", key=str, value=int)
    ids.select_key(lambda key, number: CustomerId(key[:3], number), key=ks.Protobuf(CustomerId)).to(
        "by-id", key=ks.Protobuf(CustomerId), value=int
    )
    world.write("ids", [(f"{n * 7919 % 1000:03}", n.to_bytes(8, "big"), n) for n in range(1000)])
    world.run(builder.build())
    with closing(registry_of(Config.of(world.settings))) as registry:
        registered = registry.version("by-id-key")
    message = message_class(registered.schema, "CustomerId")
    seen = 0
    for number, rows in enumerate(world.partitions("by-id", bytes, int)):
        for row in rows:
            key = message(region=f"{row.value * 7919 % 1000:03}", number=row.value)
            data = b"\x00" + registered.id.to_bytes(4, "big") + b"\x00" + key.SerializeToString()
            assert row.key == data
            assert partition_of(data, 7) == number
            seen += 1
    assert seen == 1000


def test_a_join_of_topics_by_message_keys(world: World, bound: Any) -> None:
    for topic in ("orders-by-id", "names", "named"):
        world.create(topic, 3)
    builder = ks.StreamsBuilder()
    names = builder.table("names", key=ks.Protobuf(CustomerId), value=str)
    orders = builder.stream("orders-by-id", key=ks.Protobuf(CustomerId), value=ks.Protobuf(Order))
    orders.left_join(names, NamedOrder, value=ks.Protobuf(NamedOrder)).to("named")
    key_of_names = bound(ks.Protobuf(CustomerId), "names", True).serialize
    key_of_orders = bound(ks.Protobuf(CustomerId), "orders-by-id", True).serialize
    write = bound(ks.Protobuf(Order), "orders-by-id").serialize
    ids = [CustomerId("de", n) for n in range(20)]
    world.write("names", [(key_of_names(each), f"n{each.number}".encode(), 0) for each in ids[::2]])
    world.write("orders-by-id", [(key_of_orders(each), write(Order(each.number, "c", 1.0)), 1) for each in ids])
    world.run(builder.build())
    keys, values = bound(ks.Protobuf(CustomerId), "named", True), bound(ks.Protobuf(NamedOrder), "named")
    assert world.table("named", keys, values) == {
        each: NamedOrder(Order(each.number, "c", 1.0), None if each.number % 2 else f"n{each.number}") for each in ids
    }


V1 = 'syntax = "proto3"; message Order { int32 id = 1; string customer = 2; float amount = 3; }'
V2 = V1.replace("float amount = 3;", "float amount = 3; optional string note = 4;")


def test_three_versions_in_one_topic(world: World, bound: Any) -> None:
    world.create("orders")
    world.create("notes")
    with closing(registry_of(Config.of(world.settings))) as registry:
        registry.set_compatibility("NONE")
        registry.register("orders-value", Schema(V1, "PROTOBUF"))
    first = bound(ks.Protobuf(V1), "orders").serialize
    second = bound(ks.Protobuf(V2), "orders").serialize
    third = bound(ks.Protobuf(Order), "orders").serialize
    rows: list[tuple[str, bytes, int]] = []
    for n in range(300):
        order = {"id": n, "customer": "c", "amount": n / 2}
        data = (first(order), second({**order, "note": f"note {n}"}), third(Order(n, "c", n / 2, f"note {n}")))[n % 3]
        rows.append(("k", data, n))
    world.write("orders", rows)
    builder = ks.StreamsBuilder()
    orders = builder.stream("orders", key=str, value=ks.Protobuf(Order))
    orders.filter(ks.col("amount") >= 0.0).to("notes", key=str, value=ks.Protobuf(Order))
    world.run(builder.build())
    read = [row.value for row in world.rows("notes", str, bound(ks.Protobuf(Order), "notes"))]
    assert read == [Order(n, "c", n / 2, None if n % 3 == 0 else f"note {n}") for n in range(300)]


def test_a_record_that_does_not_decode_names_its_place(world: World, bound: Any) -> None:
    for topic in ("orders", "out", "letters"):
        world.create(topic)
    write = bound(ks.Protobuf(Order), "orders").serialize
    good, bad = write(ORDERS[0]), write(ORDERS[1])[:-2]
    world.write("orders", [("a", good, 0), ("b", bad, 1), ("c", good, 2)])
    builder = ks.StreamsBuilder()
    builder.stream("orders", key=str, value=ks.Protobuf(Order)).to("out", key=str, value=ks.Protobuf(Order))
    with pytest.raises(SerdeError, match=r"value of orders-0@1 with Protobuf\(Order\)"):
        world.run(builder.build())
    world.run(
        builder.build(),
        deserialization_exception_handler="continue",
        errors_dead_letter_queue_topic_name="letters",
    )
    assert [row.key for row in world.rows("out", str, bytes)] == ["a", "c"]
    assert [row.value for row in world.rows("letters", bytes, bytes)] == [bad]


def test_a_schema_that_cannot_be_read_names_both_schemas_and_the_field(world: World, bound: Any) -> None:
    for topic in ("orders", "out"):
        world.create(topic)
    with closing(registry_of(Config.of(world.settings))) as registry:
        registry.set_compatibility("NONE")
    other = bound(ks.Protobuf('syntax = "proto3"; message Order { string id = 1; }'), "orders")
    mine = bound(ks.Protobuf(Order), "orders")
    world.write("orders", [("a", mine.serialize(ORDERS[0]), 0), ("b", other.serialize({"id": "x"}), 1)])
    builder = ks.StreamsBuilder()
    builder.stream("orders", key=str, value=ks.Protobuf(Order)).to("out", key=str, value=ks.Protobuf(Order))
    sentence = (
        r"orders-0@1 .*schema id 2 cannot be read as Protobuf\(Order\): the field Order.id is string.*schema id 1"
    )
    with pytest.raises(SerdeError, match=sentence):
        world.run(builder.build())


def test_guids_in_headers_go_through_an_application(world: World, bound: Any) -> None:
    for topic in ("orders", "out"):
        world.create(topic)
    write = bound(ks.Protobuf(Order), "orders").serialize
    world.write("orders", [(str(order.id), write(order), order.id) for order in ORDERS])
    builder = ks.StreamsBuilder()
    in_header = ks.Protobuf(Order, schema_id="header")
    builder.stream("orders", key=str, value=ks.Protobuf(Order)).to("out", key=str, value=in_header)
    world.run(builder.build())
    message = message_class(in_header.declared_schema(), "Order")
    rows = list(world.rows("out", str, bytes))
    assert [message.FromString(row.value).id for row in rows] == [order.id for order in ORDERS]
    second = ks.StreamsBuilder()
    second.stream("out", key=str, value=ks.Protobuf(Order)).map_values(lambda order: order.id, value=int).to("ids")
    world.create("ids")
    world.run(second.build(), application_id="second")
    assert [row.value for row in world.rows("ids", str, int)] == [order.id for order in ORDERS]


def test_the_header_has_the_guid_and_the_index_of_the_message(tmp_path: Path) -> None:
    settings = {"schema.registry.url": "local:", "log.dir": tmp_path / "log"}
    in_header = ks.Protobuf(V2, schema_id="header")
    builder = ks.StreamsBuilder()
    builder.stream("orders", key=str, value=str).map_values(lambda customer: {"customer": customer}).to(
        "out", value=in_header
    )
    with TopologyTestDriver(builder.build(), settings) as driver:
        driver.create_input_topic("orders", key=str, value=str).pipe_input("a", "Ada")
        record = driver.create_output_topic("out", key=str, value=bytes).read_record()
    with closing(registry_of(Config.of(settings))) as registry:
        guid = registry.version("out-value").guid.replace("-", "")
    assert record.headers == (("__value_schema_id", bytes.fromhex(f"01{guid}00")),)
    assert record.value == b"\x12\x03Ada"


def test_a_file_is_compiled_when_the_application_starts(world: World, tmp_path: Path) -> None:
    world.create("orders")
    (tmp_path / "bad.proto").write_text('syntax = "proto3"; message Order { int64 id = 0; }')
    builder = ks.StreamsBuilder()
    builder.stream("orders", key=str, value=ks.Protobuf(tmp_path / "bad.proto")).to("out")
    with pytest.raises(SerdeError, match=r"bad\.proto does not compile"):
        world.run(builder.build())


def test_a_serde_of_a_topic_travels_to_another_process(world: World, bound: Any) -> None:
    serde = bound(ks.Protobuf(Order), "orders")
    data = serde.serialize(ORDERS[0])
    arrived = pickle.loads(pickle.dumps(serde))
    assert arrived.deserialize(data) == ORDERS[0]
    assert arrived.serialize(ORDERS[0]) == data


def test_expressions_read_the_fields_of_classes_and_dicts(tmp_path: Path) -> None:
    settings = {"schema.registry.url": "local:", "log.dir": tmp_path / "log"}
    same_file = V2.replace("int32", "int64").replace("float", "double")
    for serde in (ks.Protobuf(Order), ks.Protobuf(same_file)):
        builder = ks.StreamsBuilder()
        orders = builder.stream("orders", key=str, value=serde)
        orders.filter(ks.col("amount") > 10.0).select_key(ks.col("customer"), key=str).to("large")
        with TopologyTestDriver(builder.build(), {**settings, "log.dir": tmp_path / repr(serde)}) as driver:
            values = ks.Protobuf(Order)
            driver.create_input_topic("orders", key=str, value=values).pipe_values(ORDERS)
            rows = driver.create_output_topic("large", key=str, value=serde).read_key_values()
        assert [key for key, _ in rows] == [order.customer for order in ORDERS if order.amount > 10.0]
