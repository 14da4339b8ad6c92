"""`WrittenTimes`: the stream times by which rows of several tasks are sorted in a topic.

The time of a row is the stream time of its task when the task wrote it: the running maximum of the times of the records
that the task had read. So it does not depend on filters before the topic, nor on the batches of the input. For a record
that another task has written, this time counts, not the timestamp: output that follows from a source record has the
time of the source record, across any number of repartition topics, and the input up to some time determines each topic
up to the same time. Rows that were buffered have their own timestamps: those of a flush are sorted among all rows,
those of the end of input come after all rows. The rows of one task keep their order.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import pyarrow as pa

Longs: TypeAlias = "np.typing.NDArray[np.int64]"

AT_FLUSH = -2
"""`CurrentRecord.reached` while a flush forwards buffered records."""

AT_END = 1 << 62
"""A time later than any valid one, from which on the records of the end of input are sorted."""

_TURN = 1 << 52
_MOST_TURNS = 1 << 10


def at_end(turn: int) -> int:
    """Return `CurrentRecord.reached` at the end of input of a sub-topology.

    Sub-topologies end in turn, each after all records that follow from the ends of the sub-topologies before it.
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
        """Return the times of the next rows of a topic.

        Parameters
        ----------
        topic : str
        timestamps : pyarrow int64 array, length n
            The timestamps of the rows.
        reached : mapping of int to int
            By row: `CurrentRecord.reached` when it was written, if it differs from the timestamp.
        """
        times = np.array(timestamps)
        if reached:
            rows = np.fromiter(reached.keys(), np.int64, len(reached))
            task_times = np.fromiter(reached.values(), np.int64, len(reached))
            own = np.maximum(times[rows], 0)
            ends = AT_END + (AT_FLUSH - 1 - task_times) * _TURN + np.minimum(own, _TURN - 1)
            times[rows] = np.where(task_times == AT_FLUSH, own, np.where(task_times < AT_FLUSH, ends, task_times))
        return self.of_columns(topic, times)

    def of_columns(self, topic: str, times: Longs) -> pa.Array:
        """Return the times of rows, given the stream time of the task at each of them."""
        latest = np.maximum(np.maximum.accumulate(times), self._latest.get(topic, -1))
        self._latest[topic] = int(latest[-1])
        return pa.array(latest)

    def restart(self) -> None:
        """Start again after a commit: later rows may come from the next flush, and have their own times."""
        self._latest.clear()
