"""Applications whose input and output lie outside of topics, by sources and sinks in the topology."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import deltalake
import msgspec
import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

import kstreams as ks
from kstreams.app import load_app, reset
from kstreams.config import Config
from kstreams.errors import ConnectorError
from kstreams.runtime.native.engine import explain, sql
from kstreams.testing import TopologyTestDriver
from kstreams.testing.connectors import Order, order_of
from tests.connectors.systems import Database, Numbered, orders, orders_in
from tests.native.world import World

HOUR_MS = 3_600_000


def copy_of(source: Numbered, database: Path) -> ks.StreamsBuilder:
    builder = ks.StreamsBuilder()
    builder.stream(source, name="orders").to(Database(database), name="copy")
    return builder


def run_to_end(builder: ks.StreamsBuilder, world: World, **settings: object) -> None:
    with ks.KafkaStreams(builder, {**world.settings, **settings}) as streams:
        streams.start(until_end=True)
        streams.wait()


def test_an_application_reads_a_source_and_writes_a_sink_and_goes_on_where_it_was(tmp_path: Path) -> None:
    world = World(tmp_path)
    for count in (1_000, 1_000, 3_000):
        run_to_end(copy_of(Numbered(count, ["a"]), tmp_path / "copy.db"), world)
        assert orders_in(tmp_path / "copy.db") == orders(count)


def test_a_running_application_takes_rows_as_they_come(tmp_path: Path) -> None:
    world = World(tmp_path)
    database = tmp_path / "copy.db"
    with ks.KafkaStreams(copy_of(Numbered(5_000, ["a"], tasks=1), database), world.settings) as streams:
        streams.start()
        wait_until(lambda: len(orders_in(database)) >= 5_000)
        values = {
            (name.name, name.tag("connector")): value
            for name, value in streams.metrics().items()
            if name.group == "connector-task-metrics" and name.tag("task") == "0"
        }
        assert values["status", "app-orders-feed"] == values["status", "app-copy-sink"] == "RUNNING"
        assert values["records-committed-total", "app-orders-feed"] == 5_000
        assert values["bytes-committed-total", "app-orders-feed"] > 100_000
        assert values["total-retries", "app-copy-sink"] == 0
        assert values["commit-age-ms", "app-copy-sink"] < 60_000
    assert orders_in(database) == orders(5_000)


class Receipt(msgspec.Struct):
    amount: Annotated[Decimal, msgspec.Meta(extra={"scale": 2})]
    discount: Decimal
    note: str | None


def test_columns_of_a_table_have_the_declared_types_whatever_the_first_rows_are(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.create("receipts", 1)
    builder = ks.StreamsBuilder()
    sink = ks.sinks.delta(tmp_path / "receipts", mode="upsert", key="id")
    builder.stream("receipts", key=int, value=Receipt).to(sink, name="receipts")
    receipts = [Receipt(Decimal("3"), Decimal("0.5"), None), Receipt(Decimal("123456.75"), Decimal("12.5"), "late")]
    for number, receipt in enumerate(receipts):
        world.write("receipts", [(number, receipt, 1)])
        run_to_end(builder, world)
    table = deltalake.DeltaTable(tmp_path / "receipts").to_pyarrow_table()
    assert table.schema.field("amount").type == pa.decimal128(38, 2)
    assert table.schema.field("discount").type == pa.decimal128(38, 1)
    rows = {row.pop("id"): Receipt(**row) for row in table.to_pylist()}
    assert rows == dict(enumerate(receipts))


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_windows_are_columns_of_a_table(tmp_path: Path, form: str) -> None:
    """A later total of a window replaces the earlier one."""
    world = World(tmp_path)
    world.create("clicks", 1)
    catalog = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": tmp_path.as_uri()}
    key = ["key", "window_start"]
    sinks = {
        "delta": lambda: ks.sinks.delta(tmp_path / "clicks", mode="upsert", key=key),
        "iceberg": lambda: ks.sinks.iceberg(catalog, "web.clicks", mode="upsert", key=key),
    }
    builder = ks.StreamsBuilder()
    clicks = builder.stream("clicks", key=str, value=str).group_by_key()
    counts = clicks.windowed_by(ks.TimeWindows(size=timedelta(hours=1))).count()
    counts.to_stream().to(sinks[form](), name="clicks")
    for times in ((1, 2), (3, HOUR_MS)):
        world.write("clicks", [("home", "click", time) for time in times])
        run_to_end(builder, world)
    readers = {
        "delta": lambda: deltalake.DeltaTable(tmp_path / "clicks").to_pyarrow_table(),
        "iceberg": lambda: load_catalog("default", **catalog).load_table("web.clicks").scan().to_arrow(),
    }
    rows = readers[form]().select(["key", "window_start", "value"]).sort_by("window_start").to_pylist()
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    expected = [("home", epoch, 3), ("home", epoch + timedelta(hours=1), 1)]
    assert [tuple(row.values()) for row in rows] == expected


def test_a_source_may_be_a_table_that_a_stream_is_joined_with(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.create("clicks", 2)
    builder = ks.StreamsBuilder()
    names = builder.table(Numbered(10, ["a"]), name="names")
    clicks = builder.stream("clicks", key=int, value=str)
    clicks.join(names, lambda click, order: f"{click} {order.name}", value=str).to("named")
    run_to_end(builder, world)
    world.write("clicks", [(3, "left", 1), (7, "right", 2)])
    run_to_end(builder, world)
    assert sorted(row.value for rows in world.partitions("named", int, str) for row in rows) == [
        "left order 3",
        "right order 7",
    ]


def test_a_source_may_fill_a_topic_that_others_read_too(tmp_path: Path) -> None:
    world = World(tmp_path)
    builder = ks.StreamsBuilder()
    builder.stream(Numbered(10, ["a"]).to_topic("all-orders", partitions=2)).to(Database(tmp_path / "copy.db"))
    run_to_end(builder, world)
    rows = [row.value for rows in world.partitions("all-orders", int, Order) for row in rows]
    assert sorted(rows, key=lambda order: order.id) == orders(10) == orders_in(tmp_path / "copy.db")


def test_a_reset_application_reads_the_source_anew_and_the_sink_takes_everything_again(tmp_path: Path) -> None:
    world = World(tmp_path)
    app = tmp_path / "app.py"
    app.write_text(
        "from pathlib import Path\n"
        "from tests.connectors.systems import Database, Numbered\n"
        "import kstreams as ks\n"
        "topology = ks.StreamsBuilder()\n"
        f"copy = Database(Path({str(tmp_path / 'copy.db')!r}))\n"
        "topology.stream(Numbered(100, ['a']), name='orders').to(copy, name='copy')\n"
    )
    loaded = load_app(app, world.settings)
    run_to_end(loaded.topology, world)  # type: ignore[arg-type]
    deleted = {(deletion.what, deletion.name) for deletion in reset(loaded)}
    assert deleted >= {
        ("topic", "app-orders-feed"),
        ("topic", "app-orders-feed-positions"),
        ("topic", "app-copy-sink"),
        ("topic", "app-connectors"),
    }
    run_to_end(loaded.topology, world)  # type: ignore[arg-type]
    assert orders_in(tmp_path / "copy.db") == sorted([*orders(100), *orders(100)], key=lambda order: order.id)


def test_a_row_that_the_target_refuses_goes_to_the_dead_letter_topic_of_the_application(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.create("letters")
    builder = ks.StreamsBuilder()
    builder.stream(Numbered(10, ["a"])).to(Database(tmp_path / "copy.db", refused=["order 4"]))
    run_to_end(builder, world, **{"errors.dead.letter.queue.topic.name": "letters"})
    assert [row.value for rows in world.partitions("letters", int, Order) for row in rows] == [order_of(4)]
    assert [order.id for order in orders_in(tmp_path / "copy.db")] == [0, 1, 2, 3, 5, 6, 7, 8, 9]


def test_without_a_dead_letter_topic_the_application_ends_with_the_error(tmp_path: Path) -> None:
    world = World(tmp_path)
    builder = ks.StreamsBuilder()
    builder.stream(Numbered(10, ["a"])).to(Database(tmp_path / "copy.db", refused=["order 4"]))
    with pytest.raises(ConnectorError, match="order 4 is not wanted"):
        run_to_end(builder, world)


def test_a_running_application_ends_with_the_error_of_a_connector(tmp_path: Path) -> None:
    world = World(tmp_path)
    builder = ks.StreamsBuilder()
    builder.stream(Numbered(10, ["a"])).to(Database(tmp_path / "copy.db", refused=["order 4"]))
    streams = ks.KafkaStreams(builder, world.settings)
    streams.start()
    with pytest.raises(ConnectorError, match="order 4 is not wanted"):
        streams.wait(60)


def test_a_test_pipes_rows_into_the_topic_of_a_source_and_reads_that_of_a_sink(tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    large = builder.stream(Numbered(0), name="orders").filter(ks.col("amount") > 10)
    large.to(Database(tmp_path / "never.db"), name="large")
    with TopologyTestDriver(builder) as driver:
        feed = driver.create_input_topic("orders-feed", key=int, value=Order)
        sink = driver.create_output_topic("large-sink", key=int, value=Order)
        for number in (3, 9):
            feed.pipe_input(number, order_of(number))
        assert sink.read_values() == [order_of(9)]


def test_the_stores_of_a_stopped_application_with_connectors_can_be_asked(tmp_path: Path) -> None:
    world = World(tmp_path)
    builder = ks.StreamsBuilder()
    builder.table(Numbered(10, ["a"]), name="names", materialized="names-store")
    run_to_end(builder, world)
    answer = sql(builder.build(), Config.of(world.settings), 'SELECT count(*) AS n FROM "names-store"', None, None)
    assert answer.to_pylist() == [{"n": 10}]


def test_explain_tells_the_guarantee_of_each_connector(tmp_path: Path) -> None:
    topology = copy_of(Numbered(10), tmp_path / "copy.db").build()
    rows = {row.operator: (row.path, row.why) for row in explain(topology, Config.of({"application.id": "app"}))}
    assert rows["orders-feed"] == ("connector", "exactly once: records and positions are written in one transaction")
    assert rows["copy-sink"] == ("connector", "exactly once: the target keeps the offset with the rows")


def wait_until(holds: Callable[[], bool]) -> None:
    for _ in range(6_000):
        if holds():
            return
        time.sleep(0.01)
    raise AssertionError("it never came there")
