"""The topology of a draw, and what may be compared of its results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import kstreams as ks
from kstreams.dsl.graph.node import Keys, Node
from kstreams.dsl.graph.sources import To
from kstreams.processor.topology.barriers import in_cycles
from kstreams.processor.topology.layout import Layout
from kstreams.processor.topology.topology import Topology
from tests.columns.random_topologies import JOINERS, STEPS, Maker, Order, counted, inner_key, shop

MOMENT_MS = 100
RECIPES = (
    [],
    ["select_key", "aggregate"],
    ["filter", "select_key", "aggregate"],
    ["suppress", "select_key", "aggregate"],
    ["aggregate", "select_key", "aggregate again"],
    ["stream join"],
    ["table join"],
    ["select_key", "stream join"],
    ["select_key", "table join"],
    ["last of windows", "last of groups"],
    ["select_key", "last of windows", "last of groups", "last of groups"],
    ["last of windows", "table join"],
    ["select_key", "stream join", "table join", "last of groups"],
    ["select_key", "last of groups", "select_key", "stream join", "table join", "last of groups"],
)
"""Steps that a topology begins with; others follow."""

JOINED = ("joined", "grouped")
"""Where the results of a foreign-key join go: how many updates they take depends on when answers come back."""


class DrawnTopology(Maker):
    """A random topology, with foreign-key joins beside the steps of the others, and moments that suit the data.

    Parameters
    ----------
    seed : str
        Says all about it.
    passed : callable, optional
        Called with every record that is read from `in-0` and `in-1`.
    """

    def __init__(self, seed: str, passed: Callable[[Any, Any], None] | None = None) -> None:
        self.passed = passed
        super().__init__(seed, MOMENT_MS)

    def topology(self) -> Topology:
        """A recipe, some steps more, and sometimes a foreign-key join."""
        if self.random.random() < 0.2:
            self.streams[0] = self.streams[0].repartition(key=str, value=Order, partitions=self.random.randint(1, 5))
            self.said.append("spread")
        more = [self._pick(list(STEPS)) for _ in range(self.random.randint(0, 3))]
        for name in [*self._pick(list(RECIPES)), *more] or ["repartition"]:
            self._step(name)
        if self.random.random() < 0.15:
            self._join_by_foreign_key(self._pick(self.streams))
        return self._finished()

    def _source(self, topic: str) -> ks.KStream[Any, Any]:
        stream = super()._source(topic)
        return stream if self.passed is None else stream.peek(self.passed)

    def _sink_topic(self, number: int) -> Any:
        odd_or_even = lambda key, order, context: "even" if order is None or order["paid"] else "odd"  # noqa: E731
        return self._pick([f"out-{number}"] * 6 + ["shared", odd_or_even])

    def _join_by_foreign_key(self, stream: ks.KStream[Any, Any]) -> None:
        self.said.append("foreign-key join")
        left = stream.to_table(key=str, value=Order, materialized="left")
        right = self.builder.table("right", key=str, value=Order, materialized="right")
        join = self._pick([left.join, left.left_join])
        joined = join(right, JOINERS[-1], foreign_key=lambda order: order["shop"], value=Order)
        joined.to_stream().to("joined", key=str, value=Order)
        if self.random.random() < 0.5:
            count = joined.group_by((shop, ks.value), key=str, value=Order, name="grouped").count()
            count.filter(lambda shop, number: number > 0).map_values(counted, value=Order).to_stream().to(
                "grouped", key=str, value=Order
            )


@dataclass(frozen=True)
class Comparable:
    """What of the results is the same however a topology is run.

    Parameters
    ----------
    records : frozenset of str
        Topics whose partitions hold the same records.
    changelogs : frozenset of str
        Topics that hold the same records of every key in the same order, too: one task writes all of a key.
    tables : frozenset of str
        Topics of which only the last record of every key is the same.
    """

    records: frozenset[str]
    changelogs: frozenset[str]
    tables: frozenset[str]


def comparable(topology: Topology) -> Comparable:
    """See `Comparable`."""
    writers = _writers(topology)
    records = writers.keys() - {*JOINED}
    keyed = {topic for topic in records if len(writers[topic]) == 1 and _is_keyed(topology, topic)}
    return Comparable(frozenset(records), frozenset(keyed), frozenset(writers.keys() & {*JOINED}))


def is_unordered(topology: Topology, layout: Layout) -> bool:
    """Whether a repartition topic comes from a circle of sub-topologies, as those of a foreign-key join.

    These do not advance together in time, so its order is not determined on the native engine either. The topics of the
    join itself are not meant: its final rows do not depend on their order.
    """
    circles = in_cycles(layout.upstream)
    sinks = [sink.topic for sub in topology.sub_topologies if sub.id in circles for sink in sub.sinks]
    ordered = layout.topic_names.keys() - {"grouped-repartition"}
    return any(topic in ordered and "-FK-JOIN-" not in str(topic) for topic in sinks)


def is_uneven(layout: Layout) -> bool:
    """Whether a sub-topology reads topics of unequal numbers of partitions: keys are then in more than one task."""
    circles = in_cycles(layout.upstream)
    global_ = {sub.id for sub in layout.globals}
    read = {sub: {layout.partitions[topic] for topic in topics} for sub, topics in layout.inputs.items()}
    return any(len(counts) > 1 for sub, counts in read.items() if sub not in circles | global_)


def _writers(topology: Topology) -> Mapping[str, set[int]]:
    repartition = {topic.name for topic in topology.repartition_topics}
    found: dict[str, set[int]] = {}
    for sub in topology.sub_topologies:
        for sink in sub.sinks:
            for topic in [sink.topic] if isinstance(sink.topic, str) else ["odd", "even"]:
                if topic not in repartition:
                    found.setdefault(topic, set()).add(sub.id)
    return found


def _is_keyed(topology: Topology, topic: str) -> bool:
    sinks = [node for node in topology.graph if isinstance(node, To) and node.topic == topic]
    return bool(sinks) and all(_keeps_keys(topology.graph, node) for node in sinks)


def _keeps_keys(graph: Any, sink: Node) -> bool:
    """Whether all records of a key come from one task: a window in the key changes nothing about that."""
    nodes = graph.upstream(sink, through=lambda node: node.keys is not Keys.IN_PLACE)
    return all(node.keys is not Keys.CHANGED or getattr(node, "function", None) is inner_key for node in nodes)
