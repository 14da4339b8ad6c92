"""The loop of steps runs a step again where Spark has given up on it, and passes on whatever else ends it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from kstreams.errors import KStreamsError
from kstreams.kernel.batch import TopicPartition
from kstreams.runtime.spark.step_loop import MAX_ATTEMPTS, StepLoop
from kstreams.runtime.spark.steps import AppliedStep

pytestmark = pytest.mark.spark

SOURCE = TopicPartition("in", 0)
GIVEN_UP = (
    "Job aborted due to stage failure: A shuffle map stage with indeterminate output was failed and retried. However, "
    "Spark cannot rollback the ResultStage 5 to re-process the input data, and has to fail this job."
)


class Steps:
    """The steps of an application over ten records, of which the first attempts fail."""

    def __init__(self, failures: int, said: str) -> None:
        self.sink = self
        self._failures, self._said = failures, said
        self.attempts, self._applied, self._at = 0, AppliedStep(), 0

    def last_step(self) -> AppliedStep:
        return self._applied

    def positions(self) -> dict[TopicPartition, int]:
        return {SOURCE: self._at}

    def apply(self, step: int, parent: AppliedStep, rows: Any, positions: Mapping[TopicPartition, int]) -> None:
        self.attempts += 1
        if self.attempts <= self._failures:
            raise RuntimeError(self._said)
        self._applied, self._at = AppliedStep(step), positions[SOURCE]

    def settle(self) -> None:
        pass

    def close(self) -> None:
        pass


class Input:
    """A topic of ten records."""

    def prepareForTriggerAvailableNow(self) -> None:
        pass

    def latestOffset(self, start: Any, limit: Any) -> dict[str, dict[str, int]]:
        return {"in": {"0": 10}}

    def stop(self) -> None:
        pass


def run(session: Any, steps: Any) -> None:
    given: Any = Input()
    loop = StepLoop(session, given, ReadMaxRows(10), lambda step, parent: None, lambda start, end: None, steps)
    loop.start(bounded=True, pause_ms=1)
    try:
        while not loop.ended(0.1):
            pass
    finally:
        loop.stop()


def test_a_step_on_which_spark_gives_up_is_run_again(spark) -> None:
    steps = Steps(MAX_ATTEMPTS - 1, GIVEN_UP)
    run(spark, steps)
    assert steps.attempts == MAX_ATTEMPTS
    assert steps.positions() == {SOURCE: 10}


def test_not_for_ever(spark) -> None:
    steps = Steps(MAX_ATTEMPTS, GIVEN_UP)
    with pytest.raises(KStreamsError, match="indeterminate output"):
        run(spark, steps)
    assert steps.attempts == MAX_ATTEMPTS


def test_whatever_else_ends_a_step_ends_the_run(spark) -> None:
    steps = Steps(1, "the disk is gone")
    with pytest.raises(KStreamsError, match="the disk is gone"):
        run(spark, steps)
    assert steps.attempts == 1
