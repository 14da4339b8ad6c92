"""`GraphBuilder`: the logical graph while the user declares it; all handles of a `StreamsBuilder` add to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from kstreams.dsl.analysis.facts import repartition_required
from kstreams.dsl.graph import LogicalGraph, Node, Repartition, TableRepartition, check_arguments, declare, refuse_async
from kstreams.dsl.graph.node import N
from kstreams.dsl.naming import Names
from kstreams.errors import TopologyError
from kstreams.kernel.source_line import declared_at
from kstreams.processor.topology.connectors import DeclaredSink, DeclaredSource
from kstreams.processor.topology.feeds import Feed
from kstreams.state.api import StoreBuilder

if TYPE_CHECKING:
    from kstreams.dsl.streams.kstream import KStream
    from kstreams.dsl.tables.ktable import KTable


class HandleTypes(NamedTuple):
    """The classes of streams and tables, with which handles create each other without import cycles."""

    stream: type[KStream[Any, Any]]
    table: type[KTable[Any, Any]]


class GraphBuilder:
    """The graph under construction: its nodes in order of declaration, and the counter of names.

    Parameters
    ----------
    handles : HandleTypes
        The classes of the handles that `stream` and `table` return.
    """

    def __init__(self, handles: HandleTypes) -> None:
        self.handles = handles
        self.names = Names()
        self.stores: list[StoreBuilder] = []
        self.feeds: list[Feed] = []
        self.sources: list[DeclaredSource] = []
        self.sinks: list[DeclaredSink] = []
        self._nodes: dict[str, Node] = {}
        self._owners: dict[str, object] = {}
        self._repeated: list[str] = []

    def add(self, node: N, name: str, parents: tuple[str, ...] = ()) -> N:
        """Add a node with its name, its parents, and the line of the user's call."""
        line = declared_at()
        if name in self._nodes:
            existing = self._nodes[name]
            raise TopologyError(f"{name!r} at {line} is already the name of {existing}: give one of them another name=")
        declared = declare(node, name, parents, line)
        check_arguments(declared)
        refuse_async(declared)
        self._nodes[name] = declared
        return declared

    def repartition_of(self, node: Node, topic: str, owner: object) -> Repartition | None:
        """Return the repartition of a node through a topic that an aggregation or join has added."""
        of_topic = (other for other in self._nodes.values() if isinstance(other, Repartition) and other.topic == topic)
        existing = next((other for other in of_topic if other.parents == (node.name,) and not other.explicit), None)
        if existing is not None and self._owners[existing.name] != owner:
            self._repeated.append(
                f"The repartition topic {topic!r} at {declared_at()} is already that of {existing}: give one grouping "
                "another name=, or set topology.optimization to merge.repartition.topics, which makes one topic of both"
            )
        return existing

    def own(self, repartition: Repartition, owner: object) -> Repartition:
        """Store the owner of a repartition."""
        self._owners[repartition.name] = owner
        return repartition

    def check_names(self, *, merges: bool) -> None:
        """Raise a TopologyError if groups have the same name, and repartitions are not merged."""
        if self._repeated and not merges:
            raise TopologyError(self._repeated[0])

    def table_repartition_of(self, node: Node, topic: str) -> TableRepartition | None:
        """Return the repartition of a grouped table through a topic that an earlier aggregation has added."""
        repartitions = (other for other in self._nodes.values() if isinstance(other, TableRepartition))
        return next((other for other in repartitions if (other.topic, other.parents) == (topic, (node.name,))), None)

    def repartition_required(self, node: Node) -> bool:
        """Return whether the output of a node must be repartitioned before a grouping or join."""
        return repartition_required(self._nodes, node)

    def graph(self) -> LogicalGraph:
        """Return the graph of the nodes that are declared so far."""
        return LogicalGraph(self._nodes.values())

    def stream(self, node: Node) -> KStream[Any, Any]:
        """Return the `KStream` of a node."""
        return self.handles.stream(self, node)

    def table(self, node: Node) -> KTable[Any, Any]:
        """Return the `KTable` of a node."""
        return self.handles.table(self, node)
