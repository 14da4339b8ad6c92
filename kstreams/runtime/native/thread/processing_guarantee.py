"""`ProcessingGuarantee`: at least once or exactly once, as `processing.guarantee` says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kstreams.errors import CommitFailedError, FencedError, LogError, RebalanceInProgressError
from kstreams.log.api import GroupMetadata, Producer
from kstreams.runtime.native.state.task_metadata import Offsets

OUT_OF_GROUP = (CommitFailedError, RebalanceInProgressError, FencedError)
"""What ends a thread, and not the application: others may have its tasks."""


class GroupCommits(Protocol):
    """Commits for the group of the application: by a member of it, or by a run that is alone."""

    def owner(self) -> GroupMetadata:
        """Who has the tasks of this process; raises CommitFailedError when others may have them."""
        ...

    def commit(self, commit: Callable[[GroupMetadata], None]) -> None:
        """Call `commit` with who commits, again while the group is being changed."""
        ...

    def commit_offsets(self, offsets: Offsets) -> None:
        """Commit offsets alone."""
        ...


class ProcessingGuarantee(Protocol):
    """How what was sent and the input offsets become visible."""

    def begin(self) -> None:
        """Called before anything is sent."""
        ...

    def flush(self) -> None:
        """Wait until what was sent is written."""
        ...

    def commit(self, offsets: Offsets) -> None:
        """Make what was sent visible: together with the offsets, or before them."""
        ...


class AtLeastOnce:
    """Outputs first, then offsets: after a crash between the two, records are processed again.

    What is sent lands only while this process has its tasks, as far as the home of the topics can see to that.
    """

    def __init__(self, producer: Producer, group: GroupCommits) -> None:
        self._producer = producer
        self._group = group

    def begin(self) -> None:
        """Send for who has the tasks."""
        self._producer.write_for(self._group.owner())

    def flush(self) -> None:
        """Wait until what was sent is written; where it is not, the process may be out of its group."""
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
        """Open the transaction, if none is."""
        if not self._open:
            self._producer.begin_transaction()
            self._open = True

    def flush(self) -> None:
        """Wait until what was sent is written."""
        self._producer.flush()

    def commit(self, offsets: Offsets) -> None:
        """Commit the transaction."""
        self.begin()
        self._group.commit(lambda committer: self._producer.commit_transaction(offsets, committer))
        self._open = False
