"""`Handle`: the base class of streams, tables and groups in programs of users: a graph builder and a node."""

from __future__ import annotations

from typing import Any

from kstreams.dsl.graph import Grouped, Node, Repartition
from kstreams.dsl.graph.node import N
from kstreams.dsl.graph_builder import GraphBuilder
from kstreams.dsl.naming import repartition_nodes, repartition_topic
from kstreams.dsl.suggestions import SuggestsNames
from kstreams.errors import TopologyError
from kstreams.kernel.source_line import declared_at


class Handle(SuggestsNames):
    """An immutable reference to a node. Two handles of one node are the same stream or table."""

    __slots__ = ("_graph", "_node")

    def __init__(self, graph: GraphBuilder, node: Node) -> None:
        self._graph = graph
        self._node = node

    def _add_node(self, node: N, prefix: str, name: str | None, *other_handles: Handle) -> N:
        """Add a node that reads this handle and others."""
        parents = (self._node.name, *(other._node.name for other in other_handles))
        return self._graph.add(node, self._graph.names.given_or_next(name, prefix), parents)

    def _meets(self, other: object, operator: str, *kinds: type[Handle]) -> None:
        """Raise a TopologyError unless the other handle is of one of these kinds and of the same builder."""
        if not isinstance(other, kinds):
            takes = " or ".join(kind.__name__ for kind in kinds)
            raise TopologyError(f"{operator}() at {declared_at()} takes a {takes}, not {other!r}")
        if other._graph is not self._graph:
            raise TopologyError(
                f"{operator}() at {declared_at()} reads {self} and {other}, which two StreamsBuilders declared: "
                "declare both by one"
            )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._node})"


def repartitioned(
    graph: GraphBuilder, node: Node, prefix: str, grouped: Grouped, *, owner: object = None, **settings: Any
) -> Repartition:
    """Return a repartition after a node; add it unless one with this topic exists.

    Parameters
    ----------
    prefix : str
        Names the topic: `<application.id>-<prefix>-repartition`.
    grouped : Grouped
        The declared types of the records.
    owner : object
        The handle whose aggregations share a topic with a name of the user. If another handle has the same name, the
        two need the optimization that merges repartitions.
    """
    topic = repartition_topic(prefix)
    sink, filter_, source = repartition_nodes(graph.names, topic)
    existing = graph.repartition_of(node, topic, owner)
    if existing is not None:
        return existing  # aggregations of one named group share the topic, as do joins of one stream
    repartition = Repartition(topic=topic, filter=filter_, sink=sink, key=grouped.key, value=grouped.value, **settings)
    return graph.own(graph.add(repartition, source, (node.name,)), owner)
