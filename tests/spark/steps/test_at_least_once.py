"""Steps at least once: a repeated step writes its rows again, but counts no record twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kstreams.errors import LogError
from kstreams.runtime.spark.io.sink import LogSink
from tests.spark.running import Application
from tests.spark.word_count import COUNTS, LINES, WORD_TYPES, word_count

pytestmark = pytest.mark.spark


@pytest.fixture
def words(spark: Any, tmp_path: Path) -> Application:
    settings = {"spark.kstreams.max.records": 2, "processing.guarantee": "at_least_once"}
    return Application(spark, tmp_path, word_count(), WORD_TYPES, **settings).create("lines").write(LINES)


def test_without_failures_each_record_counts_once(words: Application) -> None:
    words.run()
    assert words.table("counts") == COUNTS
    assert len(words.rows("counts")) == sum(COUNTS.values())


def test_a_step_that_dies_before_its_commit_writes_its_rows_twice(
    words: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit, steps = LogSink.commit, []

    def dying(self, step, transactions, positions):
        steps.append(step.number)
        if len(steps) == 2:
            raise LogError("the disk is gone")
        commit(self, step, transactions, positions)

    monkeypatch.setattr(LogSink, "commit", dying)
    with pytest.raises(LogError, match="the disk is gone"):
        words.run()
    words.run()
    assert steps == [0, 2, 2, 3]
    assert words.table("counts") == COUNTS
    assert len(words.rows("counts")) > sum(COUNTS.values())
