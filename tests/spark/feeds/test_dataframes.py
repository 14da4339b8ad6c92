"""DataFrames as streams and tables: each row is one record, once, whatever happens between."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

import kstreams as ks
from kstreams.app import App
from kstreams.app import explain as explained
from kstreams.app import reset as reset_app
from kstreams.config import Config
from kstreams.errors import KStreamsError, ProcessingError, TopologyError, UnsupportedError
from kstreams.testing import TopologyTestDriver
from tests.spark.running import Application, Row

pytestmark = pytest.mark.spark

ORDERS = [("ann", 5, 1_000), ("bob", 7, 2_000), ("ann", 1, 3_000), ("eve", 2, 61_000), ("bob", 1, 62_000)]


class Order(msgspec.Struct):
    customer: str
    amount: int
    at: datetime


def orders(spark: Any) -> Any:
    rows = [(customer, amount, datetime.fromtimestamp(at / 1000, UTC)) for customer, amount, at in ORDERS]
    return spark.createDataFrame(rows, "customer string, amount long, at timestamp").repartition(3)


def settings(folder: Path, **more: Any) -> Mapping[str, Any]:
    return Application(None, folder, ks.StreamsBuilder(), {}, **more).settings


def finished(builder: Any, spark: Any, folder: Path, **more: Any) -> Any:
    """A run to the end of its input."""
    run = ks.spark.start(builder, spark, settings(folder, **more), until_end=True)
    assert run.await_termination(200)
    return run


def records(run: Any, topic: str) -> list[tuple[Any, Any, int]]:
    rows = run.to_dataframe(topic).collect()
    return sorted((row.key, row.value, int(row.timestamp.timestamp() * 1000)) for row in rows)


def test_the_rows_of_a_dataframe_are_records_with_keys_and_times(spark: Any, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    stream = builder.from_dataframe(orders(spark), key="customer", timestamp="at")
    stream.map_values(lambda order: order.amount, value=int).to("amounts")
    run = finished(builder, spark, tmp_path)
    assert records(run, "amounts") == sorted(ORDERS)
    assert run.progress.records_in == len(ORDERS)


def test_windows_over_a_dataframe_are_those_of_the_same_records_in_a_topic(spark: Any, tmp_path: Path) -> None:
    def topology(builder: ks.StreamsBuilder, stream: Any) -> ks.StreamsBuilder:
        windowed = stream.group_by_key().windowed_by(ks.TimeWindows(size=60_000))
        amounts = windowed.aggregate(lambda: 0, lambda key, order, total: total + order.amount, value=int)
        amounts.to_stream().map(lambda key, total: (f"{key.key}@{key.window.start_ms}", total), key=str, value=int).to(
            "totals"
        )
        return builder

    builder, other = ks.StreamsBuilder(), ks.StreamsBuilder()
    topology(builder, builder.from_dataframe(orders(spark), key="customer", timestamp="at"))
    topology(other, other.stream("orders", key=str, value=Order))
    run = finished(builder, spark, tmp_path)
    app = Application(spark, tmp_path / "native", other, {"orders": (str, Order), "totals": (str, int)})
    rows = [Row("orders", name, Order(name, amount, datetime.now(UTC)), at) for name, amount, at in ORDERS]
    app.create("orders", "totals", partitions=4).write(rows).run_natively()
    assert records(run, "totals") == sorted(app.rows("totals", prefix=""))


def test_a_static_dataframe_is_read_once_in_the_life_of_an_application(spark: Any, tmp_path: Path) -> None:
    def builder() -> ks.StreamsBuilder:
        built = ks.StreamsBuilder()
        stream = built.from_dataframe(orders(spark), key="customer", timestamp="at", name="orders")
        stream.group_by_key().count().to_stream().to("counts")
        return built

    first = finished(builder(), spark, tmp_path)
    again = finished(builder(), spark, tmp_path)
    fed = first.to_dataframe("orders-feed").collect()
    assert sorted((row.key, row.value.amount) for row in fed) == sorted((name, amount) for name, amount, _ in ORDERS)
    assert (first.progress.records_in, again.progress.records_in) == (len(ORDERS), 0)
    assert [count for _, count, _ in records(again, "counts")] == [1, 2, 1, 2, 1]


def test_of_the_rows_of_a_dataframe_the_topic_keeps_those_of_the_last_run(spark: Any, tmp_path: Path) -> None:
    table, kept = str(tmp_path / "table"), []
    for run in range(3):
        orders(spark).write.format("parquet").mode("append").save(table)
        builder = ks.StreamsBuilder()
        stream = builder.from_dataframe(ks.spark.parquet(table), row=Order, key="customer", timestamp="at", name="in")
        stream.group_by_key().count().to_stream().to("counts")
        done = finished(builder, spark, tmp_path)
        assert done.progress.records_in == len(ORDERS)
        kept.append(done.to_dataframe("in-feed").count())
        assert sorted(records(done, "counts"))[-1] == ("eve", run + 1, 61_000)
    assert kept == [len(ORDERS)] * 3


def test_a_stream_of_a_topic_is_joined_with_a_table_of_a_dataframe(spark: Any, tmp_path: Path) -> None:
    cities = spark.createDataFrame([("ann", "Ulm"), ("bob", "Bonn")], "name string, city string")
    builder = ks.StreamsBuilder()
    table = builder.table_from_dataframe(cities.selectExpr("*", "0L AS at"), key="name", timestamp="at")
    visits = builder.stream("visits", key=str, value=str)
    visits.join(table, lambda page, row: f"{page} from {row.city}", value=str).to("from")
    app = Application(spark, tmp_path, builder, {"visits": (str, str)}).create("visits", partitions=3)
    app.write([Row("visits", "bob", "home", 5), Row("visits", "eve", "home", 6), Row("visits", "ann", "help", 7)])
    run = finished(builder, spark, tmp_path)
    assert records(run, "from") == [("ann", "help from Ulm", 7), ("bob", "home from Bonn", 5)]


def test_expressions_know_the_columns(spark: Any, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    stream = builder.from_dataframe(orders(spark), key="customer", timestamp="at")
    stream.filter(ks.col("amount") > 4).map_values(ks.col("amount") * 2, value=int).to("doubled")
    assert records(finished(builder, spark, tmp_path), "doubled") == [("ann", 10, 1_000), ("bob", 14, 2_000)]
    stream.filter(ks.col("amont") > 4).to("x")
    with pytest.raises(TopologyError, match="did you mean 'amount'"):
        builder.build()


def test_a_function_of_the_session_gives_the_dataframe_of_an_application_file(spark: Any, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    stream = builder.from_dataframe(orders, key="customer", timestamp="at", row=Order, partitions=2)
    stream.map_values(lambda order: order.amount, value=int).to("amounts")
    assert records(finished(builder, spark, tmp_path), "amounts") == sorted(ORDERS)


def test_what_cannot_be_a_source_is_said_at_the_line_of_the_user(spark: Any) -> None:
    builder, frame = ks.StreamsBuilder(), orders(spark)
    with pytest.raises(TopologyError, match=r"test_dataframes\.py:\d+ have no column 'name'; they have: customer"):
        builder.from_dataframe(frame, key="name")
    with pytest.raises(TopologyError, match=r"test_dataframes\.py:\d+ reads a list, not a DataFrame of Spark"):
        builder.from_dataframe([1, 2])
    with pytest.raises(TopologyError, match="name the type of its rows with row="):
        builder.from_dataframe(orders, key="customer")
    with pytest.raises(TopologyError, match="'total amount' cannot be a field of a row"):
        builder.from_dataframe(frame.withColumnRenamed("amount", "total amount"), key="customer")


def test_the_native_engine_refuses_a_dataframe_by_name(spark: Any, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    builder.from_dataframe(orders(spark), key="customer").to("out")
    with pytest.raises(
        UnsupportedError, match=r"from_dataframe\(\) at .*:\d+ .* which the native engine does not know"
    ):
        ks.KafkaStreams(builder, settings(tmp_path))


def test_the_test_driver_takes_records_in_the_place_of_rows(spark: Any) -> None:
    builder = ks.StreamsBuilder()
    stream = builder.from_dataframe(orders, key="customer", row=Order, name="orders")
    stream.map_values(lambda order: order.amount + 1, value=int).to("more")
    with TopologyTestDriver(builder) as driver:
        rows = driver.create_input_topic("orders-feed", key=str, value=Order)
        rows.pipe_input("ann", Order("ann", 5, datetime(2020, 1, 1, tzinfo=UTC)), timestamp=1)
        assert driver.create_output_topic("more", key=str, value=int).read_key_value() == ("ann", 6)


def test_a_row_without_a_time_ends_the_run_and_is_shown(spark: Any, tmp_path: Path) -> None:
    frame = spark.createDataFrame([("ann", None)], "customer string, at timestamp")
    builder = ks.StreamsBuilder()
    builder.from_dataframe(frame, key="customer", timestamp="at").to("out")
    run = ks.spark.start(builder, spark, settings(tmp_path), until_end=True)
    said = r"from_dataframe\(\) at .*:\d+ .* on record Row\(customer='ann', at=None\): ValueError: a row has no time"
    with pytest.raises(KStreamsError, match=said) as raised:
        run.await_termination(200)
    assert isinstance(raised.value, ProcessingError)
    assert "\n" not in str(raised.value)


def test_after_a_reset_a_dataframe_is_read_again(spark: Any, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    builder.from_dataframe(orders(spark), key="customer", timestamp="at", name="orders").map_values(
        lambda order: order.amount, value=int
    ).to("amounts")
    finished(builder, spark, tmp_path)
    app = App(builder.build(), Config.of(settings(tmp_path)), tmp_path / "app.py")
    forgotten = {each.name for each in reset_app(app, "spark")}
    assert {"app-orders-feed", "app-spark-feed-orders-feed"} <= forgotten
    assert finished(builder, spark, tmp_path).progress.records_in == len(ORDERS)


def test_explain_names_the_source(spark: Any, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    builder.from_dataframe(orders(spark), key="customer", name="orders").to("out")
    app = App(builder.build(), Config.of(settings(tmp_path)), tmp_path / "app.py")
    assert "orders" in {row.operator for row in explained(app, "spark")}
