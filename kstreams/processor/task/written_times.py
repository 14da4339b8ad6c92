"""`WrittenTimes`: by what the rows that a task writes to a topic are put in order among those of other tasks.

A row stands at what its task had reached when it wrote the row: the running maximum of the times of what it had read.
So it depends on no filter before the topic, and not on how input was cut into batches. Of a record that a task wrote,
that time is not its timestamp, but what that task had reached: so what a record of a source leads to stands at the time
of this record, however many repartition topics lie between, and a part of the input up to some time leads to that part
of each topic. Rows that waited stand at their own times: those of a flush among all that was written, those of the end
of input after it. The rows of one task keep their order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

Longs: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"

AT_FLUSH = -2
"""`CurrentRecord.reached` while a flush lets go what waited for it."""

AT_END = 1 << 62
"""Later than any valid time: from here on stands what the end of input lets go."""

_TURN = 1 << 52
_MOST_TURNS = 1 << 10


def at_end(turn: int) -> int:
    """`CurrentRecord.reached` at the end of input.

    Sub-topologies come to their ends in turn: each after all that follows from the ends of those that feed it.
    """
    return AT_FLUSH - 1 - min(turn, _MOST_TURNS - 1)


class WrittenTimes:
    """The times of the rows of one task, by topic.

    Examples
    --------
    >>> times = WrittenTimes()
    >>> times.of_rows("t", pa.array([5, 3, 9]), {1: 5}).to_pylist()
    [5, 5, 9]
    >>> times.of_rows("t", pa.array([4, 12, 8]), dict.fromkeys(range(3), AT_FLUSH)).to_pylist()
    [9, 12, 12]
    """

    def __init__(self) -> None:
        self._latest: dict[str, int] = {}

    def of_rows(self, topic: str, timestamps: pa.Array, reached: Mapping[int, int]) -> pa.Array:
        """The times of the next rows of a topic.

        Parameters
        ----------
        topic : str
        timestamps : pyarrow int64 array, length n
            Of the rows themselves.
        reached : mapping of int to int
            By row: `CurrentRecord.reached` when it was written, where that was not its timestamp.
        """
        times = np.array(timestamps)
        if reached:
            rows = np.fromiter(reached.keys(), np.int64, len(reached))
            noted = np.fromiter(reached.values(), np.int64, len(reached))
            own = np.maximum(times[rows], 0)
            ends = AT_END + (AT_FLUSH - 1 - noted) * _TURN + np.minimum(own, _TURN - 1)
            times[rows] = np.where(noted == AT_FLUSH, own, np.where(noted < AT_FLUSH, ends, noted))
        return self.of_columns(topic, times)

    def of_columns(self, topic: str, times: Longs) -> pa.Array:
        """The same, of rows that were all written by records of a batch: what the task had reached with these."""
        latest = np.maximum(np.maximum.accumulate(times), self._latest.get(topic, -1))
        self._latest[topic] = int(latest[-1])
        return pa.array(latest)

    def restart(self) -> None:
        """A commit comes: what follows may have waited for the next flush, and goes by its own times."""
        self._latest.clear()
