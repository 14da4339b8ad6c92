"""The stateful queries of Spark: each computes a sub-topology that writes to topics, and those upstream.

The upstream sub-topologies write only to repartition topics. Spark's own exchange replaces these topics.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

from kstreams.dsl.graph import Node
from kstreams.processor.topology.barriers import reachable
from kstreams.processor.topology.topology import SubTopology, Topology

Queries = Mapping[int, frozenset[int]]
"""All sub-topologies of each query, by the sub-topology that writes to topics."""

OTHERS_TOO = "a sub-topology that cannot be in one query with it writes or reads its repartition topic"
_THROUGH = "a query with state neither reads nor writes a topic that the application itself writes and reads"


class Exchanges(NamedTuple):
    """The repartition topics between sub-topologies.

    Parameters
    ----------
    before, after : mapping of int to frozenset of int
        By sub-topology: the sub-topologies that write its source topics, and those that read its sink topics.
    inner : frozenset of int
        The sub-topologies that write only to repartition topics.
    """

    before: Mapping[int, frozenset[int]]
    after: Mapping[int, frozenset[int]]
    inner: frozenset[int]

    def members(self, number: int) -> frozenset[int]:
        """Return a sub-topology and all sub-topologies upstream."""
        return reachable(number, self.before) | {number}


def exchanges_of(topology: Topology) -> Exchanges:
    """Return the exchanges of a topology."""
    subs = topology.sub_topologies
    names = {topic.name for topic in topology.repartition_topics}
    written = {sub.id: _written(sub) for sub in subs}
    read = {sub.id: _read(sub) & names for sub in subs}
    before = {number: frozenset(w for w, topics in written.items() if topics & read[number]) for number in read}
    after = {number: frozenset(r for r, writers in before.items() if number in writers) for number in read}
    return Exchanges(
        before, after, frozenset(number for number, topics in written.items() if topics and topics <= names)
    )


def possible_queries(exchanges: Exchanges, able: Collection[int]) -> Queries:
    """Return the queries that the exchanges permit; other restrictions may exclude some of them.

    Parameters
    ----------
    able : collection of int
        The sub-topologies that can take the relational path.
    """
    ends = [number for number, readers in exchanges.after.items() if not readers]
    members_of = {number: exchanges.members(number) for number in ends}
    return {
        number: members
        for number, members in members_of.items()
        if members <= set(able) and members - {number} <= exchanges.inner
    }


def settled(queries: Queries, exchanges: Exchanges) -> Queries:
    """Return the queries in which all readers of a member take part."""
    chosen = dict(queries)
    while True:
        inside = frozenset().union(*chosen.values())
        complete = {
            number: members
            for number, members in chosen.items()
            if all(exchanges.after[member] <= inside for member in members)
        }
        if len(complete) == len(chosen):
            return complete
        chosen = complete


def through_reason(node: Node, topology: Topology) -> str | None:
    """Return the reason why a node cannot be in a query: its topic is written and read within a step."""
    subs = topology.sub_topologies
    names = {topic.name for topic in topology.repartition_topics}
    within = _all(map(_written, subs)) & _all(map(_read, subs)) - names
    topics_of_node = {getattr(node, "topic", None), *getattr(node, "topics", ())}
    return None if topics_of_node.isdisjoint(within) else _THROUGH


def _all(topics: Iterator[frozenset[object]]) -> frozenset[object]:
    return frozenset().union(*topics)


def _written(sub: SubTopology) -> frozenset[object]:
    return frozenset(sink.topic for sink in sub.sinks)


def _read(sub: SubTopology) -> frozenset[object]:
    return frozenset(topic for source in sub.sources for topic in source.topics)
