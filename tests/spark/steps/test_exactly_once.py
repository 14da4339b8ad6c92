"""Every step counts once, wherever a run was interrupted."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from kstreams.config import Config
from kstreams.errors import FencedError, LogError, StateError
from kstreams.log import open_log
from kstreams.runtime.spark import engine
from kstreams.runtime.spark.io.sink import LogSink
from kstreams.runtime.spark.runner import driver_lock
from kstreams.runtime.spark.storage.local import LocalStorage
from tests.spark.running import Application
from tests.spark.word_count import COUNTS, LINES, WORD_TYPES, word_count

pytestmark = pytest.mark.spark


@pytest.fixture
def words(spark, tmp_path: Path) -> Application:
    settings = {"spark.kstreams.max.records": 2}
    return Application(spark, tmp_path, word_count(), WORD_TYPES, **settings).create("lines").write(LINES)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_run_that_dies_at_the_commit_goes_on_with_the_same_step(
    words: Application, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    commit, steps = LogSink.commit, []

    def dying(self, step, transactions, positions):
        steps.append(step.number)
        if len(steps) == 2 and moment == "before":
            raise LogError("the disk is gone")
        commit(self, step, transactions, positions)
        if len(steps) == 2:
            raise LogError("the disk is gone")

    monkeypatch.setattr(LogSink, "commit", dying)
    with pytest.raises(LogError, match="the disk is gone"):
        words.run()
    words.run()
    assert words.table("counts") == COUNTS
    assert len(words.rows("counts")) == sum(COUNTS.values())
    assert steps == ([0, 2, 2, 3] if moment == "before" else [0, 2, 3])


def test_a_step_that_is_run_again_ends_where_it_was_to_end(words: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    commit, ends = LogSink.commit, []

    def dying(self, step, transactions, positions):
        ends.append((step.number, dict(positions)))
        if len(ends) == 2:
            raise LogError("the disk is gone")
        commit(self, step, transactions, positions)

    monkeypatch.setattr(LogSink, "commit", dying)
    with pytest.raises(LogError, match="the disk is gone"):
        words.run(until_end=False)
    words.write(LINES).run(until_end=False, **{"spark.kstreams.max.records": 1000})
    assert ends[2] == ends[1]
    assert words.table("counts") == {word: 2 * count for word, count in COUNTS.items()}


def test_a_newer_driver_keeps_an_older_one_from_committing(words: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = LogSink.commit

    def overtaken(self, step, transactions, positions):
        with open_log(words.folder / "log") as log:
            log.producer({"transactional.id": "app-spark"}).close()
        commit(self, step, transactions, positions)

    monkeypatch.setattr(LogSink, "commit", overtaken)
    with pytest.raises(FencedError):
        words.run()
    assert words.rows("counts") == []


def test_a_log_that_knows_nothing_of_the_checkpoint_is_noticed(words: Application) -> None:
    words.run(until_end=False)
    with open_log(words.folder / "log") as log, log.admin() as admin:
        admin.delete_group("app-spark")
    words.write(LINES)
    with pytest.raises(StateError, match="has the plan of step 2, but the last step in the log is none"):
        words.run()


@pytest.mark.parametrize("path", ["auto", "task"])
def test_a_new_checkpoint_starts_anew(words: Application, tmp_path: Path, path: str) -> None:
    words.run(**{"spark.kstreams.path": path})
    words.run(**{"spark.kstreams.path": path, "spark.kstreams.checkpoint": str(tmp_path / "another")})
    assert len(words.rows("counts")) == 2 * sum(COUNTS.values())
    assert words.table("counts") == COUNTS


def test_after_a_reset_everything_is_processed_again(words: Application) -> None:
    config, told = Config.of(words.settings), []
    engine.run(words.topology, config, until_end=True, on_progress=lambda progress: told.append(progress.records_in))
    assert told[-1] == len(LINES)
    engine.run(words.topology, config, until_end=True)
    assert len(words.rows("counts")) == sum(COUNTS.values())
    with pytest.raises(StateError, match="is in use by process"), driver_lock(config, shared=True):
        engine.reset(words.topology, config)
    told_by = [[each.what for each in engine.reset(words.topology, config, dry_run=dry)] for dry in (True, False)]
    assert told_by == [["checkpoint", "offsets"]] * 2
    assert engine.reset(words.topology, config) == []
    engine.run(words.topology, config, until_end=True)
    assert len(words.rows("counts")) == 2 * sum(COUNTS.values())
    assert words.table("counts") == COUNTS


def test_a_reset_that_was_interrupted_does_not_go_on_with_a_part_of_the_state(
    words: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = Config.of(words.settings)
    words.run(until_end=False)
    with monkeypatch.context() as broken:
        broken.setattr(LocalStorage, "clear", lambda storage: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            engine.reset(words.topology, config)
    with pytest.raises(StateError, match="has the plan of step"):
        words.run()
    engine.reset(words.topology, config)
    words.run()
    assert words.table("counts") == COUNTS


def test_a_run_without_end_goes_on_until_it_is_stopped(words: Application) -> None:
    stop, config = threading.Event(), Config.of(words.settings)
    engine.run(
        words.topology,
        config,
        on_progress=lambda progress: stop.set() if progress.lag == 0 else None,
        stop=stop,
    )
    assert words.table("counts") == COUNTS
