"""`Interleaved`: records of several partitions in the order in which a task takes them, where they alternate quickly.

Each partition's records stay together, as columns; what is added is from which partition each record comes. So it
costs little that inputs of a join take turns record by record.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from kstreams.kernel.batch import Batch

Integers = np.ndarray[Any, np.dtype[np.int64]]


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
        """The records of one partition alone."""
        return cls([batch], np.zeros(len(batch), np.int64))

    @property
    def num_records(self) -> int:
        """How many records there are."""
        return len(self.which)

    def turns(self) -> Iterator[tuple[int, int]]:
        """(part, how many of its records come next), in order."""
        starts, lengths = turns_of(self.which)
        return zip(self.which[starts].tolist(), lengths.tolist(), strict=True)

    def runs(self) -> Iterator[tuple[int, Batch]]:
        """The turns as batches, each with the number of its part."""
        processed = [0] * len(self.parts)
        for part, count in self.turns():
            yield part, self.parts[part].slice(processed[part], processed[part] + count)
            processed[part] += count

    def timestamps(self) -> Integers:
        """Those of all records, in the order of processing."""
        timestamps: list[Integers] = [part.timestamps.to_numpy() for part in self.parts]
        if len(timestamps) == 1:
            return timestamps[0]
        times = np.empty(len(self.which), np.int64)
        times[np.argsort(self.which, kind="stable")] = np.concatenate(timestamps)
        return times

    def times(self, before_ms: int) -> list[tuple[Integers, list[int]]]:
        """For each part, of every record: the highest timestamp up to and with it, and its own.

        `before_ms` is the highest timestamp of all that came before.
        """
        timestamps = [part.timestamps.to_numpy() for part in self.parts]
        highest = self._highest(timestamps, before_ms)
        return [(of_part, own.tolist()) for of_part, own in zip(highest, timestamps, strict=True)]

    def reached(self, before_ms: int) -> list[Integers]:
        """For each part, of every record: how far the task has come with it (`CurrentRecord.reached`)."""
        return self._highest([part.places for part in self.parts], before_ms)

    def _highest(self, timestamps: list[Integers], before_ms: int) -> list[Integers]:
        """For each part, of every record: the highest of these times up to and with it, in the order of processing."""
        places = np.argsort(self.which, kind="stable")  # of the records, part by part
        times = np.empty(len(places), np.int64)
        times[places] = np.concatenate(timestamps)
        highest = np.maximum(np.maximum.accumulate(times), before_ms)[places]
        return np.split(highest, np.cumsum([len(part) for part in self.parts])[:-1])


def turns_of(which: Integers) -> tuple[Integers, Integers]:
    """Where each stretch of equal numbers begins, and its length."""
    starts = np.flatnonzero(np.concatenate(([True], which[1:] != which[:-1])))
    return starts, np.diff(np.append(starts, len(which)))


def merged(times: Sequence[Integers], until_ms: int, most: int) -> Integers:
    """From which partition records are taken, each time from the one whose next record has the lowest timestamp.

    Parameters
    ----------
    times : sequence of numpy int64 arrays
        Timestamps of the next records of each partition; of equal ones the earlier partition goes first.
    until_ms : int
        No later record is taken, nor what comes behind it.
    most : int
        How many are taken at most.

    Returns
    -------
    numpy int64 array
        Numbers of partitions, up to where one is exhausted.

    Examples
    --------
    >>> merged([np.array([5, 1, 7]), np.array([4, 6, 9])], 100, 100).tolist()
    [1, 0, 0, 1, 0]
    """
    # A record that is earlier than the one before it follows at once: so that one's time decides.
    reached = np.concatenate([np.maximum.accumulate(part) for part in times])
    lengths = [len(part) for part in times]
    order = np.argsort(reached, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    exhausted = int(place[np.cumsum(lengths) - 1].min()) + 1
    in_time = int(np.searchsorted(reached[order], until_ms, side="right"))
    return np.repeat(np.arange(len(times)), lengths)[order[: min(exhausted, in_time, most)]]
