"""`CommitReports`: what became of commits that nobody waited for, told at the next poll."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial

from kstreams.batch import TopicPartition
from kstreams.errors import LogError
from kstreams.log.api import OffsetAndMetadata, OnCommit

_logger = logging.getLogger("kstreams.groups")


Offsets = Mapping[TopicPartition, OffsetAndMetadata]


class CommitReports:
    """The reports of one consumer.

    Parameters
    ----------
    group : str or None
    """

    def __init__(self, group: str | None) -> None:
        self._group = group
        self._waiting: list[Callable[[], None]] = []

    def commit(self, commit: Callable[[Offsets], None], offsets: Offsets, on_commit: OnCommit | None) -> None:
        """Commit at once, so that later commits come later; without `on_commit` a log line says what failed."""
        error = None
        try:
            commit(offsets)
        except LogError as failed:
            error = failed
        if on_commit is not None:
            self._waiting.append(partial(on_commit, offsets, error))
        elif error is not None:
            _logger.warning("A commit of the group %s failed: %s", self._group, error)

    def tell(self) -> None:
        """Call who waits for a report."""
        while self._waiting:
            self._waiting.pop(0)()
