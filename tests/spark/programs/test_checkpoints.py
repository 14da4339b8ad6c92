"""A checkpoint goes on with the queries that it was made for, and with no others: their state is Spark's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.errors import TopologyError
from kstreams.serdes import TimeWindowedSerde, serde_of
from tests.spark.running import Application, Row

pytestmark = pytest.mark.spark

RELATIONAL = {"spark.kstreams.path": "relational"}
ROWS = [Row("in", "ab"[at % 2], at, at) for at in range(6)]
Windows = Callable[[Any], Any]


def counted(emit: ks.EmitStrategy, *, by_new_keys: bool = False) -> ks.StreamsBuilder:
    builder = ks.StreamsBuilder()
    numbers = builder.stream("in", key=str, value=int)
    grouped = numbers.group_by((ks.value % 2).cast(str), key=str) if by_new_keys else numbers.group_by_key()
    windows = grouped.windowed_by(ks.TimeWindows(size=10, grace=0)).emit_strategy(emit)
    windows.count().to_stream().to("out")
    return builder


def application(spark: Any, folder: Path, builder: ks.StreamsBuilder) -> Application:
    return Application(spark, folder, builder, {"in": (str, int), "out": (TimeWindowedSerde(serde_of(str), 10), int)})


UPDATES, FINAL = ks.EmitStrategy.ON_WINDOW_UPDATE, ks.EmitStrategy.ON_WINDOW_CLOSE


@pytest.mark.parametrize(("first", "then"), [(UPDATES, FINAL), (FINAL, UPDATES)])
def test_updates_do_not_go_on_as_final_results_nor_the_other_way(
    spark: Any, tmp_path: Path, first: ks.EmitStrategy, then: ks.EmitStrategy
) -> None:
    application(spark, tmp_path, counted(first)).create("in").write(ROWS).run(until_end=False, **RELATIONAL)
    with pytest.raises(TopologyError, match="sub-topology 0"):
        application(spark, tmp_path, counted(then)).run(until_end=False, **RELATIONAL)


@pytest.mark.parametrize(("first", "then"), [("relational", "task"), ("task", "relational")])
def test_a_query_with_state_does_not_go_on_as_tasks_nor_the_other_way(
    spark: Any, tmp_path: Path, first: str, then: str
) -> None:
    app = application(spark, tmp_path, counted(UPDATES, by_new_keys=True)).create("in").write(ROWS)
    app.run(until_end=False, **{"spark.kstreams.path": first})
    with pytest.raises(TopologyError, match="sub-topology 1"):
        app.run(until_end=False, **{"spark.kstreams.path": then})


def test_the_same_queries_go_on(spark: Any, tmp_path: Path) -> None:
    app = application(spark, tmp_path, counted(UPDATES, by_new_keys=True)).create("in").write(ROWS)
    app.run(until_end=False, **RELATIONAL)
    app.write([Row("in", "a", 2, 7)]).run(until_end=False, **RELATIONAL)
    assert sorted(app.table("out").values()) == [3, 4]


def test_a_query_goes_on_whose_driver_was_lost_before_spark_knew_that_a_batch_was_committed(
    spark: Any, tmp_path: Path
) -> None:
    """The log has committed the rows and positions of the batch, and tasks its state: it must not run again."""
    app = application(spark, tmp_path, counted(UPDATES, by_new_keys=True)).create("in").write(ROWS)
    app.run(until_end=False, **RELATIONAL)
    commits = tmp_path / "checkpoint" / "app" / "query-1" / "commits"
    last = max(int(file.name) for file in commits.iterdir() if file.name.isdecimal())
    (commits / str(last)).unlink()
    (commits / f".{last}.crc").unlink(missing_ok=True)
    app.write([Row("in", "a", 2, 7)]).run(until_end=False, **RELATIONAL)
    assert sorted(app.table("out").values()) == [3, 4]
