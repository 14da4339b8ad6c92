"""Commits whose answer is lost: the thread goes on from what was committed, whether the commit counts or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kstreams import StreamThreadExceptionResponse
from kstreams.errors import FencedError, UncertainCommitError
from kstreams.runtime.native.streams import KafkaStreams
from tests.native.world import World, counted, lines, word_count


class Delegate:
    """Something else, with some methods of its own."""

    def __init__(self, to: Any) -> None:
        self._to = to

    def __getattr__(self, name: str) -> Any:
        return getattr(self._to, name)


class LosingAnswers(Delegate):
    """A log whose first commits get no answer: they count, or they never arrived."""

    def __init__(self, to: Any, counts: bool, times: int) -> None:
        super().__init__(to)
        self.counts, self.left = counts, times

    def producer(self, config: Any = None) -> Any:
        made = self._to.producer(config)
        return LosingProducer(made, self) if "transactional.id" in (config or {}) else made


class LosingProducer(Delegate):
    def __init__(self, to: Any, log: LosingAnswers) -> None:
        super().__init__(to)
        self._log = log

    def commit_transaction(self, offsets: Any = None, group: Any = None) -> None:
        if not self._log.left:
            self._to.commit_transaction(offsets, group)
            return
        self._log.left -= 1
        if self._log.counts:
            self._to.commit_transaction(offsets, group)
        raise UncertainCommitError("no answer")


@pytest.mark.parametrize("counts", [True, False])
def test_nothing_is_lost_or_doubled_where_the_outcome_of_commits_is_unknown(tmp_path: Path, counts: bool) -> None:
    world = World(tmp_path, **{"processing.guarantee": "exactly_once_v2", "commit.interval.ms": 1})
    world.create("lines", 2)
    world.create("counts", 1)
    world.write("lines", lines(300))
    with world.log() as log:
        losing = LosingAnswers(log, counts, times=3)
        streams = KafkaStreams(word_count(), world.settings, log=losing)
        streams.start(until_end=True)
        assert streams.wait(60)
    assert losing.left == 0
    assert world.table("counts", value=int) == counted(300)


class Fenced(Delegate):
    """A log whose transactions are taken over by somebody else."""

    def producer(self, config: Any = None) -> Any:
        made = self._to.producer(config)
        return FencedProducer(made) if "transactional.id" in (config or {}) else made


class FencedProducer(Delegate):
    def commit_transaction(self, offsets: Any = None, group: Any = None) -> None:
        raise FencedError("taken over")


def test_a_run_that_is_alone_asks_the_users_handler_when_it_is_fenced(tmp_path: Path) -> None:
    world = World(tmp_path, **{"processing.guarantee": "exactly_once_v2"})
    world.create("lines")
    world.create("counts")
    world.write("lines", lines(5))
    asked: list[BaseException] = []

    def answer(error: BaseException) -> StreamThreadExceptionResponse:
        asked.append(error)
        return StreamThreadExceptionResponse.SHUTDOWN_CLIENT

    with world.log() as log:
        streams = KafkaStreams(word_count(), world.settings, log=Fenced(log))
        streams.set_uncaught_exception_handler(answer)
        streams.start(until_end=True)
        with pytest.raises(FencedError):
            streams.wait(60)
    assert [type(error) for error in asked] == [FencedError]
