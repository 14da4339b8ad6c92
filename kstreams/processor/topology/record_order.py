"""`RecordOrder`: the order of records across repartition topics, the same for every division of the input. Pure.

A source record stands at its *place*: first the greatest timestamp of its partition up to this record, then its
partition number, its topic by name, and its offset. A record that tasks have written stands at the place of the source
record that it follows from, across any number of repartition topics. Every task takes its records in the order of their
places. Those of one place come by topic, then by the partition of the writing task, then in the order of the writing.
So any prefix of the source records determines what each task takes first.

The first part of a place is a time, which `Batch.places` has. The other parts are one number, the *rank*.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from kstreams.kernel.batch import Batch, Integers

LAST_RANK: Final = (1 << 63) - 1
"""A rank after all others."""

_OFFSET_BITS = 40
_TOPIC_BITS = 8
_PARTITION_SHIFT = _OFFSET_BITS + _TOPIC_BITS
_MOST_PARTITIONS = 1 << 63 - _PARTITION_SHIFT


@dataclass(frozen=True)
class RecordOrder:
    """The topics and sub-topologies in which records have ranks.

    A rank is needed where a sub-topology reads a repartition topic and another topic, or writes to a repartition topic
    what it read from one. Elsewhere the rank of a record follows from the task that wrote it.

    Parameters
    ----------
    topics : frozenset of str
        The repartition topics whose rows carry the ranks of their source records.
    sub_topologies : frozenset of int
        The sub-topologies that read or write one of these topics.
    sources : mapping of str to int
        By source topic: its number in the order of names.
    """

    topics: frozenset[str]
    sub_topologies: frozenset[int]
    sources: Mapping[str, int]

    @classmethod
    def of(
        cls, inputs: Mapping[int, Collection[str]], written: Mapping[int, Collection[str]], internal: Collection[str]
    ) -> RecordOrder:
        """Return the order of a topology.

        Parameters
        ----------
        inputs, written : mapping of int to collection of str
            By sub-topology: the topics that it reads and writes.
        internal : collection of str
            The repartition topics whose rows are in order of stream time.

        Examples
        --------
        >>> order = RecordOrder.of({0: ["a"], 1: ["r"], 2: ["s", "b"]}, {0: ["r"], 1: ["s"], 2: []}, ["r", "s"])
        >>> sorted(order.topics), order.sources
        (['r', 's'], {'a': 0, 'b': 1})
        """
        of_order = frozenset(internal)
        combining = [
            sub
            for sub, topics in inputs.items()
            if not of_order.isdisjoint(topics) and (len(topics) > 1 or not of_order.isdisjoint(written.get(sub, ())))
        ]
        ranked = of_order & _topics_of(combining, inputs, written)
        subs = (sub for sub in inputs if not ranked.isdisjoint([*inputs[sub], *written.get(sub, ())]))
        names = sorted({topic for topics in inputs.values() for topic in topics} - of_order)
        return cls(ranked, frozenset(subs), {name: number for number, name in enumerate(names)})

    def placed(self, sub_topology: int, batch: Batch) -> Batch:
        """Give the records of a source topic their ranks, if the sub-topology needs them."""
        if sub_topology in self.sub_topologies and batch.source.topic in self.sources:
            batch.ranks = self.ranks(batch)
        return batch

    def ranks(self, batch: Batch) -> Integers:
        """Return the ranks of the records of a source topic."""
        topic, partition = batch.source
        number = min(self.sources[topic], (1 << _TOPIC_BITS) - 1)
        first = min(partition, _MOST_PARTITIONS - 1) << _PARTITION_SHIFT | number << _OFFSET_BITS
        ranks: Integers = batch.offsets + first
        return ranks


def _topics_of(
    sub_topologies: Collection[int], inputs: Mapping[int, Collection[str]], written: Mapping[int, Collection[str]]
) -> frozenset[str]:
    """Return the topics that some sub-topologies read or write."""
    return frozenset().union(*([*inputs[sub], *written.get(sub, ())] for sub in sub_topologies))
