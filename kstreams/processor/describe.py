"""A topology as text, word for word as Kafka Streams' `TopologyDescription.toString()`.

Order matters to whoever compares texts: within a sub-topology nodes come by the size of what follows them, then by
name. Sizes count a node once per path, and neighbours are sorted by the sizes known when they were connected.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from kstreams.processor.nodes import Node, Sink, Source, Step, SubTopology, parents_of


def describe(sub_topologies: Collection[SubTopology]) -> str:
    """The text of a topology that falls into these parts."""
    return "Topologies:\n " + "".join("  " + _describe_part(part) for part in sub_topologies)


def _describe_part(part: SubTopology) -> str:
    remark = " for global store (will not generate tasks)" if part.is_global else ""
    neighbours = _Neighbours(part.nodes)
    lines = (line for node in neighbours.in_order() for line in _describe_node(node, neighbours))
    return f"Sub-topology: {part.id}{remark}\n" + "".join(f"{line}\n" for line in lines) + "\n"


class _Neighbours:
    """Sizes, predecessors and successors of the nodes of one sub-topology."""

    def __init__(self, nodes: Collection[Node]) -> None:
        self._nodes = nodes
        self.predecessors: dict[str, list[str]] = {node.name: list(parents_of(node)) for node in nodes}
        self.successors: dict[str, list[str]] = {node.name: [] for node in nodes}
        for node in nodes:
            for parent in parents_of(node):
                self.successors[parent].append(node.name)
        self._sizes = {node.name: 1 for node in nodes}
        for node in reversed(list(nodes)):
            self._sizes[node.name] += sum(self._sizes[child] for child in self.successors[node.name])

    def rank(self, name: str) -> tuple[int, str]:
        return -self._sizes[name], name

    def in_order(self) -> list[Node]:
        return sorted(self._nodes, key=lambda node: self.rank(node.name))


def _describe_node(node: Node, neighbours: _Neighbours) -> Iterator[str]:
    yield f"    {_TITLES[type(node)](node)}"
    if not isinstance(node, Sink):
        yield f"      --> {_joined(sorted(neighbours.successors[node.name], key=neighbours.rank))}"
    if not isinstance(node, Source):
        yield f"      <-- {_joined(neighbours.predecessors[node.name])}"


def _joined(names: Collection[str]) -> str:
    return ", ".join(names) or "none"


def _source(node: Source) -> str:
    topics = node.pattern.pattern if node.pattern else f"[{', '.join(node.topics)}]"
    return f"Source: {node.name} (topics: {topics})"


def _step(node: Step) -> str:
    return f"Processor: {node.name} (stores: [{', '.join(node.stores)}])"


def _sink(node: Sink) -> str:
    if isinstance(node.topic, str):
        return f"Sink: {node.name} (topic: {node.topic})"
    return f"Sink: {node.name} (extractor class: {getattr(node.topic, '__name__', type(node.topic).__name__)})"


_TITLES = {Source: _source, Step: _step, Sink: _sink}
