"""`PartitionGroup`: chooses the partition of a task's next records. Pure logic.

Kafka Streams takes, each time, the record of the partition whose next record has the lowest timestamp. Here whole runs
are taken: the records of this partition that stay the lowest. Several short runs are taken together (`Interleaved`):
each partition's records stay together, as columns, and an array says from which partition each record comes. So inputs
of a join may alternate record by record at little cost.

A record that a task wrote counts with the progress of that task (`Batch.places`), so that no record that it writes
later goes first. Of equal times, the lower rank goes first (`Batch.ranks`), and without ranks the earlier partition.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from kstreams.kernel.batch import Batch, Integers, TopicPartition
from kstreams.processor.topology.record_order import LAST_RANK


class Interleaved(NamedTuple):
    """Records to be processed one after the other.

    Parameters
    ----------
    parts : sequence of Batch
        The records of each partition, in their order.
    which : numpy int64 array, shape (n,)
        The number of the part that each record comes from.

    Examples
    --------
    >>> from kstreams.kernel.batch import Row, TopicPartition
    >>> a, b = (Batch.of_rows(TopicPartition(name, 0), [Row(b"", b"", 1, ())] * 2) for name in "ab")
    >>> [(part, count) for part, count in Interleaved([a, b], np.array([0, 1, 1, 0])).turns()]
    [(0, 1), (1, 2), (0, 1)]
    """

    parts: Sequence[Batch]
    which: Integers

    @classmethod
    def run(cls, batch: Batch) -> Interleaved:
        """Return the records of one partition alone."""
        return cls([batch], np.zeros(len(batch), np.int64))

    @property
    def num_records(self) -> int:
        """The number of records."""
        return len(self.which)

    def turns(self) -> Iterator[tuple[int, int]]:
        """Yield the number of a part and the number of its records that come next, in order."""
        starts, lengths = turns_of(self.which)
        return zip(self.which[starts].tolist(), lengths.tolist(), strict=True)

    def runs(self) -> Iterator[tuple[int, Batch]]:
        """Yield the turns as batches, each with the number of its part."""
        processed = [0] * len(self.parts)
        for part, count in self.turns():
            yield part, self.parts[part].slice(processed[part], processed[part] + count)
            processed[part] += count

    def timestamps(self) -> Integers:
        """Return the timestamps of all records, in the order of processing."""
        timestamps: list[Integers] = [part.timestamps.to_numpy() for part in self.parts]
        if len(timestamps) == 1:
            return timestamps[0]
        times = np.empty(len(self.which), np.int64)
        times[np.argsort(self.which, kind="stable")] = np.concatenate(timestamps)
        return times

    def times(self, before_ms: int) -> list[tuple[Integers, list[int]]]:
        """Return for each part, for every record, the highest timestamp up to this record, and the timestamp.

        `before_ms` is the highest timestamp of all records before these.
        """
        timestamps = [part.timestamps.to_numpy() for part in self.parts]
        highest = self._highest(timestamps, before_ms)
        return [(of_part, own.tolist()) for of_part, own in zip(highest, timestamps, strict=True)]

    def reached(self, before_ms: int) -> list[Integers]:
        """Return for each part, for every record, the progress of the task (`CurrentRecord.reached`)."""
        return self._highest([part.places for part in self.parts], before_ms)

    def _highest(self, timestamps: list[Integers], before_ms: int) -> list[Integers]:
        """Return for each part, for every record, the highest of the times up to this record in processing order."""
        places = np.argsort(self.which, kind="stable")  # the positions of the records, part by part
        times = np.empty(len(places), np.int64)
        times[places] = np.concatenate(timestamps)
        highest = np.maximum(np.maximum.accumulate(times), before_ms)[places]
        return np.split(highest, np.cumsum([len(part) for part in self.parts])[:-1])


def turns_of(which: Integers) -> tuple[Integers, Integers]:
    """Return the start and the length of each run of equal numbers."""
    starts = np.flatnonzero(np.concatenate(([True], which[1:] != which[:-1])))
    return starts, np.diff(np.append(starts, len(which)))


class Place(NamedTuple):
    """The place of a record: its time, and its rank among records with this time."""

    time_ms: int
    rank: int = LAST_RANK


END = Place(2**63 - 1)
"""A place after all records."""


def merged(times: Sequence[Integers], ranks: Sequence[Integers] | None, until: Place, most: int) -> Integers:
    """Return the partition of each next record; each time, the partition with the lowest head goes first.

    Parameters
    ----------
    times, ranks : sequence of numpy int64 arrays
        Times and ranks of the next records of each partition. If both are equal, the earlier partition goes first. None
        if no record has a rank.
    until : Place
        No later record is taken, and no record after it.
    most : int
        The most records that are taken.

    Returns
    -------
    numpy int64 array
        Numbers of partitions, until one partition is exhausted.

    Examples
    --------
    >>> merged([np.array([5, 1, 7]), np.array([4, 6, 9])], None, END, 100).tolist()
    [1, 0, 0, 1, 0]
    >>> merged([np.array([5, 5]), np.array([5])], [np.array([1, 3]), np.array([2])], END, 100).tolist()
    [0, 1]
    """
    # A record that is earlier than its predecessor follows it at once, so the predecessor's time decides.
    highest = np.concatenate([np.maximum.accumulate(part) for part in times])
    lengths = [len(part) for part in times]
    rank = np.zeros(len(highest), np.int64) if ranks is None else np.concatenate(ranks)
    order = np.argsort(highest, kind="stable") if ranks is None else np.lexsort((rank, highest))
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    exhausted = int(place[np.cumsum(lengths) - 1].min()) + 1
    in_time = int(np.count_nonzero((highest < until.time_ms) | ((highest == until.time_ms) & (rank <= until.rank))))
    return np.repeat(np.arange(len(times)), lengths)[order[: min(exhausted, in_time, most)]]


_LONG_RUN = 128  # rows that make a run of its own, which may be processed in columns
_FIRST_LOOK = 32  # rows of the first search for the end of a run; doubled while the run continues


class Queue:
    """The buffered records of one partition."""

    __slots__ = ("at", "batches", "bytes_taken", "count", "partition", "rank", "row_bytes")

    def __init__(self, partition: TopicPartition, rank: int) -> None:
        self.partition = partition
        self.rank = rank
        self.batches: deque[tuple[Batch, Integers, int]] = deque()  # batch, times, bytes of keys and values
        self.at = 0  # the row of the first batch that is the head
        self.count = 0
        self.row_bytes = 1  # the average of the last added batch
        self.bytes_taken = 0

    def append(self, batch: Batch) -> None:
        size = batch.keys.nbytes + batch.values.nbytes
        self.row_bytes = 1 + size // len(batch)
        self.batches.append((batch, batch.places, size))
        self.count += len(batch)

    def head(self) -> Place:
        """Return the place of the first record."""
        batch, times, _ = self.batches[0]
        return Place(int(times[self.at]), 0 if batch.ranks is None else int(batch.ranks[self.at]))

    @property
    def has_ranks(self) -> bool:
        """True if the records of the first batch have ranks."""
        return self.batches[0][0].ranks is not None

    def last_place(self, records: int) -> Place:
        """Return the place of the last of the first `records`."""
        latest = 0
        rank = 0
        at = self.at
        for batch, times, _ in self.batches:
            part = times[at : at + records]
            latest = max(latest, int(part.max()))
            rank = 0 if batch.ranks is None else int(batch.ranks[at + len(part) - 1])
            records = records - len(part)
            at = 0
            if records <= 0:
                break
        return Place(latest, rank)

    def times_ahead(self, records: int) -> Integers:
        """Return the times of the first `records` that are in the first batch."""
        return self.batches[0][1][self.at : self.at + records]

    def ranks_ahead(self, records: int) -> Integers:
        """Return the ranks of the first `records` that are in the first batch, 0 if they have none."""
        ranks = self.batches[0][0].ranks
        count = len(self.times_ahead(records))
        return np.zeros(count, np.int64) if ranks is None else ranks[self.at : self.at + count]

    def take(self, limit: Place, max_records: int) -> Batch:
        """Take the run at the head: rows of the first batch up to the first one above the limit."""
        batch, times, _ = self.batches[0]
        stop = run_end(times, batch.ranks, self.at, min(len(times), self.at + max_records), limit)
        return self.take_rows(stop - self.at)

    def take_rows(self, count: int) -> Batch:
        """Take `count` rows of the first batch."""
        (batch, _, size) = self.batches[0]
        start = self.at
        stop = self.at + count
        self.count -= count
        self.at = stop
        if stop == len(batch):
            self.batches.popleft()
            self.bytes_taken += size
            self.at = 0
        return batch if count == len(batch) else batch.slice(start, stop)


class PartitionGroup:
    """The input of one task: its partitions, each a queue in offset order.

    Parameters
    ----------
    partitions : iterable of TopicPartition
        All partitions of the task: partitions without records count for `ready`. If head timestamps are equal, the
        partition that is earlier here goes first, independent of the sizes of batches.
    stamp : callable, optional
        Gives a batch the event times of its source (`Task.stamp`) before it is queued.
    max_task_idle_ms : int
        How long to wait for a partition that has no records and no lag: `max.task.idle.ms`; -1 never waits.

    Examples
    --------
    >>> from kstreams.kernel.batch import Row
    >>> a, b = TopicPartition("a", 0), TopicPartition("b", 0)
    >>> group = PartitionGroup([a, b])
    >>> group.add(Batch.of_rows(a, [Row(b"", b"", time, ()) for time in (1, 2, 7)]))
    >>> group.add(Batch.of_rows(b, [Row(b"", b"", time, ()) for time in (4, 5)]))
    >>> [(str(run.source), len(run)) for run in iter(group.next_run, None)]
    [('a-0', 2), ('b-0', 2), ('a-0', 1)]
    """

    def __init__(
        self,
        partitions: Iterable[TopicPartition] = (),
        *,
        stamp: Callable[[Batch], Batch] | None = None,
        max_task_idle_ms: int = 0,
    ) -> None:
        self._queues = {partition: Queue(partition, rank) for rank, partition in enumerate(partitions)}
        self._heads: list[tuple[Place, int, Queue]] = []  # (head, order, queue) of queues that hold records
        self._stamp = stamp
        self._max_idle_ms = max_task_idle_ms
        self._lag: dict[TopicPartition, int] = {}
        self._idle_until: dict[TopicPartition, int] = {}

    def add(self, batch: Batch) -> None:
        """Queue records after those of their partition."""
        if self._stamp is not None:
            batch = self._stamp(batch)
        if not len(batch):
            return
        queue = self._queues.setdefault(batch.source, Queue(batch.source, len(self._queues)))
        queue.append(batch)
        if queue.count == len(batch):
            self._offer(queue)

    def next_run(self, max_records: int = 10_000, until: Place = END) -> Batch | None:
        """Return the records to process next, all of one partition; None if nothing is buffered up to `until`.

        The longest run from the partition with the lowest head in which no record is later than the heads of the other
        partitions, or than `until`, cut at `max_records` and at the end of a batch.
        """
        if not self._heads or self._heads[0][0] > until:
            return None
        queue = self._next_queue()
        run = queue.take(min(self._limit(queue), until), max_records)
        if queue.count:
            self._offer(queue)
        return run

    def next_runs(self, max_records: int = 10_000, until: Place = END) -> Interleaved | None:
        """Return the next run; if runs are short, all of them until a longer one or until a partition is drained."""
        if len(self._heads) > 1 and self._heads[0][0] <= until and self._is_short():
            return self._interleaved(max_records, until)
        run = self.next_run(max_records, until)
        return None if run is None else Interleaved.run(run)

    def _is_short(self) -> bool:
        first, *other_heads = self._heads
        times = first[2].times_ahead(_LONG_RUN)
        return len(times) < _LONG_RUN or int(times.max()) > min(other_heads)[0].time_ms

    def _interleaved(self, max_records: int, until: Place) -> Interleaved:
        queues = sorted((queue for *_, queue in self._heads), key=lambda queue: queue.rank)
        times = [queue.times_ahead(max_records) for queue in queues]
        has_ranks = any(queue.has_ranks for queue in queues)
        ranks = [queue.ranks_ahead(max_records) for queue in queues] if has_ranks else None
        which = merged(times, ranks, until, max_records)
        starts, lengths = turns_of(which)
        long = np.flatnonzero(lengths[1:] >= _LONG_RUN)
        if len(long):
            which = which[: starts[long[0] + 1]]
        counts = np.bincount(which, minlength=len(queues))
        shares = [(queue, count) for queue, count in zip(queues, counts.tolist(), strict=True) if count]
        parts = [queue.take_rows(count) for queue, count in shares]
        self._heads = []
        for queue in queues:
            if queue.count:
                self._offer(queue)
        return Interleaved(parts, (np.cumsum(counts > 0) - 1)[which])

    def buffered(self, partition: TopicPartition) -> int:
        """Return the number of buffered records of a partition."""
        return self._queues[partition].count if partition in self._queues else 0

    def buffered_bytes(self) -> int:
        """Return the approximate bytes that are buffered."""
        return sum([queue.count * queue.row_bytes for queue in self._queues.values()])

    def bytes_taken(self) -> dict[TopicPartition, int]:
        """Return the bytes of keys and values that were taken of each partition, in whole Arrow batches."""
        return {partition: queue.bytes_taken for partition, queue in self._queues.items()}

    def row_bytes(self) -> int:
        """Return the approximate size of records in the partition whose last batch had the largest."""
        return max([queue.row_bytes for queue in self._queues.values()], default=1)

    def head(self) -> Place | None:
        """Return the lowest head; None if nothing is buffered."""
        return self._heads[0][0] if self._heads else None

    def last_place(self, partition: TopicPartition, records: int) -> Place:
        """Return the place of the last of the first `records` (at least 1) that are buffered of a partition."""
        return self._queues[partition].last_place(records)

    def empty_partitions(self) -> list[TopicPartition]:
        """Return the partitions without buffered records."""
        return [partition for partition, queue in self._queues.items() if not queue.count]

    def awake_partitions(self) -> list[TopicPartition]:
        """Return the partitions with records that are buffered, or still to be fetched."""
        return [source for source, queue in self._queues.items() if queue.count or self._lag.get(source, -1) != 0]

    def set_lag(self, partition: TopicPartition, lag: int) -> None:
        """Set the number of records of a partition that were not fetched yet."""
        self._lag[partition] = lag

    def ready(self, now_ms: int) -> bool:
        """Return whether the task may process its buffered records, or must wait for an empty partition.

        The task waits for an empty partition while its lag is unknown or above zero, and for `max_task_idle_ms` of
        wall-clock time after its lag was first zero.
        """
        if not self._heads:
            return False
        return self._max_idle_ms < 0 or all([self._may_pass(queue, now_ms) for queue in self._queues.values()])

    def _may_pass(self, queue: Queue, now_ms: int) -> bool:
        if queue.count or self._lag.get(queue.partition, -1) != 0:
            self._idle_until.pop(queue.partition, None)
            return queue.count > 0
        return now_ms >= self._idle_until.setdefault(queue.partition, now_ms + self._max_idle_ms)

    def _limit(self, queue: Queue) -> Place:
        """Return the last place at which this queue still goes before all others."""
        if not self._heads:
            return END
        head, order, _ = self._heads[0]
        return head if queue.rank < order else Place(head.time_ms, head.rank - 1)

    def _offer(self, queue: Queue) -> None:
        heapq.heappush(self._heads, (queue.head(), queue.rank, queue))

    def _next_queue(self) -> Queue:
        return heapq.heappop(self._heads)[2]


def run_end(times: Integers, ranks: Integers | None, start: int, stop: int, limit: Place) -> int:
    """Return the first row after `start` whose place is above the limit, else `stop`.

    Examples
    --------
    >>> times, ranks = np.array([1, 9, 2, 9, 3]), np.array([1, 2, 3, 4, 5])
    >>> run_end(times, ranks, 0, 5, Place(9)), run_end(times, ranks, 0, 5, Place(9, 3))
    (5, 3)
    """
    last_ms = limit.time_ms if limit.rank >= 0 or ranks is not None else limit.time_ms - 1  # without ranks, all are 0
    # The first searches are short, so that short runs do not each scan the whole batch.
    begin = start + 1
    step = _FIRST_LOOK
    while begin < stop:
        end = min(begin + step, stop)
        is_above = times[begin:end] > last_ms
        if ranks is not None:
            is_above |= (times[begin:end] == limit.time_ms) & (ranks[begin:end] > limit.rank)
        above = np.flatnonzero(is_above)
        if len(above):
            return begin + int(above[0])
        begin = end
        step = step * 2
    return stop
