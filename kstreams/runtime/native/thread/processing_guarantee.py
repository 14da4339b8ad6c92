"""`ProcessingGuarantee`: at least once or exactly once, by the setting `processing.guarantee`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kstreams.errors import CommitFailedError, FencedError, LogError, RebalanceInProgressError
from kstreams.log.api import GroupMetadata, Producer
from kstreams.runtime.native.state.task_metadata import Offsets

OUT_OF_GROUP = (CommitFailedError, RebalanceInProgressError, FencedError)
"""The errors that end a thread but not the application: other processes may have its tasks."""


class GroupCommits(Protocol):
    """Commits for the group of the application, by a member of the group or by a run without a group."""

    def owner(self) -> GroupMetadata:
        """Return the owner of this process's tasks. Raises CommitFailedError if others may have them."""
        ...

    def commit(self, commit: Callable[[GroupMetadata], None]) -> None:
        """Call `commit` with the committer, and again while the group rebalances."""
        ...

    def commit_offsets(self, offsets: Offsets) -> None:
        """Commit offsets alone."""
        ...


class ProcessingGuarantee(Protocol):
    """Makes sent records and input offsets visible."""

    def begin(self) -> None:
        """Prepare to send records."""
        ...

    def flush(self) -> None:
        """Wait until all sent records are written."""
        ...

    def commit(self, offsets: Offsets) -> None:
        """Make sent records visible, together with the offsets or before them."""
        ...


class AtLeastOnce:
    """Outputs first, then offsets: after a crash between the two, records are processed again.

    If the home of topics fences appends, records are written only while this process has its tasks.
    """

    def __init__(self, producer: Producer, group: GroupCommits) -> None:
        self._producer = producer
        self._group = group

    def begin(self) -> None:
        """Send records on behalf of the owner of the tasks."""
        self._producer.write_for(self._group.owner())

    def flush(self) -> None:
        """Wait until all sent records are written. After an error, check that the process is in its group."""
        try:
            self._producer.flush()
        except LogError:
            self._group.owner()
            raise

    def commit(self, offsets: Offsets) -> None:
        """Commit the offsets."""
        self._group.commit_offsets(offsets)


class ExactlyOnce:
    """One transaction per thread and commit (KIP-447): outputs, changelogs and offsets are visible as one."""

    def __init__(self, producer: Producer, group: GroupCommits) -> None:
        self._producer = producer
        self._group = group
        self._open = False

    def begin(self) -> None:
        """Open a transaction, unless one is open."""
        if not self._open:
            self._producer.begin_transaction()
            self._open = True

    def flush(self) -> None:
        """Wait until all sent records are written."""
        self._producer.flush()

    def commit(self, offsets: Offsets) -> None:
        """Commit the transaction."""
        self.begin()
        self._group.commit(lambda committer: self._producer.commit_transaction(offsets, committer))
        self._open = False
