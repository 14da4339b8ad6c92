"""The relational path gives what tasks give, and what the test driver gives; `explain` says which path is taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.dsl.operator import operators
from kstreams.errors import LogError, ProcessingError
from kstreams.runtime.spark import engine
from kstreams.serdes import SessionWindowedSerde, serde_of
from tests.spark import table_topologies, test_relational_deduplication, test_relational_global_tables
from tests.spark.running import IN_ONE_STEP, Application, Row, changelog
from tests.spark.test_relational_keyed import BUILDS
from tests.spark.windowed_topologies import (
    CACHED,
    PAID,
    SELF_JOINS,
    TIMED,
    UPDATED,
    WINDOWED,
    Build,
    Order,
    final_counts,
    hopping_counts,
    orders,
    session_counts,
    updated_counts,
    windows,
)
from tests.support.examples import few_of

pytestmark = pytest.mark.spark


ROWS = [
    Row("in", "a", Order("tea", 3, 1.5), 1),
    Row("in", "b", Order("cup", 1), 2),
    Row("in", None, Order("pot", 2, 20.0), 3),
    Row("in", "a", None, 4),
    Row("in", "c", Order("größe", -7, 0.0), 5),
    Row("in", "b", Order("tea", 4, 2.5), 6),
]


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


CASES: list[tuple[Build, type]] = [
    (by_expression, float),
    (by_function, str),
    (new_keys, int),
    (one_to_many, str),
    (branches, str),
    (through_a_repartition, int),
]


@pytest.mark.parametrize(("build", "value"), few_of(CASES, 2), ids=[build.__name__ for build, _ in CASES])
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


@pytest.mark.parametrize(("build", "value"), few_of(WINDOWED, 2), ids=[build.__name__ for build, _ in WINDOWED])
@pytest.mark.parametrize("per_trigger", [12, IN_ONE_STEP])
def test_final_results_of_windows_are_those_of_the_tasks_and_of_the_native_engine(
    spark, tmp_path: Path, build: Build, value: type, per_trigger: int
) -> None:
    builder = ks.StreamsBuilder(SELF_JOINS)
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
    return sorted((str(key), repr(result)) for key, result, _ in app.rows("out", prefix=prefix))


@pytest.mark.parametrize(("build", "value"), few_of(UPDATED, 1), ids=[build.__name__ for build, _ in UPDATED])
@pytest.mark.parametrize("per_trigger", [7, IN_ONE_STEP])
def test_updates_of_windows_lead_to_the_tables_of_the_tasks_and_of_the_native_engine(
    spark, tmp_path: Path, build: Build, value: type, per_trigger: int
) -> None:
    builder = ks.StreamsBuilder()
    build(builder)
    types, settings = {"in": (str, Order), "out": (str, value)}, {"spark.kstreams.max.records": per_trigger} | CACHED
    app = Application(spark, tmp_path, builder, types, **settings).create("in").write(TIMED)
    app.run_natively()
    found = {"native": latest(app, "")}
    for path in ("relational", "task"):
        of_path = {"spark.kstreams.path": path, "spark.kstreams.prefix": f"{path}-"}
        app.run(**of_path, **{"spark.kstreams.checkpoint": str(tmp_path / path)})
        found[path] = latest(app, f"{path}-")
    assert {row.path for row in engine.explain(builder.build(), app_config("relational"))} == {"relational"}
    assert found == dict.fromkeys(found, found["native"])


def test_a_window_goes_on_with_its_updates_in_the_next_run(spark, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    updated_counts(builder)
    types, settings = {"in": (str, Order), "out": (str, int)}, {"spark.kstreams.path": "relational"}
    app = Application(spark, tmp_path, builder, types, **settings).create("in", partitions=1)
    for time in (1, 2):
        app.write([Row("in", "a", Order("tea", time), time)])
        app.run()
    assert [(key, count) for key, count, _ in app.rows("out")] == [("a@0", 1), ("a@0", 2)]


def windows_across_windows(builder: ks.StreamsBuilder) -> None:
    tens = final_counts(orders(builder), ks.TimeWindows(size=10, grace=5))
    final_counts(tens.map(lambda key, n: ("all", n), key=str, value=int), ks.TimeWindows(size=15, grace=5)).to("out")


def windows_of_windows_twice(builder: ks.StreamsBuilder) -> None:
    tens = final_counts(orders(builder), ks.TimeWindows(size=10, grace=5))
    named = tens.map(lambda key, n: (key.key, n), key=str, value=int)
    for size in (20, 30):
        final_counts(named, ks.TimeWindows(size=size, grace=5)).to("out")


def windows_of_unlike_grace(builder: ks.StreamsBuilder) -> None:
    for grace in (5, 7):
        final_counts(orders(builder), ks.TimeWindows(size=10, grace=grace)).to("out")


def windows_beside_a_join(builder: ks.StreamsBuilder) -> None:
    paid, taken = builder.stream("paid", key=str, value=str), orders(builder)
    final_counts(taken, ks.TimeWindows(size=10, grace=5)).to("out")
    taken.join(paid, lambda order, by: by, windows=ks.JoinWindows(before=1, after=1, grace=5), value=str).to("paid-out")


@pytest.mark.parametrize(
    ("build", "why"),
    [
        (windows_across_windows, "its windows do not consist of whole windows of"),
        (windows_of_windows_twice, "its results branch, and one branch goes to the state of"),
        (windows_of_unlike_grace, "its grace differs from that of"),
        (windows_beside_a_join, "Spark keeps only one of 2 states in a query"),
    ],
)
def test_states_that_cannot_be_one_query_run_as_tasks_and_say_why(build: Build, why: str) -> None:
    builder = ks.StreamsBuilder()
    build(builder)
    decisions = engine.explain(builder.build(), app_config("relational"))
    assert "task" in {row.path for row in decisions}
    assert any(why in row.why for row in decisions)


def latest(app: Application, prefix: str) -> dict[str, str]:
    """The last value of each key."""
    return {str(key): repr(result) for key, result, _ in app.rows("out", prefix=prefix)}


def test_the_sessions_of_a_key_lie_together_on_either_path(spark, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    session_counts(builder)
    types = {"in": (str, Order), "out": (SessionWindowedSerde(serde_of(str)), int)}
    app = Application(spark, tmp_path, builder, types, **CACHED).create("in")
    app.write(Row("in", f"k{i % 9}", Order("tea", 1), 1 + 5 * i) for i in range(60)).run_natively()
    app.run(**{"spark.kstreams.path": "relational"})
    found = [[sorted(map(repr, rows)) for rows in app.partitions("out", prefix)] for prefix in ("", "spark-")]
    assert found[0] == found[1]
    assert [bool(rows) for rows in found[0]] == [True, True]


def test_every_rule_of_the_relational_path_has_a_case_on_all_engines() -> None:
    compared = set()
    others = (table_topologies, test_relational_global_tables, test_relational_deduplication)
    builds = [build for family in others for build in family.BUILDS]
    for build in (*dict(CASES), *dict(WINDOWED), *BUILDS, *builds):
        builder = ks.StreamsBuilder(SELF_JOINS)
        build(builder)
        made = builder.build()
        taken = {row.operator for row in engine.explain(made, app_config("relational")) if row.path == "relational"}
        compared |= {type(node) for node in made.graph if node.name in taken}
    ours = {kind for kind in operators.node_types if kind.__module__.startswith("kstreams.")}
    assert {kind for kind in ours if operators.of_type(kind).spark.lower} == compared


def test_by_default_windows_run_as_tasks_and_explain_says_what_would_differ() -> None:
    builder = ks.StreamsBuilder()
    windows(builder)
    rows = {row.operator: row for row in engine.explain(builder.build(), app_config("auto"))}
    assert {row.path for row in rows.values()} == {"task"}
    assert any("a late record may still be counted" in row.why for row in rows.values())


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
    by_item = orders(builder).group_by(ks.col("item"), key=str)
    by_item.count().to_stream().peek(lambda item, count: None).to("out")
    decisions = engine.explain(builder.build(), app_config("relational"))
    assert {(decision.sub_topology, decision.path) for decision in decisions} == {(0, "relational"), (1, "task")}
    why = {decision.operator.rstrip("0123456789-"): decision.why for decision in decisions}
    assert why["KSTREAM-PEEK"] == "its function is called for its effect"
    assert why["KSTREAM-AGGREGATE"].startswith("with KSTREAM-PEEK-")
    assert all("tests/spark/" in (decision.declared_at or "") for decision in decisions)


def test_an_operator_off_the_path_takes_its_sub_topology_with_it() -> None:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).peek(lambda k, v: None, name="look").to("out")
    decisions = {row.operator: row for row in engine.explain(builder.build(), app_config("relational"))}
    assert decisions["look"].why == "its function is called for its effect"
    assert {row.path for row in decisions.values()} == {"task"}
    assert "with look, in one sub-topology" in {row.why for row in decisions.values()}


def test_stateless_parts_run_as_tasks_unless_asked_otherwise() -> None:
    builder = ks.StreamsBuilder()
    by_expression(builder)
    decisions = engine.explain(builder.build(), app_config("auto"))
    assert {row.path for row in decisions} == {"task"}
    assert all(row.why.startswith("faster as tasks: ") for row in decisions)


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
    app = Application(spark, tmp_path, builder, types, **{"spark.kstreams.path": "relational"}).create("in", "other")
    app.write([*ROWS, Row("other", "k", 1, 9)])
    assert app.run().records_in == len(ROWS) + 1
    assert app.rows("out") == [("k", 2, 9)]
    paths = {row.operator: row.path for row in engine.explain(app.topology, app_config("relational"))}
    assert paths["KSTREAM-SOURCE-0000000000"] == "task"
    assert paths["KSTREAM-SOURCE-0000000001"] == "relational"
