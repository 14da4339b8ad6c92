"""The relational path gives what tasks give, and what the test driver gives; `explain` says which path is taken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.dsl.operator import operators
from kstreams.errors import LogError, ProcessingError
from kstreams.runtime.spark import engine
from tests.spark.running import Application, Row, changelog

pytestmark = pytest.mark.spark


class Order(msgspec.Struct):
    item: str
    amount: int
    price: float | None = None


ROWS = [
    Row("in", "a", Order("tea", 3, 1.5), 1),
    Row("in", "b", Order("cup", 1), 2),
    Row("in", None, Order("pot", 2, 20.0), 3),
    Row("in", "a", None, 4),
    Row("in", "c", Order("größe", -7, 0.0), 5),
    Row("in", "b", Order("tea", 4, 2.5), 6),
]


def orders(builder: ks.StreamsBuilder) -> Any:
    return builder.stream("in", key=str, value=Order)


def by_expression(builder: ks.StreamsBuilder) -> None:
    big = orders(builder).filter((ks.col("amount") > 1) & ~ks.col("price").is_null())
    big.map_values(ks.col("price") * ks.col("amount"), value=float).to("out", value=float)


def by_function(builder: ks.StreamsBuilder) -> None:
    named = orders(builder).filter_not(lambda key, order: order is None)
    named.map_values(lambda key, order: f"{key}: {order.item}", with_key=True, value=str).to("out")


def new_keys(builder: ks.StreamsBuilder) -> None:
    sold = orders(builder).filter(lambda key, order: order is not None)
    keyed = sold.select_key(ks.col("item").str.upper(), key=str)
    keyed.map(lambda key, order: (key[::-1], order.amount), key=str, value=int).to("out")


def one_to_many(builder: ks.StreamsBuilder) -> None:
    letters = orders(builder).flat_map_values(lambda order: list(order.item) if order else [], value=str)
    letters.flat_map(lambda key, letter: [(letter, key or "?"), (key or "?", letter)], key=str, value=str).to("out")


def branches(builder: ks.StreamsBuilder) -> None:
    split = orders(builder).split().branch(ks.col("amount") > 2).branch(lambda key, order: key == "b")
    first, second, rest = split.default_branch().values()
    amounts = [stream.map_values(lambda v, t=tag: t, value=str) for tag, stream in enumerate_text(first, second, rest)]
    amounts[0].merge(amounts[1]).merge(amounts[2]).to("out")


def enumerate_text(*streams: Any) -> list[tuple[str, Any]]:
    return [(f"branch {number}", stream) for number, stream in enumerate(streams)]


def through_a_repartition(builder: ks.StreamsBuilder) -> None:
    kept = orders(builder).filter(~ks.col("amount").is_null())
    kept.group_by(ks.col("item"), key=str).count().to_stream().to("out")


Build = Callable[[ks.StreamsBuilder], None]
CASES: list[tuple[Build, type]] = [
    (by_expression, float),
    (by_function, str),
    (new_keys, int),
    (one_to_many, str),
    (branches, str),
    (through_a_repartition, int),
]


@pytest.mark.parametrize(("build", "value"), CASES, ids=[build.__name__ for build, _ in CASES])
def test_both_paths_the_native_engine_and_the_driver_agree(spark, tmp_path: Path, build: Build, value: type) -> None:
    builder = ks.StreamsBuilder()
    build(builder)
    types = {"in": (str, Order), "out": (str, value)}
    app = Application(spark, tmp_path, builder, types).create("in", partitions=1).write(ROWS)
    app.run_natively()
    found = {"driver": app.driver_rows("out", ROWS), "native": app.rows("out", prefix="")}
    for path in ("relational", "task"):
        of_path = {"spark.kstreams.path": path, "spark.kstreams.prefix": f"{path}-"}
        app.run(**of_path, **{"spark.kstreams.checkpoint": str(tmp_path / path)})
        found[path] = app.rows("out", prefix=f"{path}-")
    view = changelog if build is through_a_repartition else list
    assert {engine: view(rows) for engine, rows in found.items()} == dict.fromkeys(found, view(found["driver"]))


def windows(builder: ks.StreamsBuilder) -> None:
    kept = (
        orders(builder).filter(~ks.col("amount").is_null()).group_by_key().windowed_by(ks.TimeWindows(size=10, grace=5))
    )
    final = kept.emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE).aggregate(
        orders=ks.len(), most=ks.col("amount").max(), mean=ks.col("price").mean(), value=Totals
    )
    final.to_stream().map(lambda key, totals: (f"{key.key}@{key.window.start_ms}", totals), key=str, value=Totals).to(
        "out"
    )


def hopping_counts(builder: ks.StreamsBuilder) -> None:
    counted = orders(builder).group_by_key().windowed_by(ks.TimeWindows(size=10, advance=5, grace=0)).count()
    final = counted.suppress(ks.Suppressed.until_window_closes()).to_stream()
    final.map(lambda key, count: (f"{key.key}@{key.window.start_ms}", count), key=str, value=int).to("out")


def tumbling_counts(builder: ks.StreamsBuilder) -> None:
    counted = orders(builder).group_by_key().windowed_by(ks.TimeWindows(size=10, grace=0)).count()
    final = counted.suppress(ks.Suppressed.until_window_closes()).to_stream()
    final.map(lambda key, count: (f"{key.key}@{key.window.start_ms}", count), key=str, value=int).to("out")


def counts_behind_a_repartition(builder: ks.StreamsBuilder) -> None:
    kept = orders(builder).filter(ks.key != "-").repartition(name="one", partitions=1)
    counted = kept.group_by_key().windowed_by(ks.TimeWindows(size=10, grace=0)).count()
    counted.to_stream(lambda key, _: f"{key.key}@{key.window.start_ms}", key=str).to("out", value=int)


def joined_streams(builder: ks.StreamsBuilder) -> None:
    paid = builder.stream("paid", key=str, value=str)
    window = ks.JoinWindows(before=3, after=5, grace=100)
    orders(builder).join(paid, paid_by, windows=window, value=str, other_value=str).to("out")


def paid_by(order: Order, by: str) -> str:
    return f"{order.item} by {by}"


class Totals(msgspec.Struct):
    orders: int
    most: int | None
    mean: float | None


TIMED = [Row("in", "ab"[i % 2], Order("tea", i, i / 2 if i % 3 else None), 1 + 3 * i, i % 2) for i in range(20)]
PAID = [Row("paid", "ab"[i % 2], f"p{i}", 2 + 4 * i, i % 2) for i in range(15)]
CACHED = {"statestore.cache.max.bytes": 1 << 20}
WINDOWED = [(windows, Totals), (hopping_counts, int), (joined_streams, str)]


@pytest.mark.parametrize(("build", "value"), WINDOWED, ids=[build.__name__ for build, _ in WINDOWED])
@pytest.mark.parametrize("per_trigger", [12, 1000])
def test_final_results_of_windows_are_those_of_the_tasks_and_of_the_native_engine(
    spark, tmp_path: Path, build: Build, value: type, per_trigger: int
) -> None:
    builder = ks.StreamsBuilder()
    build(builder)
    types = {"in": (str, Order), "paid": (str, str), "out": (str, value)}
    # Without the record cache Kafka Streams loses windows when stream time jumps; Spark has no such case.
    settings = {"spark.kstreams.max.records": per_trigger} | CACHED
    app = Application(spark, tmp_path, builder, types, **settings).create("in", "paid").write(TIMED).write(PAID)
    app.run_natively()
    found = {"native": results(app, "")}
    for path in ("relational", "task"):
        of_path = {"spark.kstreams.path": path, "spark.kstreams.prefix": f"{path}-"}
        app.run(**of_path, **{"spark.kstreams.checkpoint": str(tmp_path / path)})
        found[path] = results(app, f"{path}-")
    assert {row.path for row in engine.explain(builder.build(), app_config("relational"))} == {"relational"}
    assert found == dict.fromkeys(found, found["native"])


def results(app: Application, prefix: str) -> list[tuple[str, str]]:
    return sorted((key, repr(result)) for key, result, _ in app.rows("out", prefix=prefix))


def test_every_rule_of_the_relational_path_has_a_case_on_all_engines() -> None:
    compared = set()
    for build, _ in (*CASES, *WINDOWED):
        builder = ks.StreamsBuilder()
        build(builder)
        made = builder.build()
        taken = {row.operator for row in engine.explain(made, app_config("relational")) if row.path == "relational"}
        compared |= {type(node) for node in made.graph if node.name in taken}
    ours = {kind for kind in operators.node_types if kind.__module__.startswith("kstreams.")}
    assert {kind for kind in ours if operators.of_type(kind).spark.lower} == compared


def ordered(*rows: tuple[str, int, int]) -> list[Row]:
    return [Row("in", key, Order("tea", 1), time, partition) for key, time, partition in rows]


def paid(*rows: tuple[str, int]) -> list[Row]:
    return [Row("paid", "a", by, time, 0) for by, time in rows]


class Difference(NamedTuple):
    """Input for which the relational path gives something else, and what either path gives."""

    build: Build
    rows: list[Row]
    per_trigger: int
    exact: list[str]
    relational: list[str]


DIFFERENT = {
    "WindowedAggregate: a record that comes too late is counted, in the batch that closes its window": Difference(
        tumbling_counts,
        ordered(("a", 1, 0), ("a", 40, 0), ("a", 2, 0)),
        100,
        ["a@0: 1", "a@40: 1"],
        ["a@0: 2", "a@40: 1"],
    ),
    "Repartition: a record is not late that follows a later one which was filtered out": Difference(
        counts_behind_a_repartition,
        ordered(("-", 100, 0), ("a", 5, 0), ("a", 50, 1)),
        100,
        ["a@50: 1"],
        ["a@0: 1", "a@50: 1"],
    ),
    "StreamJoin: a record that comes too late is joined, in the batch that lets its partner go": Difference(
        joined_streams,
        ordered(("a", 1, 0), ("a", 300, 0)) + paid(("p", 300), ("q", 2)),
        100,
        ["a: tea by p"],
        ["a: tea by p", "a: tea by q"],
    ),
    "StreamJoin: a record at the epoch itself is dropped": Difference(
        joined_streams, ordered(("a", 0, 0)) + paid(("p", 0)), 100, ["a: tea by p"], []
    ),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_what_is_declared_to_differ_does(spark, tmp_path: Path, what: str) -> None:
    case, builder = DIFFERENT[what], ks.StreamsBuilder()
    case.build(builder)
    types = {"in": (str, Order), "paid": (str, str), "out": (str, str if case.build is joined_streams else int)}
    settings = {"spark.kstreams.max.records": case.per_trigger} | CACHED
    app = Application(spark, tmp_path, builder, types, **settings).create("in", "paid").write(case.rows)
    found = {}
    for path in ("relational", "task"):
        of_path = {"spark.kstreams.path": path, "spark.kstreams.prefix": f"{path}-"}
        app.run(**of_path, **{"spark.kstreams.checkpoint": str(tmp_path / path)})
        found[path] = sorted(f"{key}: {value}" for key, value, _ in app.rows("out", prefix=f"{path}-"))
    assert found == {"relational": case.relational, "task": case.exact}


def test_on_either_path_a_partition_that_lags_is_read_before_another_goes_ahead(spark, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    tumbling_counts(builder)
    types, settings = {"in": (str, Order), "out": (str, int)}, {"spark.kstreams.max.records": 1} | CACHED
    app = Application(spark, tmp_path, builder, types, **settings).create("in")
    app.write(ordered(("b", 90, 1), ("b", 91, 1), ("a", 1, 0), ("a", 2, 0)))
    app.run(**{"spark.kstreams.path": "relational"})
    assert sorted(f"{key}: {value}" for key, value, _ in app.rows("out")) == ["a@0: 2", "b@90: 2"]


def test_every_declared_difference_is_shown() -> None:
    assert {what.partition(":")[0] for what in DIFFERENT} == {
        kind.__name__ for kind in operators.node_types if operators.of_type(kind).spark.difference
    }


def test_by_default_windows_run_as_tasks_and_explain_says_what_would_differ() -> None:
    builder = ks.StreamsBuilder()
    windows(builder)
    rows = {row.operator: row for row in engine.explain(builder.build(), app_config("auto"))}
    assert {row.path for row in rows.values()} == {"task"}
    assert any("a record that comes too late may still be counted" in row.why for row in rows.values())


def test_a_python_function_before_a_window_keeps_it_on_the_task_path() -> None:
    builder = ks.StreamsBuilder()
    kept = orders(builder).filter(lambda key, order: order.amount > 1, name="kept").group_by_key()
    counted = kept.windowed_by(ks.TimeWindows(size=10, grace=0)).emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE).count()
    counted.to_stream(lambda key, count: key.key).to("out", key=str)
    rows = {row.operator: row for row in engine.explain(builder.build(), app_config("relational"))}
    assert rows["kept"].why == "a Python function before a window would see the row that ends the input"
    assert {row.path for row in rows.values()} == {"task"}


def test_what_comes_after_the_end_of_a_windowed_query_is_refused(spark, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    hopping_counts(builder)
    types = {"in": (str, Order), "out": (str, int)}
    app = Application(spark, tmp_path, builder, types, **{"spark.kstreams.path": "relational"}).create("in")
    app.write(TIMED[:4]).run()
    before = app.rows("out")
    assert app.run().commits == 0
    app.write(TIMED[4:])
    with pytest.raises(LogError, match="every row that comes later would be late: run with --reset"):
        app.run()
    assert app.rows("out") == before


def app_config(path: str) -> Config:
    return Config.of({"application.id": "app", "spark.kstreams.path": path})


def test_by_default_what_writes_a_repartition_topic_runs_as_tasks_too() -> None:
    builder = ks.StreamsBuilder()
    through_a_repartition(builder)
    rows = {row.operator: row for row in engine.explain(builder.build(), app_config("auto"))}
    assert {row.path for row in rows.values()} == {"task"}
    assert any("not by the stream times of tasks" in row.why for row in rows.values())


def test_the_first_sub_topology_may_be_relational_and_the_second_run_as_tasks() -> None:
    builder = ks.StreamsBuilder()
    through_a_repartition(builder)
    decisions = engine.explain(builder.build(), app_config("relational"))
    assert {(decision.sub_topology, decision.path) for decision in decisions} == {(0, "relational"), (1, "task")}
    why = {decision.operator.rstrip("0123456789-"): decision.why for decision in decisions}
    assert why["KSTREAM-AGGREGATE"] == "a change stream with tombstones has no form in Spark"
    assert why["KTABLE-TOSTREAM"] == "a change stream with tombstones has no form in Spark"
    assert all("test_relational.py" in (decision.declared_at or "") for decision in decisions)


def test_an_operator_off_the_path_takes_its_sub_topology_with_it() -> None:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).peek(lambda k, v: None, name="look").to("out")
    decisions = {row.operator: row for row in engine.explain(builder.build(), Config.of(application_id="app"))}
    assert decisions["look"].why == "its function is called for its effect"
    assert {row.path for row in decisions.values()} == {"task"}
    assert "with look, in one sub-topology" in {row.why for row in decisions.values()}


def test_the_task_path_can_be_asked_for() -> None:
    builder = ks.StreamsBuilder()
    by_expression(builder)
    decisions = engine.explain(builder.build(), Config.of({"application.id": "app", "spark.kstreams.path": "task"}))
    assert {(row.path, row.why) for row in decisions} == {("task", "spark.kstreams.path is task")}


def test_a_failing_function_is_named_with_its_line(spark, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    orders(builder).map_values(lambda order: 1 // order.amount, value=int, name="inverse").to("out")
    app = Application(spark, tmp_path, builder, {"in": (str, Order), "out": (str, int)}).create("in", partitions=1)
    app.write([Row("in", "a", Order("one", 1), 1), Row("in", "a", Order("none", 0), 1)])
    with pytest.raises(
        ProcessingError, match=r"inverse \(map_values\(\) at .*test_relational.*in-0@1: ZeroDivisionError"
    ):
        app.run()


@pytest.mark.parametrize(
    ("build", "path", "time"),
    [
        (lambda builder: orders(builder).to("out"), "auto", -1),
        (lambda builder: orders(builder).to("out"), "auto", 2**62),
        (lambda builder: orders(builder).to("out"), "task", 2**62),
        (hopping_counts, "relational", 10**15),
    ],
)
def test_a_time_out_of_range_ends_the_run_and_is_named(spark, tmp_path: Path, build: Any, path: str, time: int) -> None:
    builder = ks.StreamsBuilder()
    build(builder)
    types, settings = {"in": (str, Order), "out": (str, Order)}, {"spark.kstreams.path": path}
    app = Application(spark, tmp_path, builder, types, **settings).create("in", partitions=1)
    app.write([Row("in", "a", Order("one", 1), 1), Row("in", "a", Order("two", 0), time)])
    with pytest.raises(ProcessingError, match=r"in-0@1: InvalidTimestampError: its time is (negative|after)"):
        app.run()


def test_the_default_timestamp_extractor_holds_whatever_the_operators_could(spark, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).map_values(ks.value.str.upper(), value=str).to("out")
    types, later = {"in": (str, str), "out": (str, str)}, lambda record, partition_time: record.timestamp + 100
    app = Application(spark, tmp_path, builder, types, **{"default.timestamp.extractor": later}).create(
        "in", partitions=1
    )
    app.write([Row("in", "a", "tea", 1)]).run()
    assert app.rows("out") == [("a", "TEA", 101)]


def test_a_stream_that_nothing_follows_is_read_by_tasks(spark: Any, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    orders(builder)
    builder.stream("other", key=str, value=int).map_values(lambda number: number + 1, value=int).to("out")
    types = {"in": (str, Order), "other": (str, int), "out": (str, int)}
    app = Application(spark, tmp_path, builder, types).create("in", "other").write([*ROWS, Row("other", "k", 1, 9)])
    assert app.run().records_in == len(ROWS) + 1
    assert app.rows("out") == [("k", 2, 9)]
    paths = {row.operator: row.path for row in engine.explain(app.topology, Config.of(application_id="app"))}
    assert paths["KSTREAM-SOURCE-0000000000"] == "task"
    assert paths["KSTREAM-SOURCE-0000000001"] == "relational"
