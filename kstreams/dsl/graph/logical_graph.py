"""`LogicalGraph`: the operators that the user declared, in order. Immutable, and independent of the engine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType

from kstreams.dsl.graph.node import Node


class LogicalGraph:
    """Nodes by name; parents come before their children.

    Parameters
    ----------
    nodes : iterable of Node
        In order of declaration.
    """

    __slots__ = ("_children", "_nodes")

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._nodes: Mapping[str, Node] = MappingProxyType({node.name: node for node in nodes})
        children: dict[str, list[Node]] = {name: [] for name in self._nodes}
        for node in self._nodes.values():
            for parent in dict.fromkeys(node.parents):
                children[parent].append(node)
        self._children = {name: tuple(child_names) for name, child_names in children.items()}

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes.values())

    def __len__(self) -> int:
        return len(self._nodes)

    def __contains__(self, name: object) -> bool:
        return name in self._nodes

    def __getitem__(self, name: str) -> Node:
        return self._nodes[name]

    def parents(self, node: Node) -> tuple[Node, ...]:
        """Return the nodes that a node reads."""
        return tuple(self._nodes[name] for name in node.parents)

    def children(self, node: Node) -> tuple[Node, ...]:
        """Return the nodes that read a node, in order of declaration."""
        return self._children[node.name]

    def upstream(self, node: Node, *, through: Callable[[Node], bool] = lambda node: True) -> Iterator[Node]:
        """Yield the node and all nodes before it, each once; do not go beyond nodes for which `through` is false."""
        return self._walk(node, self.parents, through)

    def downstream(self, node: Node, *, through: Callable[[Node], bool] = lambda node: True) -> Iterator[Node]:
        """Yield the node and all nodes after it, each once; do not go beyond nodes for which `through` is false."""
        return self._walk(node, self.children, through)

    @staticmethod
    def _walk(
        node: Node, neighbours: Callable[[Node], tuple[Node, ...]], through: Callable[[Node], bool]
    ) -> Iterator[Node]:
        visited = {node.name}
        pending = [node]
        while pending:
            current = pending.pop()
            yield current
            if not through(current):
                continue
            unvisited = [next_ for next_ in neighbours(current) if next_.name not in visited]
            visited.update(next_.name for next_ in unvisited)
            pending.extend(reversed(unvisited))
