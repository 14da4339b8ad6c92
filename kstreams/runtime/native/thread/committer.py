"""`Committer`: makes outputs, changelogs and input offsets durable, then writes the stores to disk.

`AtLeastOnce` and `ExactlyOnce` are the processing guarantees, by the setting `processing.guarantee`.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol

import numpy as np

from kstreams.errors import CommitFailedError, FencedError, LogError, RebalanceInProgressError
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.kernel.clock import Clock
from kstreams.log.api import Admin, GroupMetadata, Producer
from kstreams.processor.api.error_handlers import ErrorHandlerContext
from kstreams.processor.context.failures import Failures
from kstreams.record import ProducerRecord
from kstreams.runtime.native.settings import ThreadSettings
from kstreams.runtime.native.state.task_metadata import Offsets
from kstreams.runtime.native.thread.active_task import ActiveTask
from kstreams.runtime.native.thread.sink_buffer import SendRetry, SinkBuffer
from kstreams.state.api import Changes
from kstreams.state.task_state import as_records

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


_LONGEST_REST_MS = 10_000
_REST_PER_COMMIT = 20  # a bounded run spends at most a twentieth of its time on commits: single results are not urgent


class CommitSchedule:
    """Says when to commit: after an interval, if uncommitted changes take much memory, or if a processor asks for it.

    The first interval is short, so that the first results come soon. Each interval is twice as long as the one before,
    up to `commit.interval.ms`. After a time without input it is short again.

    Parameters
    ----------
    settings : ThreadSettings
    clock : Clock
    is_bounded : bool
        True if the run ends with its input. Then single results are not urgent.
    """

    def __init__(self, settings: ThreadSettings, clock: Clock, *, is_bounded: bool) -> None:
        self._settings = settings
        self._clock = clock
        self._is_bounded = is_bounded
        self._longest_ms = settings.commit_interval_ms
        self._first_ms = self._longest_ms if is_bounded else min(settings.first_commit_interval_ms, self._longest_ms)
        self._interval_ms = self._first_ms
        self._took_ms = 0
        self._committed_ms = clock.uptime_ms()
        self._since_ms: int | None = None  # when the first change since the last commit was made

    def restart(self) -> None:
        """Restart the interval."""
        self._committed_ms = self._clock.uptime_ms()

    def committed(self, started_ms: int) -> None:
        """Note that a commit that began at `started_ms` is done."""
        self._committed_ms = self._clock.uptime_ms()
        self._since_ms = None
        self._took_ms = self._committed_ms - started_ms
        self._interval_ms = min(self._longest_ms, max(1, self._interval_ms) * 2)

    def is_memory_full(self, tasks: Sequence[ActiveTask]) -> bool:
        """Return whether the uncommitted changes of the tasks exceed the thread's share of the memory."""
        return sum(task.bytes_pending for task in tasks) > self._settings.uncommitted_bytes

    def is_due(self, tasks: Sequence[ActiveTask]) -> bool:
        """Return whether the thread has to commit now."""
        if any(task.task.commit_requested for task in tasks) or self.is_memory_full(tasks):
            return True
        return any(task.uncommitted for task in tasks) and self._is_interval_over()

    def _is_interval_over(self) -> bool:
        now_ms = self._clock.uptime_ms()
        if self._is_bounded:
            rest_ms = min(self._took_ms * _REST_PER_COMMIT, _LONGEST_REST_MS)
            return now_ms - self._committed_ms >= max(self._longest_ms, rest_ms)
        if self._since_ms is None:
            self._since_ms = now_ms
            if now_ms - self._committed_ms >= self._longest_ms:
                self._interval_ms = self._first_ms
        return now_ms - max(self._since_ms, self._committed_ms) >= self._interval_ms


class Purge:
    """Purges the repartition topics that one thread's tasks read.

    Parameters
    ----------
    admin : Admin
    topics : collection of str
        Real names of the repartition topics.
    interval_ms : int
        The least time between two purges.
    clock : Clock
    """

    def __init__(self, admin: Admin, topics: Collection[str], interval_ms: int, clock: Clock) -> None:
        self._admin = admin
        self._topics = topics
        self._clock = clock
        self._interval_ms = interval_ms
        self._last_ms = clock.uptime_ms()
        self._purged: dict[TopicPartition, int] = {}

    def after_commit(self, tasks: Iterable[ActiveTask]) -> None:
        """Delete the records that these tasks have committed, if the interval is over."""
        now_ms = self._clock.uptime_ms()
        if not self._topics or now_ms - self._last_ms < self._interval_ms:
            return
        offsets = {s: at for task in tasks for s, at in task.next_offsets.items() if s.topic in self._topics}
        moved = {source: at for source, at in offsets.items() if at > self._purged.get(source, 0)}
        if moved:
            self._admin.delete_records(moved)
        self._purged |= moved
        self._last_ms = now_ms


_CHANGELOG_ROWS = 65_536  # the most rows of a batch for the producer
_EARLIEST_MS = 1  # the timestamp of changelog records without a time: Kafka's client cannot write 0


class Committer:
    """Commits the tasks of one thread together.

    Parameters
    ----------
    producer : Producer
    admin : Admin
        Returns the end offsets of changelogs.
    sink_buffer : SinkBuffer
        The output of the tasks.
    guarantee : ProcessingGuarantee
    retry : SendRetry
        Sends changelog records again if the producer has no room.
    """

    def __init__(
        self,
        producer: Producer,
        admin: Admin,
        sink_buffer: SinkBuffer,
        guarantee: ProcessingGuarantee,
        retry: SendRetry,
    ) -> None:
        self._producer = producer
        self._admin = admin
        self._sink_buffer = sink_buffer
        self._guarantee = guarantee
        self._retry = retry
        self._written: dict[str, dict[str, TopicPartition]] = {}  # changelogs by task and store, since the last commit
        self.commits = 0

    def commit(self, tasks: Sequence[ActiveTask]) -> None:
        """Commit these tasks. Stores are written to disk last, so that the disk never holds uncommitted data."""
        for task in tasks:
            task.task.flush()
        self._sink_buffer.flush()
        self._sink_buffer.flush_merged()
        ends = [_input_ends(task) for task in tasks]
        for task in tasks:
            for store, part in task.state.popped(max(task.task.stream_time, _EARLIEST_MS)):
                self._write_changes(task, store, part)
        changes = [task.state.changes(max(task.task.stream_time, _EARLIEST_MS)) for task in tasks]
        for task, change in zip(tasks, changes, strict=True):
            for store, rows in change.items():
                self._write_changes(task, store, rows)
        self._sink_buffer.flush()  # dead letters of records that changelogs refused
        self._guarantee.flush()
        for task, changelog_ends, written in zip(tasks, ends, self._changelog_ends(tasks), strict=True):
            changelog_ends.update(written)
            task.changelogs_written(changelog_ends)
        self._guarantee.commit(dict(ChainMap(*(task.offsets() for task in tasks))))
        for task, change, end in zip(tasks, changes, ends, strict=True):
            task.state.persist(change, end, task.position())
            task.committed()
        self.commits += 1

    def _write_changes(self, task: ActiveTask, store: str, changes: Changes) -> None:
        """Send the changes of a store to its changelog, if it has one."""
        source = task.changelogs.get(store)
        if source is None:
            return
        builder = next(builder for builder in task.plan.sub_topology.stores if builder.name == store)
        batch = as_records(builder, source, changes)
        rows = self._accepted(store, batch, task.task.failures, task.id)
        if len(rows):
            self._guarantee.begin()
            self._written.setdefault(task.id, {})[store] = source
        for start in range(0, len(rows), _CHANGELOG_ROWS):
            self._retry.send(self._producer, rows.slice(start, min(len(rows), start + _CHANGELOG_ROWS)))

    def _changelog_ends(self, tasks: Sequence[ActiveTask]) -> list[dict[str, int]]:
        """Return the ends of the changelogs that this commit has written to, by task. Each has one writer, its task."""
        written = [self._written.pop(task.id, {}) for task in tasks]
        sources = [source for store_sources in written for source in store_sources.values()]
        ends = self._admin.end_offsets(sources, committed_only=False) if sources else {}
        return [{store: ends[source] for store, source in store_sources.items()} for store_sources in written]

    def _accepted(self, store: str, batch: Batch, failures: Failures, task_id: str) -> Batch:
        """Return the rows without those that the changelog refuses and the production handler drops."""
        refused = self._producer.refused(batch) if failures.guards_production else {}
        for row, error in refused.items():
            record = ProducerRecord(batch.source.topic, *next(batch.slice(row, row + 1).rows()))
            failures.refused(ErrorHandlerContext(processor_node_id=store, task_id=task_id), record, error)
        failures.send_letters()
        return batch.filter(np.array([row not in refused for row in range(len(batch))])) if refused else batch


def _input_ends(task: ActiveTask) -> dict[str, int]:
    """Return the processed offsets of input topics that serve as changelogs of stores."""
    partition = task.plan.partition
    stores = task.plan.sub_topology.stores
    source_partitions = {
        store.name: TopicPartition(store.source_topic, partition) for store in stores if store.source_topic
    }
    return {
        store: task.next_offsets[source] for store, source in source_partitions.items() if source in task.next_offsets
    }
