"""`Slice` and `Pace`: a slice of event time, how far writers are in it, and which slice comes next."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

EVERYTHING_MS = 2**63 - 1


class Slice(msgspec.Struct, frozen=True):
    """A slice of event time: the writers of a repartition topic process all of it before one of them goes further.

    Parameters
    ----------
    number : int
        The number of the slice. If two slices of one sub-topology have the same number, the first in the topic counts.
    time_ms, partition : int
        The end. Writers up to this partition process the records up to this stream time, and writers of later
        partitions the records before this stream time.
    is_open_ended : bool
        True if no writer waits for another, because all have been at the end of their input.
    """

    number: int = 0
    time_ms: int = EVERYTHING_MS
    partition: int = 0
    is_open_ended: bool = True

    def until_ms(self, partition: int) -> int:
        """Return the last stream time that the writer of a partition processes."""
        return self.time_ms if partition <= self.partition or self.is_open_ended else self.time_ms - 1


class Pace(msgspec.Struct, frozen=True):
    """How far writers of a repartition topic are.

    Parameters
    ----------
    done : int
        The slice whose records all of the writers have written, visibly for readers.
    time_ms, partition : int
        The end that these writers propose for the next slice.
    has_caught_up : bool
        True if all of the writers have been at the end of their input since they were opened.
    """

    done: int
    time_ms: int
    partition: int
    has_caught_up: bool


def slowest(paces: Collection[Pace]) -> Pace:
    """Return the pace of several writers together; at least one.

    Examples
    --------
    >>> slowest([Pace(4, 900, 0, True), Pace(5, 700, 1, False)])
    Pace(done=4, time_ms=700, partition=1, has_caught_up=False)
    """
    time_ms, partition = min((pace.time_ms, pace.partition) for pace in paces)
    return Pace(min(pace.done for pace in paces), time_ms, partition, all(pace.has_caught_up for pace in paces))


def next_slice(latest: Slice, pace: Pace | None, num_writers: int) -> Slice | None:
    """Return the next slice of a sub-topology, or None if a writer is in the latest one, or no writer reads history.

    Parameters
    ----------
    latest : Slice
    pace : Pace or None
        The pace of all writers together. None while the pace of one of them is not known.
    num_writers : int
        The number of tasks of the sub-topology.

    Examples
    --------
    >>> next_slice(Slice(3, 400, 0, False), Pace(3, 500, 0, False), 2)
    Slice(number=4, time_ms=500, partition=0, is_open_ended=False)
    >>> next_slice(Slice(4, 500, 0, False), Pace(3, 500, 0, False), 2)

    When all writers have caught up, none waits for another any more:

    >>> next_slice(Slice(4, 500, 0, False), Pace(4, 950, 0, True), 2).is_open_ended
    True
    """
    if num_writers < 2 or pace is None or is_settled(latest, pace) or pace.done < latest.number:
        return None
    if pace.has_caught_up:
        return Slice(latest.number + 1)
    return Slice(latest.number + 1, pace.time_ms, pace.partition, is_open_ended=False)


def is_settled(latest: Slice, pace: Pace | None) -> bool:
    """Return whether no writer of a sub-topology reads history."""
    return latest.is_open_ended and pace is not None and pace.has_caught_up
