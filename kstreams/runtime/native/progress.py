"""`Progress`: counters of records that an application read, wrote and dropped, its commits, and its lag."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from kstreams.errors import UnknownTopicError
from kstreams.kernel.batch import TopicPartition
from kstreams.log.api import Admin
from kstreams.metrics.sensors import StoreExtent
from kstreams.runtime.native.thread.active_task import ActiveTask
from kstreams.runtime.native.thread.stream_thread import StreamThread


@dataclass(frozen=True, slots=True)
class Progress:
    """A snapshot of counters since the start of this run.

    Parameters
    ----------
    records_in : int
        Processed records of source topics, including dropped ones, without repartition topics.
    records_out : mapping of str to int
        Records written, by topic, without repartition topics and changelogs.
    dropped : mapping of (operator, reason) to int
        Records dropped, including late records.
    commits : int
        The commits of all threads.
    lag : int
        Records of the inputs that are not processed yet.
    restored : int
        Changelog records that restores have applied to stores.
    stalls : int
        The number of times that a task made no progress for `task.timeout.ms`.
    rebuilt : int
        The number of times that damaged stores of a task were rebuilt from their changelogs.
    reassigned : int
        The number of assignments of tasks that the process had had before.
    stores : mapping of str to StoreExtent
        The size of each store in all tasks of this process, as of their last commits.
    stream_time : int
        The lowest stream time (ms) of all tasks that have one. -1 if none has.
    """

    records_in: int
    records_out: Counter[str]
    dropped: Counter[tuple[str, str]]
    commits: int
    lag: int
    restored: int
    stalls: int
    rebuilt: int = 0
    reassigned: int = 0
    stores: Mapping[str, StoreExtent] = field(default_factory=dict)
    stream_time: int = -1


def with_former(now: Progress, former: Iterable[Progress]) -> Progress:
    """Add the counters of former threads to those of the present threads."""
    for before in former:
        now = Progress(
            now.records_in + before.records_in,
            now.records_out + before.records_out,
            now.dropped + before.dropped,
            now.commits + before.commits,
            now.lag,
            now.restored,
            now.stalls + before.stalls,
            now.rebuilt,
            now.reassigned,
            now.stores,
            now.stream_time,
        )
    return now


def progress_of(threads: Iterable[StreamThread], admin: Admin | None, restored: int = 0, rebuilt: int = 0) -> Progress:
    """Return the sums of the counters of threads. The counters are copied, because the threads continue to count."""
    threads = list(threads)
    tasks = [task for thread in threads for task in list(thread.tasks)]
    written = sum((thread.sink_buffer.records_out.copy() for thread in threads), Counter[str]())
    dropped = sum((task.task.dropped.copy() for task in tasks), Counter[tuple[str, str]]())
    dropped = sum((thread.released_dropped.copy() for thread in threads), dropped)
    positions: dict[TopicPartition, int] = {}
    for task in tasks:
        positions |= task.next_offsets
    return Progress(
        sum(task.task.records_in for task in tasks) + sum(thread.released_in for thread in threads),
        written,
        dropped,
        sum(thread.committer.commits for thread in threads),
        0 if admin is None else _lag(positions, admin),
        restored,
        sum(thread.stall_detector.stalls for thread in threads),
        rebuilt,
        stores=_stores(tasks),
        stream_time=min((task.task.stream_time for task in tasks if task.task.stream_time >= 0), default=-1),
    )


def _stores(tasks: Iterable[ActiveTask]) -> dict[str, StoreExtent]:
    extents: dict[str, StoreExtent] = {}
    for store, extent in (item for task in tasks for item in task.sensors.extents.items()):
        counted = extents.get(store, StoreExtent(0, 0))
        extents[store] = StoreExtent(counted.rows + extent.rows, counted.bytes + extent.bytes)
    return extents


def _lag(positions: Mapping[TopicPartition, int], admin: Admin) -> int:
    ends = known_ends(list(positions), admin)
    return sum(max(0, end - positions[source]) for source, end in ends.items())


def known_ends(sources: Collection[TopicPartition], admin: Admin) -> dict[TopicPartition, int]:
    """Return the end offsets of partitions, without those of deleted topics."""
    try:
        return admin.end_offsets(sources)
    except UnknownTopicError:
        existing = admin.topics()
        return admin.end_offsets([source for source in sources if source.topic in existing])
