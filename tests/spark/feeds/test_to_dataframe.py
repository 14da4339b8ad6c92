"""Streams as DataFrames: a part of a query of the user's own, typed throughout, with the results of the engines."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

import kstreams as ks
from kstreams.errors import TopologyError
from tests.spark.running import Application, Row

pytestmark = pytest.mark.spark

ORDERS = [("ann", 5, 1_000), ("bob", 7, 2_000), ("ann", 1, 3_000), ("eve", 2, 61_000), ("bob", 1, 62_000)]
SCHEMA = "customer string, amount long, at timestamp"


class Order(msgspec.Struct):
    customer: str
    amount: int
    at: datetime


class Visit(msgspec.Struct):
    who: str
    when: datetime


class Total(msgspec.Struct):
    total: int | None


MINUTE = ks.TimeWindows(size=60_000, grace=0)


def orders(spark: Any) -> Any:
    rows = [(customer, amount, datetime.fromtimestamp(at / 1000, UTC)) for customer, amount, at in ORDERS]
    return spark.createDataFrame(rows, SCHEMA)


def growing(spark: Any, folder: Path) -> Any:
    """The same rows as a stream."""
    orders(spark).coalesce(1).write.parquet(str(folder / "orders"))
    return spark.readStream.schema(SCHEMA).parquet(str(folder / "orders"))


def stream_of(frame: Any) -> Any:
    return ks.StreamsBuilder().from_dataframe(frame, key="customer", timestamp="at")


def found(frame: Any) -> list[tuple[Any, Any, int]]:
    return sorted((row.key, row.value, ms(row.timestamp)) for row in frame.collect())


def ms(time: datetime) -> int:
    return round(time.timestamp() * 1000)


def run_as_stream(frame: Any, spark: Any, folder: Path, mode: str = "append") -> Any:
    """What a streaming query gives over all there is, as a DataFrame."""
    name = f"found_{abs(hash(folder))}"
    writer = frame.writeStream.format("memory").queryName(name).outputMode(mode).trigger(availableNow=True)
    writer.option("checkpointLocation", str(folder / "checkpoint")).start().awaitTermination()
    return spark.table(name)


def test_expressions_over_a_dataframe_are_columns_of_spark_and_nothing_else(spark: Any) -> None:
    large = stream_of(orders(spark)).filter(ks.col("amount") > 1).map_values(ks.col("amount") * 2, value=int)
    frame = large.to_dataframe(spark)
    assert frame.dtypes == [("key", "string"), ("value", "bigint"), ("timestamp", "timestamp")]
    assert found(frame) == [("ann", 10, 1_000), ("bob", 14, 2_000), ("eve", 4, 61_000)]
    plan = frame._jdf.queryExecution().executedPlan().toString()
    assert "Arrow" not in plan
    assert "hex" not in plan


def test_rows_that_nothing_changes_keep_their_columns(spark: Any) -> None:
    frame = stream_of(orders(spark)).filter(ks.col("amount") > 5).to_dataframe(spark)
    assert [row.asDict(recursive=True) for row in frame.select("value.*").collect()] == [
        {"customer": "bob", "amount": 7, "at": orders(spark).collect()[1].at}
    ]


def test_keys_and_values_have_their_types_whatever_bytes_they_have_in_topics(spark: Any) -> None:
    pairs = (ks.col("amount"), ks.struct(who=ks.key, when=ks.col("at").fill_null(datetime(2000, 1, 1))))
    frame = stream_of(orders(spark)).map(pairs, key=int, value=Visit).filter(ks.key < 3).to_dataframe(spark)
    assert dict(frame.dtypes)["value"] == "struct<who:string,when:timestamp>"
    assert sorted((row.key, row.value.who, ms(row.value.when)) for row in frame.collect()) == [
        (1, "ann", 3_000), (1, "bob", 62_000), (2, "eve", 61_000)
    ]  # fmt: skip


def test_the_active_session_is_used_where_none_is_given(spark: Any) -> None:
    spark.range(1).count()
    assert stream_of(orders(spark)).to_dataframe().count() == len(ORDERS)


def test_final_windows_over_a_streaming_dataframe(spark: Any, tmp_path: Path) -> None:
    windows = ks.TimeWindows(size=30_000, grace=0)
    counted = stream_of(growing(spark, tmp_path)).group_by_key().windowed_by(windows)
    final = counted.emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE).count().to_stream()
    rows = run_as_stream(final.to_dataframe(spark), spark, tmp_path).collect()
    assert sorted((row.key.key, ms(row.key.window_start), ms(row.key.window_end), row.value) for row in rows) == [
        ("ann", 0, 30_000, 2), ("bob", 0, 30_000, 1)
    ]  # fmt: skip


@pytest.mark.parametrize("mode", ["batch", "stream"])
def test_windows_give_the_last_counts_of_the_native_engine(spark: Any, tmp_path: Path, mode: str) -> None:
    def counts(stream: Any) -> Any:
        return stream.group_by_key().windowed_by(ks.TimeWindows(size=60_000, grace=10_000)).count().to_stream()

    frame = counts(stream_of(orders(spark) if mode == "batch" else growing(spark, tmp_path))).to_dataframe(spark)
    made = frame if mode == "batch" else run_as_stream(frame, spark, tmp_path, "update")
    builder = ks.StreamsBuilder()
    named = counts(builder.stream("orders", key=str, value=Order))
    named.map(lambda key, count: (f"{key.key}@{key.window.start_ms}", count), key=str, value=int).to("counts")
    app = Application(spark, tmp_path / "native", builder, {"orders": (str, Order), "counts": (str, int)})
    rows = [Row("orders", name, Order(name, amount, datetime.now(UTC)), at) for name, amount, at in ORDERS]
    app.create("orders", "counts", partitions=1).write(rows).run_natively()
    expected = {key: value for key, value, _ in app.rows("counts", prefix="")}
    assert {f"{row.key.key}@{ms(row.key.window_start)}": row.value for row in made.collect()} == expected


def test_rows_by_key_are_the_last_ones_of_the_native_engine(spark: Any, tmp_path: Path) -> None:
    totals = stream_of(growing(spark, tmp_path)).group_by_key().aggregate(total=ks.col("amount").sum(), value=Total)
    frame = totals.filter(ks.col("total") > 2).to_stream().to_dataframe(spark)
    rows = run_as_stream(frame, spark, tmp_path, "update").collect()
    assert {row.key: row.value and row.value.total for row in rows} == {"ann": 6, "bob": 8, "eve": None}


def test_repeats_are_dropped_but_not_records_without_a_key(spark: Any, tmp_path: Path) -> None:
    keyed = stream_of(growing(spark, tmp_path)).select_key(ks.when(ks.col("amount") > 1).then(ks.key), key=str)
    rows = run_as_stream(keyed.deduplicate(5_000).to_dataframe(spark), spark, tmp_path)
    assert Counter(row.key for row in rows.collect()) == {"ann": 1, "bob": 1, "eve": 1, None: 2}


def test_a_stream_meets_the_rows_of_a_table(spark: Any, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    visits = builder.stream("visits", key=str, value=int)
    names = builder.table("names", key=str, value=str)
    named = visits.left_join(names, ks.right.value.str.upper(), value=str)
    app = Application(spark, tmp_path, builder, {"visits": (str, int), "names": (str, str)})
    app.create("visits", "names", partitions=1)
    app.write([Row("names", "ann", "Ann", 2), Row("names", "bob", "Bob", 2), Row("names", "bob", None, 3)])
    app.write([Row("visits", "ann", 1, 5), Row("visits", "bob", 2, 6)])
    rows = found(run_as_stream(named.to_dataframe(spark, app.settings), spark, tmp_path))
    assert rows == [("ann", "ANN", 5), ("bob", None, 6)]


def test_a_topic_is_read_from_its_beginning_as_a_stream(spark: Any, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    doubled = builder.stream("in", key=str, value=int).filter(ks.value > 1).map_values(ks.value * 2, value=int)
    app = Application(spark, tmp_path, builder, {"in": (str, int)}).create("in", partitions=2)
    app.write([Row("in", name, amount, at) for name, amount, at in ORDERS])
    frame = doubled.to_dataframe(spark, app.settings)
    assert frame.isStreaming
    assert found(run_as_stream(frame, spark, tmp_path)) == [("ann", 10, 1_000), ("bob", 14, 2_000), ("eve", 4, 61_000)]


def test_topics_that_are_joined_share_the_records_of_a_trigger(spark: Any, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    app = Application(spark, tmp_path, builder, {"in": (str, str), "other": (str, str)})
    app.create("in", partitions=1).create("other", partitions=1)
    app.write([Row(topic, "k", str(i), i) for topic in ("in", "other") for i in range(10)])
    left, right = (builder.stream(topic, key=str, value=str) for topic in ("in", "other"))
    joined = left.join(right, ks.left.value + ks.right.value, windows=ks.JoinWindows.of(0), value=str)
    frame = joined.to_dataframe(spark, {**app.settings, "spark.kstreams.max.records": 4})
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    assert sum(1 for progress in query.recentProgress if progress["numInputRows"]) == len(("in", "other")) * 10 / 4


def test_two_streams_are_joined_within_a_window(spark: Any) -> None:
    builder = ks.StreamsBuilder()
    left, right = (builder.from_dataframe(orders(spark), key="customer", timestamp="at", name=name) for name in "ab")
    near = ks.JoinWindows.of(1_500, grace=0)
    joined = left.join(right, ks.left.col("amount") * 10 + ks.right.col("amount"), windows=near, value=int)
    assert found(joined.to_dataframe(spark)) == sorted((name, amount * 11, at) for name, amount, at in ORDERS)


def windows_of_windows(stream: Any) -> Any:
    counts = stream.group_by_key().windowed_by(MINUTE).emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE).count()
    together = counts.to_stream(ks.lit("all"), key=str).group_by_key().windowed_by(MINUTE)
    return together.count().to_stream()


class Nothing(ks.Processor):
    def process(self, record: Any) -> None: ...


@pytest.mark.parametrize(
    ("declare", "why"),
    [
        (lambda stream: stream.map_values(lambda order: f"{order}", value=str), "takes the whole value"),
        (windows_of_windows, "Spark keeps one state in a query"),
        (lambda stream: stream.process(Nothing), "takes records one by one"),
    ],
)
def test_what_has_no_form_in_dataframes_is_named_with_the_way_out(spark: Any, declare: Any, why: str) -> None:
    with pytest.raises(TopologyError) as error:
        declare(stream_of(orders(spark))).to_dataframe(spark)
    for part in ("cannot be part of a DataFrame", why, "ks.spark.start", "test_to_dataframe.py"):
        assert part in str(error.value)


def test_a_setting_that_only_tasks_follow_is_named(spark: Any) -> None:
    with pytest.raises(TopologyError, match=r"max\.timestamp\.ahead is set: only tasks can follow it"):
        stream_of(orders(spark)).to_dataframe(spark, {"max.timestamp.ahead": 5})


def test_a_change_data_feed_is_refused(spark: Any) -> None:
    changes = orders(spark).selectExpr("*", "'insert' _change_type", "0L _commit_version", "at _commit_timestamp")
    stream = ks.StreamsBuilder().from_dataframe(changes, key="customer", row=Order)
    with pytest.raises(TopologyError, match="change data feed"):
        stream.to_dataframe(spark)


def test_a_stream_meets_the_rows_of_a_global_table(spark: Any, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    visits = builder.stream("visits", key=str, value=str)
    codes = builder.global_table("codes", key=str, value=str)
    named = visits.join(codes, ks.right.value, key_selector=ks.value, value=str)
    types = {"visits": (str, str), "codes": (str, str)}
    app = Application(spark, tmp_path, builder, types).create("visits", "codes", partitions=1)
    app.write([Row("codes", "h", "home", 2)])
    app.write([Row("visits", "ann", "h", 5), Row("visits", "eve", "i", 6)])
    rows = found(run_as_stream(named.to_dataframe(spark, app.settings), spark, tmp_path))
    assert rows == [("ann", "home", 5)]


def test_new_keys_are_exchanged_by_spark(spark: Any) -> None:
    sizes = stream_of(orders(spark)).group_by(ks.when(ks.col("amount") > 4).then("large").otherwise("small"), key=str)
    counts = sizes.windowed_by(ks.TimeWindows(size=100_000)).count().to_stream().to_dataframe(spark)
    assert {row.key.key: row.value for row in counts.collect()} == {"large": 2, "small": 3}
    moved = stream_of(orders(spark)).select_key(ks.col("amount"), key=int).repartition(name="by-amount")
    assert sorted(row.key for row in moved.to_dataframe(spark).collect()) == [1, 1, 2, 5, 7]
