"""`Progress`: counters of records that an application read, wrote and dropped, its commits, and its lag."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

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


def with_former_threads(present: Progress, former: Iterable[Progress]) -> Progress:
    """Add the counters of former threads to those of the present threads."""
    total = present
    for progress in former:
        total = replace(
            total,
            records_in=total.records_in + progress.records_in,
            records_out=total.records_out + progress.records_out,
            dropped=total.dropped + progress.dropped,
            commits=total.commits + progress.commits,
            stalls=total.stalls + progress.stalls,
        )
    return total


def progress_of(threads: Iterable[StreamThread], admin: Admin | None, restored: int = 0, rebuilt: int = 0) -> Progress:
    """Return the sums of the counters of threads. The counters are copied, because the threads continue to count."""
    threads = list(threads)
    tasks = [task for thread in threads for task in list(thread.tasks)]
    records_out = sum((thread.sink_buffer.records_out.copy() for thread in threads), Counter[str]())
    dropped = sum((task.task.dropped.copy() for task in tasks), Counter[tuple[str, str]]())
    dropped = sum((thread.released_dropped.copy() for thread in threads), dropped)
    positions: dict[TopicPartition, int] = {}
    for task in tasks:
        positions |= task.next_offsets
    return Progress(
        records_in=sum(task.task.records_in for task in tasks) + sum(thread.released_in for thread in threads),
        records_out=records_out,
        dropped=dropped,
        commits=sum(thread.committer.commits for thread in threads),
        lag=0 if admin is None else _lag(positions, admin),
        restored=restored,
        stalls=sum(thread.stall_detector.stalls for thread in threads),
        rebuilt=rebuilt,
        stores=_store_extents(tasks),
        stream_time=min((task.task.stream_time for task in tasks if task.task.stream_time >= 0), default=-1),
    )


def _store_extents(tasks: Iterable[ActiveTask]) -> dict[str, StoreExtent]:
    totals: dict[str, StoreExtent] = {}
    for store, extent in (item for task in tasks for item in task.sensors.extents.items()):
        total = totals.get(store, StoreExtent(0, 0))
        totals[store] = StoreExtent(total.rows + extent.rows, total.bytes + extent.bytes)
    return totals


def _lag(positions: Mapping[TopicPartition, int], admin: Admin) -> int:
    end_offsets = existing_end_offsets(list(positions), admin)
    return sum(max(0, end - positions[source]) for source, end in end_offsets.items())


def existing_end_offsets(sources: Collection[TopicPartition], admin: Admin) -> dict[TopicPartition, int]:
    """Return the end offsets of partitions, without those of deleted topics."""
    try:
        return admin.end_offsets(sources)
    except UnknownTopicError:
        existing = admin.topics()
        return admin.end_offsets([source for source in sources if source.topic in existing])
