"""`Interleaved`: records of several partitions in processing order, for partitions that alternate quickly.

Each partition's records stay together, as columns; an array says from which partition each record comes. So inputs of
a join may alternate record by record at little cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from kstreams.kernel.batch import Batch

Integers: TypeAlias = "np.typing.NDArray[np.int64]"


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


def merged(times: Sequence[Integers], until_ms: int, most: int) -> Integers:
    """Return the partition of each next record; each time, the partition with the lowest head timestamp goes first.

    Parameters
    ----------
    times : sequence of numpy int64 arrays
        Timestamps of the next records of each partition. If they are equal, the earlier partition goes first.
    until_ms : int
        No later record is taken, and no record after it.
    most : int
        The most records that are taken.

    Returns
    -------
    numpy int64 array
        Numbers of partitions, until one partition is exhausted.

    Examples
    --------
    >>> merged([np.array([5, 1, 7]), np.array([4, 6, 9])], 100, 100).tolist()
    [1, 0, 0, 1, 0]
    """
    # A record that is earlier than its predecessor follows it at once, so the predecessor's time decides.
    highest = np.concatenate([np.maximum.accumulate(part) for part in times])
    lengths = [len(part) for part in times]
    order = np.argsort(highest, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    exhausted = int(place[np.cumsum(lengths) - 1].min()) + 1
    in_time = int(np.searchsorted(highest[order], until_ms, side="right"))
    return np.repeat(np.arange(len(times)), lengths)[order[: min(exhausted, in_time, most)]]
