"""`ConnectorTask`: what a worker runs for one partition, of a source or of a sink."""

from __future__ import annotations

from typing import Protocol

from kstreams.kernel.batch import Batch

COMMIT_INTERVAL_MS = 500
MAX_UNCOMMITTED_ROWS = 100_000
MAX_UNCOMMITTED_BYTES = 1 << 30


class ConnectorTask(Protocol):
    """A task of a connector. After an error it is closed, and another one continues after the last commit."""

    @property
    def start_offset(self) -> int | None:
        """The offset at which a sink reads its topic. None for a source, which reads no topic."""
        ...

    @property
    def uncommitted_rows(self) -> int:
        """The number of rows since the last commit."""
        ...

    @property
    def uncommitted_bytes(self) -> int:
        """The number of bytes of these rows in the topic."""
        ...

    @property
    def has_uncommitted(self) -> bool:
        """True if a commit would change something."""
        ...

    @property
    def waiting_rows(self) -> int:
        """The number of rows that wait for another attempt, or behind such a row."""
        ...

    @property
    def oldest_wait_ms(self) -> int:
        """For how long the oldest of them has waited. 0 if there are none."""
        ...

    def take(self, batch: Batch) -> None:
        """Take records of the topic. Only a sink does."""
        ...

    def step(self) -> bool:
        """Read from the other system. Return whether there was something. A sink does nothing."""
        ...

    def commit(self) -> int | None:
        """Commit. Return the next offset of the topic for a sink, None for a source."""
        ...

    def close(self) -> None:
        """Discard what is not committed, and release everything."""
        ...


class CommitSchedule:
    """Says when a task commits: some time after the first row, or when there are many rows or bytes.

    Parameters
    ----------
    interval_ms, max_rows, max_bytes : int
    """

    def __init__(
        self,
        interval_ms: int = COMMIT_INTERVAL_MS,
        max_rows: int = MAX_UNCOMMITTED_ROWS,
        max_bytes: int = MAX_UNCOMMITTED_BYTES,
    ) -> None:
        self._interval_ms = interval_ms
        self._max_rows = max_rows
        self._max_bytes = max_bytes
        self._first_ms: int | None = None

    def is_due(self, task: ConnectorTask, now_ms: int) -> bool:
        """Return whether to commit now."""
        if not task.has_uncommitted:
            self._first_ms = None
            return False
        if self._first_ms is None:
            self._first_ms = now_ms
        is_large = task.uncommitted_rows >= self._max_rows or task.uncommitted_bytes >= self._max_bytes
        return is_large or now_ms - self._first_ms >= self._interval_ms

    def committed(self) -> None:
        """Note a commit."""
        self._first_ms = None
