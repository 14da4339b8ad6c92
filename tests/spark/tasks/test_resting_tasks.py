"""Tasks without records: they do nothing and write nothing in a step, unless something in them waits for a time."""

from __future__ import annotations

from pathlib import Path

import pytest

import kstreams as ks
from tests.spark.running import Application, Row

pytestmark = pytest.mark.spark

STEPS, PARTITIONS = 6, 4
TYPES = {"in": (str, str), "out": (str, int)}
ONE_ROW_EACH = {"spark.kstreams.max.records": 1}


def application(spark, folder: Path, builder: ks.StreamsBuilder) -> Application:
    """Records in the first partition alone, one for each step."""
    rows = [Row("in", "k", "v", at, 0) for at in range(STEPS)]
    return Application(spark, folder, builder, TYPES, **ONE_ROW_EACH).create("in", partitions=PARTITIONS).write(rows)


def steps_of_task(folder: Path, partition: int) -> int:
    """How many steps have left a state of a task."""
    return len(list((folder / "checkpoint").rglob(f"0_{partition}/*.changes")))


def test_a_task_without_records_leaves_no_state_in_a_step(spark, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).group_by_key().count().to_stream().to("out")
    app = application(spark, tmp_path, builder)
    assert app.run(until_end=False).commits == STEPS
    assert app.table("out") == {"k": STEPS}
    assert [steps_of_task(tmp_path, partition) for partition in range(PARTITIONS)] == [STEPS, 1, 1, 1]


def test_it_goes_on_with_its_next_record(spark, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).group_by_key().count().to_stream().to("out")
    app = application(spark, tmp_path, builder)
    app.run(until_end=False)
    app.write([Row("in", "late", "v", STEPS + at, 3) for at in range(2)]).run()
    assert app.table("out") == {"k": STEPS, "late": 2}


class Clock(ks.Processor):
    """Tells its task and the time, at every moment."""

    def init(self, context):
        def tell(now: int) -> None:
            context.forward(ks.Record(key=str(context.task_id), value=now, timestamp=now))

        context.schedule(1, ks.PunctuationType.WALL_CLOCK_TIME, tell)

    def process(self, record):
        pass


def test_a_task_in_which_a_punctuator_waits_runs_in_every_step(spark, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).process(Clock, key=str, value=int).to("out")
    app = application(spark, tmp_path, builder)
    app.run(until_end=False)
    assert steps_of_task(tmp_path, 3) == STEPS
    assert {task for task, _, _ in app.rows("out")} == {f"0_{partition}" for partition in range(PARTITIONS)}
