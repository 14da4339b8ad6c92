"""A topology as text, word for word as Kafka Streams' `TopologyDescription.toString()`.

Texts are compared, so the order matters: the nodes of a sub-topology are sorted by the number of nodes after them,
where a node counts once per path, then by name.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Collection, Iterator
from typing import Any

from kstreams.processor.topology.nodes import ProcessorNode, SinkNode, SourceNode, SubTopology, TopologyNode, parents_of


def hash_set_order(names: Collection[str]) -> list[str]:
    """Sort names by their bucket in a Java hash set of this size; names in a bucket keep their order.

    Examples
    --------
    >>> hash_set_order(["in1", "in2"])
    ['in2', 'in1']
    """
    buckets = 16
    while len(names) > buckets * 3 // 4:
        buckets *= 2
    return sorted(names, key=lambda name: _spread(string_hash(name)) % buckets)


def string_hash(text: str) -> int:
    """Return Java's `String.hashCode()` as an unsigned 32-bit number.

    Examples
    --------
    >>> string_hash("hello")
    99162322
    """
    result = 0
    units = text.encode("utf-16-be")
    for high, low in zip(units[::2], units[1::2], strict=True):
        result = (31 * result + (high << 8 | low)) & 0xFFFFFFFF
    return result


def _spread(code: int) -> int:
    return code ^ (code >> 16)


def describe(sub_topologies: Collection[SubTopology]) -> str:
    """Return the text of a topology with these sub-topologies."""
    return "Topologies:\n " + "".join("  " + _describe_part(part) for part in sub_topologies)


def _describe_part(part: SubTopology) -> str:
    remark = " for global store (will not generate tasks)" if part.is_global else ""
    neighbours = _Neighbours(part.nodes)
    lines = (line for node in neighbours.in_order() for line in _describe_node(node, neighbours))
    end = "" if part.is_global else "\n"
    return f"Sub-topology: {part.id}{remark}\n" + "".join(f"{line}\n" for line in lines) + end


class _Neighbours:
    """Sizes, predecessors and successors of the nodes of one sub-topology.

    The nodes are connected in the order of Kafka Streams' hash map. A neighbour is inserted by the sizes at that
    moment, and is not moved when sizes grow.
    """

    def __init__(self, nodes: Collection[TopologyNode]) -> None:
        self._nodes = {node.name: node for node in nodes}
        self._sizes = dict.fromkeys(self._nodes, 1)
        self.predecessors: dict[str, list[str]] = {name: [] for name in self._nodes}
        self.successors: dict[str, list[str]] = {name: [] for name in self._nodes}
        for name in hash_set_order(self._nodes):
            for parent in parents_of(self._nodes[name]):
                self._connect(parent, name)

    def _connect(self, parent: str, child: str) -> None:
        insort(self.predecessors[child], parent, key=self._rank)
        insort(self.successors[parent], child, key=self._rank)
        self._grow(parent, self._sizes[child])

    def _grow(self, name: str, size: int) -> None:
        self._sizes[name] += size
        for parent in self.predecessors[name]:
            self._grow(parent, size)

    def _rank(self, name: str) -> tuple[int, str]:
        return -self._sizes[name], name

    def in_order(self) -> list[TopologyNode]:
        return [self._nodes[name] for name in sorted(self._nodes, key=self._rank)]


def _describe_node(node: TopologyNode, neighbours: _Neighbours) -> Iterator[str]:
    yield f"    {_TITLES[type(node)](node)}"
    if not isinstance(node, SinkNode):
        yield f"      --> {_joined(neighbours.successors[node.name])}"
    if not isinstance(node, SourceNode):
        yield f"      <-- {_joined(neighbours.predecessors[node.name])}"


def _joined(names: Collection[str]) -> str:
    return ", ".join(names) or "none"


def _source(node: SourceNode) -> str:
    topics = node.pattern.pattern if node.pattern else f"[{', '.join(hash_set_order(node.topics))}]"
    return f"Source: {node.name} (topics: {topics})"


def _step(node: ProcessorNode) -> str:
    return f"Processor: {node.name} (stores: [{', '.join(hash_set_order(node.stores))}])"


def _sink(node: SinkNode) -> str:
    if isinstance(node.topic, str):
        return f"Sink: {node.name} (topic: {node.topic})"
    return f"Sink: {node.name} (extractor class: {getattr(node.topic, '__name__', type(node.topic).__name__)})"


_TITLES: dict[type, Callable[[Any], str]] = {SourceNode: _source, ProcessorNode: _step, SinkNode: _sink}
