"""The input of one task in one step: taken piece by piece, in the order in which a native task would take it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping

from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.processor.task.interleaved import Interleaved
from kstreams.processor.task.partition_group import PartitionGroup

Feeds = Mapping[TopicPartition, Iterable[Batch]]
"""By partition: its records in order of their offsets; each may be read again from its beginning."""


def in_order(feeds: Feeds, stamp: Callable[[Batch], Batch]) -> Iterator[Interleaved]:
    """The records of all partitions, each time from the one whose next record has the lowest timestamp.

    Of each partition a batch is held; the next is read when it is used up.

    Parameters
    ----------
    feeds : mapping of TopicPartition to iterable of Batch
    stamp : callable
        Gives a batch the timestamps of its source; called once for each, in offset order.

    Examples
    --------
    >>> from kstreams.kernel.batch import Row
    >>> def batch(name, *times):
    ...     return Batch.of_rows(TopicPartition(name, 0), [Row(None, None, time, ()) for time in times])
    >>> feeds = {TopicPartition("a", 0): [batch("a", 1, 7), batch("a", 8)], TopicPartition("b", 0): [batch("b", 2, 9)]}
    >>> [str(run.parts[part].source) for run in in_order(feeds, lambda batch: batch) for part, _ in run.turns()]
    ['a-0', 'b-0', 'a-0', 'a-0', 'b-0']
    """
    group = PartitionGroup(sorted(feeds), stamp=stamp)
    ahead = {source: iter(feeds[source]) for source in sorted(feeds)}
    while True:
        for source in list(ahead):
            while not group.buffered(source):
                batch = next(ahead[source], None)
                if batch is None:
                    del ahead[source]
                    break
                group.add(batch)
        runs = group.next_runs(sys.maxsize)
        if runs is None:
            return
        yield runs
