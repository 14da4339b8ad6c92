"""`PositionCommits`: commits positions under a transactional id exactly once, even if a response is lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from kstreams.errors import FencedError, LogError
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.clock import Clock
from kstreams.log.api import Log, OffsetAndMetadata, Producer

MAX_ATTEMPTS = 5
"""The attempts at one commit. Within an attempt, the home's client itself retries for a while."""

PAUSE_SECONDS = 0.5
_CALL_MS = 10_000
"""The longest time of a call. After a broker dies, some calls never end, whereas a new producer works at once."""

Committed = Mapping[TopicPartition, OffsetAndMetadata]


class PositionCommits:
    """The commits of one group by one process; a newer process fences an older one. Usable as a context manager.

    Parameters
    ----------
    log : Log
    group : str
        The consumer group, which is also the transactional id.
    clock : Clock
        Sleeps between two attempts at a commit.
    """

    def __init__(self, log: Log, group: str, clock: Clock) -> None:
        self._log = log
        self._group = group
        self._clock = clock
        self._producer: Producer | None = self._opened()
        self._last_committed: dict[TopicPartition, OffsetAndMetadata] = {}

    def commit(self, offsets: Committed) -> None:
        """Commit these offsets as one.

        Raises
        ------
        FencedError
            If a newer process uses or has used the transactional id.
        LogError
            If every attempt fails.
        """
        is_known = self._last_committed.keys() >= offsets.keys()
        before = {s: self._last_committed[s] for s in offsets} if is_known else self._committed(offsets)
        for attempts_left in reversed(range(MAX_ATTEMPTS)):
            try:
                self._commit(offsets, before)
                self._last_committed |= offsets
                return
            except FencedError:
                raise
            except LogError:
                self._drop()
                if not attempts_left:
                    raise
            self._clock.sleep(PAUSE_SECONDS)

    def close(self) -> None:
        """Release the producer."""
        self._drop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _commit(self, offsets: Committed, before: Committed) -> None:
        if self._producer is None:
            self._producer = self._opened()  # the transaction of the producer before is then committed or aborted
            current = self._committed(offsets)
            if current == offsets:
                return
            if current != before:
                raise FencedError(f"Another process has committed for {self._group!r}: this process ends.")
        self._producer.begin_transaction()
        self._producer.commit_transaction(offsets, self._group)

    def _opened(self) -> Producer:
        return self._log.producer({"transactional.id": self._group, "max.block.ms": _CALL_MS})

    def _committed(self, offsets: Committed) -> dict[TopicPartition, OffsetAndMetadata]:
        with self._log.admin() as admin:
            return admin.committed(self._group, list(offsets))

    def _drop(self) -> None:
        producer = self._producer
        self._producer = None
        if producer is not None:
            producer.close()
