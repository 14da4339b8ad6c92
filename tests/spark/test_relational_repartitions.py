"""State behind or before a repartition is one query of Spark's: its exchange takes the place of the topic."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.errors import ProcessingError
from kstreams.runtime.spark import engine
from tests.spark.running import IN_ONE_STEP, Application, Row
from tests.spark.windowed_topologies import CACHED, PAID, TIMED, Build, Order, orders, paid_by
from tests.support.examples import few_of

pytestmark = pytest.mark.spark

RELATIONAL = {"spark.kstreams.path": "relational"}
WINDOW = ks.JoinWindows(before=6, after=6, grace=100)


def kind_of(key: str | None, order: Order) -> str:
    return f"{order.item}{order.amount % 3}"


def named(windows: Any) -> None:
    windows.to_stream(lambda key, _: f"{key.key}@{key.window.start_ms}", key=str).to("out", value=int)


def counts_by_new_keys(builder: ks.StreamsBuilder) -> None:
    kept = orders(builder).filter(lambda key, order: order.amount != 4)
    kept.select_key(kind_of, key=str).group_by_key().count().to_stream().to("out")


def windows_by_new_keys(builder: ks.StreamsBuilder) -> None:
    grouped = orders(builder).group_by(kind_of, key=str)
    counted = grouped.windowed_by(ks.TimeWindows(size=10, advance=5, grace=100)).count()
    named(counted.suppress(ks.Suppressed.until_window_closes()))


def updates_by_new_keys(builder: ks.StreamsBuilder) -> None:
    grouped = orders(builder).group_by(ks.col("item"), key=str)
    named(grouped.windowed_by(ks.TimeWindows(size=10, grace=100)).count())


def sums_by_new_keys(builder: ks.StreamsBuilder) -> None:
    amounts = orders(builder).map(lambda key, order: (kind_of(key, order), order.amount), key=str, value=int)
    named(amounts.group_by_key().windowed_by(ks.TimeWindows(size=10, grace=100)).reduce(lambda old, new: old + new))


def counts_behind_two_repartitions(builder: ks.StreamsBuilder) -> None:
    first = orders(builder).select_key(kind_of, key=str).repartition(name="first", partitions=3)
    second = first.map_values(lambda order: order.amount, value=int).select_key(lambda key, amount: key[:3], key=str)
    second.group_by_key().count().to_stream().to("out")


def paid_by_new_keys(builder: ks.StreamsBuilder) -> Any:
    paid = builder.stream("paid", key=str, value=str)
    return paid.filter(lambda key, by: by != "p3").select_key(lambda key, by: f"tea{int(by[-1]) % 3}", key=str)


def joined_by_new_keys(builder: ks.StreamsBuilder) -> None:
    sold, paid = orders(builder).select_key(kind_of, key=str), paid_by_new_keys(builder)
    sold.join(paid, paid_by, windows=WINDOW, value=str, other_value=str).to("out")


def left_joined_by_new_keys(builder: ks.StreamsBuilder) -> None:
    sold, paid = orders(builder).select_key(kind_of, key=str), paid_by_new_keys(builder)
    sold.left_join(paid, paid_by, windows=WINDOW, value=str, other_value=str).to("out")


def outer_joined_by_new_keys(builder: ks.StreamsBuilder) -> None:
    sold, paid = orders(builder).select_key(kind_of, key=str), paid_by_new_keys(builder)
    sold.outer_join(paid, paid_by, windows=WINDOW, value=str, other_value=str).to("out")


def looked_up_by_new_keys(builder: ks.StreamsBuilder) -> None:
    prices = builder.table("prices", key=str, value=int)
    sold = orders(builder).select_key(kind_of, key=str)
    sold.join(prices, lambda order, price: order.amount * price, value=int).to("out")


def windows_before_a_repartition(builder: ks.StreamsBuilder) -> None:
    windows = orders(builder).group_by_key().windowed_by(ks.TimeWindows(size=10, grace=100))
    final = windows.emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE).count().to_stream()
    counts = final.map(lambda key, count: (f"{count} at {key.window.start_ms}", 1), key=str, value=int)
    counts.repartition(name="again").to("out")


BUILDS: dict[Build, type] = {
    counts_by_new_keys: int,
    windows_by_new_keys: int,
    updates_by_new_keys: int,
    sums_by_new_keys: int,
    counts_behind_two_repartitions: int,
    joined_by_new_keys: str,
    left_joined_by_new_keys: str,
    outer_joined_by_new_keys: str,
    looked_up_by_new_keys: int,
    windows_before_a_repartition: int,
}
UPDATES = (counts_by_new_keys, updates_by_new_keys, sums_by_new_keys, counts_behind_two_repartitions)
INPUT = [
    *(Row("prices", f"tea{at}", at + 2, 0) for at in range(2)),
    *(row for row in TIMED if row.key is not None),
    *(row for row in PAID if row.key is not None),
]


def application(spark: Any, folder: Path, build: Build, value: type, **settings: Any) -> Application:
    builder = ks.StreamsBuilder()
    build(builder)
    types = {"in": (str, Order), "paid": (str, str), "prices": (str, int), "out": (str, value)}
    return Application(spark, folder, builder, types, **CACHED, **settings).create("in", "paid", "prices")


def paths(app: Application) -> dict[str, tuple[str, str]]:
    found = engine.explain(app.topology, Config.of({**app.settings, **RELATIONAL}))
    return {row.operator: (row.path, row.why) for row in found}


def found(app: Application, build: Build, prefix: str) -> Any:
    """All rows, in no order; of updates, the last of each key: tasks and Spark give them when they come."""
    rows = app.rows("out", prefix=prefix)
    if build in UPDATES:
        return {key: value for key, value, _ in rows}
    return sorted((str(key), repr(value)) for key, value, _ in rows)


def prefixed(folder: Path, path: str) -> dict[str, str]:
    """The settings of a path whose results and checkpoint lie beside those of the other."""
    where = {"spark.kstreams.prefix": f"{path}-", "spark.kstreams.checkpoint": str(folder / path)}
    return {"spark.kstreams.path": path} | where


@pytest.mark.parametrize("build", few_of(BUILDS, 1))
@pytest.mark.parametrize("per_trigger", [11, IN_ONE_STEP])
def test_one_query_gives_the_results_of_tasks_and_of_the_native_engine(
    spark: Any, tmp_path: Path, build: Build, per_trigger: int
) -> None:
    app = application(spark, tmp_path, build, BUILDS[build], **{"spark.kstreams.max.records": per_trigger})
    app.write(INPUT)
    assert {path for path, _ in paths(app).values()} == {"relational"}
    results = {}
    for path in ("relational", "task"):
        app.run(**prefixed(tmp_path, path))
        results[path] = found(app, build, f"{path}-")
    assert not [topic for topic in app.topics() if topic.endswith("-repartition")]
    app.run_natively()
    results["native"] = found(app, build, "")
    assert results["native"]
    assert results == dict.fromkeys(results, results["native"])


def test_explain_says_which_query_computes_what_stands_before_a_repartition() -> None:
    builder = ks.StreamsBuilder()
    counts_by_new_keys(builder)
    decisions = engine.explain(builder.build(), Config.of({"application.id": "app", **RELATIONAL}))
    said = {row.sub_topology: row.why.endswith("computed in the query of sub-topology 1") for row in decisions}
    assert said == {0: True, 1: False}


def test_the_query_goes_on_from_run_to_run(spark: Any, tmp_path: Path) -> None:
    app = application(spark, tmp_path, counts_by_new_keys, int, **RELATIONAL)
    for total in (1, 2, 3):
        app.write([Row("in", f"any {total}", Order("tea", 6), total, total % 2)])
        progress = app.run(until_end=False)
        assert (progress.records_in, app.rows("out")[-1]) == (1, ("tea0", total, total))
    assert app.run(until_end=False).commits == 0


def test_a_function_that_fails_before_the_exchange_names_its_record(spark: Any, tmp_path: Path) -> None:
    def build(builder: ks.StreamsBuilder) -> None:
        keyed = orders(builder).select_key(lambda key, order: str(7 // order.amount), key=str, name="inverse")
        keyed.group_by_key().count().to_stream().to("out")

    app = application(spark, tmp_path, build, int, **RELATIONAL)
    app.write([Row("in", "a", Order("one", 1), 1, 0), Row("in", "a", Order("none", 0), 2, 1)])
    with pytest.raises(ProcessingError, match=r"inverse \(select_key\(\) at .*in-1@0: ZeroDivisionError"):
        app.run()


def test_a_function_before_a_window_does_not_see_the_end_of_the_input(spark: Any, tmp_path: Path) -> None:
    def build(builder: ks.StreamsBuilder) -> None:
        kept = orders(builder).filter(lambda key, order: order.amount > 1).group_by_key()
        windows = kept.windowed_by(ks.TimeWindows(size=10, grace=0)).emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE)
        named(windows.count())

    app = application(spark, tmp_path, build, int, **RELATIONAL)
    app.write([Row("in", "a", Order("tea", amount), 5, 0) for amount in range(4)]).run()
    assert app.table("out") == {"a@0": 2}


def test_a_repartition_topic_that_another_sink_shares_its_records_with_is_left_to_tasks(
    spark: Any, tmp_path: Path
) -> None:
    def build(builder: ks.StreamsBuilder) -> None:
        keyed = orders(builder).select_key(kind_of, key=str)
        keyed.group_by_key().count().to_stream().to("out")
        keyed.to("paid", value=Order)

    app = application(spark, tmp_path, build, int)
    taken = paths(app)
    whole = "a sub-topology that cannot be in one query with it writes or reads its repartition topic"
    assert whole in {why for path, why in taken.values() if path == "task"}
    assert "relational" in {path for path, _ in taken.values()}
    app.write(INPUT[2:8]).run(**RELATIONAL)
    assert sum(app.table("out").values()) == 6


def test_what_stands_before_two_repartitions_is_computed_by_the_query_behind_either(spark: Any, tmp_path: Path) -> None:
    def build(builder: ks.StreamsBuilder) -> None:
        kept = orders(builder).filter(lambda key, order: order.amount > 3)
        kept.group_by(kind_of, key=str).count().to_stream().to("out")
        kept.group_by(lambda key, order: order.item, key=str).count().to_stream().to("prices")

    app = application(spark, tmp_path, build, int)
    assert {path for path, _ in paths(app).values()} == {"relational"}
    app.write(row for row in INPUT if row.topic != "prices").run(**RELATIONAL)
    app.run_natively()
    for topic in ("out", "prices"):
        rows = [{key: value for key, value, _ in app.rows(topic, prefix)} for prefix in ("spark-", "")]
        assert rows[0]
        assert rows[0] == rows[1]


@pytest.mark.parametrize("state_first", [True, False])
def test_what_the_application_itself_writes_and_reads_keeps_state_in_tasks(
    spark: Any, tmp_path: Path, state_first: bool
) -> None:
    """Rows of such topics pass within a step: a query of its own would neither see them nor give them."""

    def build(builder: ks.StreamsBuilder) -> None:
        first, second = builder.stream("prices", key=str, value=int), builder.stream("paid", key=str, value=int)
        if state_first:
            first.group_by_key().count().to_stream().to("paid")
            second.map_values(lambda count: count + 1, value=int).to("out")
        else:
            first.map_values(lambda price: price + 1, value=int).to("paid")
            second.group_by_key().count().to_stream().to("out")

    builder = ks.StreamsBuilder()
    build(builder)
    types = {"prices": (str, int), "paid": (str, int), "out": (str, int)}
    settings = {**RELATIONAL, "spark.kstreams.prefix": ""}
    app = Application(spark, tmp_path, builder, types, **settings).create("prices", "paid")
    app.write([Row("prices", "a", at, at) for at in range(1, 4)]).run()
    whole = "a query with state neither reads nor writes a topic that the application itself writes and reads"
    assert whole in {why for path, why in paths(app).values() if path == "task"}
    assert [value for _, value, _ in app.rows("out", "")] == ([2, 3, 4] if state_first else [1, 2, 3])
