"""`RelationalLowering`: frames of parents, types, serdes and outputs; the rule of every relational node is given it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kstreams.dsl.analysis.types import Types
from kstreams.dsl.graph import GlobalTableSource, LogicalGraph, Node
from kstreams.dsl.lowering import as_join_function
from kstreams.dsl.operator import operators
from kstreams.errors import TopologyError
from kstreams.expressions import Expr
from kstreams.runtime.spark.relational.frame import Frame
from kstreams.runtime.spark.relational.functions import F
from kstreams.runtime.spark.relational.typed_graph import TypedGraph
from kstreams.runtime.spark.relational.user_function import TypedColumn, UserFunction
from kstreams.serdes import Serde, serde_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Output(NamedTuple):
    """The rows that one sink writes to one topic; `drops` names the operator that drops those without a key, if any."""

    topic: str
    frame: Frame
    drops: str | None = None


class RelationalLowering:
    """Turns the nodes of one sub-topology, or of a query with those before it, into DataFrames.

    Parameters
    ----------
    typed : TypedGraph
        The graph and what is known of it.
    source : callable
        Gives the records of some topics, as `OUT_SCHEMA`.
    topic_names : mapping of str to str
        Real names of internal topics.
    topics : sequence of str
        Real names of the topics that are read.
    whole : callable
        Gives all records that the topic of a global table holds when a plan runs.
    """

    def __init__(
        self,
        typed: TypedGraph,
        source: Callable[[list[str]], DataFrame],
        topic_names: Mapping[str, str],
        topics: Sequence[str],
        whole: Callable[[str], DataFrame],
    ) -> None:
        self._whole = whole
        self.typed = typed
        self._source = source
        self._topic_names = topic_names
        self._topics = tuple(topics)
        self._frames: dict[str, Frame] = {}
        self._names = frozenset[str]()
        self.outputs: list[Output] = []

    def run(self, nodes: Sequence[Node]) -> list[Output]:
        """Apply the rule of every node, parents first."""
        self._names = frozenset(node.name for node in nodes)
        for node in nodes:
            lower = operators.of(node).spark.lower
            if lower is None:
                raise TopologyError(f"{node} has no relational form")
            frame = lower(node, self)
            if frame is not None:
                self._frames[node.name] = frame
        return self.outputs

    def begin_at(self, node: Node, rows: DataFrame) -> None:
        """Go on from the rows of a node that were computed before."""
        self._frames[node.name] = Frame(rows, self.serde(node, "key"), self.serde(node, "value"))

    def end_at(self, node: Node, topic: str) -> None:
        """Let the rows of a node go to a topic."""
        self.write(topic, self._frames[node.name])

    @property
    def graph(self) -> LogicalGraph:
        return self.typed.graph

    def parent(self, node: Node, position: int = 0) -> Frame:
        """The frame of a parent."""
        return self.frame(node.parents[position])

    def frame(self, name: str) -> Frame:
        """The frame of a node by its name."""
        return self._frames[name]

    def has_parent(self, node: Node) -> bool:
        """Whether the node reads another one of this sub-topology, rather than a topic."""
        return bool(node.parents) and node.parents[0] in self._frames

    def goes_on_behind(self, node: Node) -> bool:
        """Whether what reads a node is here too, rather than in a sub-topology of its own."""
        return any(child.name in self._names for child in self.graph.children(node))

    def types(self, node: Node) -> Types:
        """The types that flow out of a node."""
        return self.typed.types[node.name]

    def serde(self, node: Node, side: str) -> Serde[Any]:
        """The serde of a node's keys or values."""
        return serde_of(getattr(self.types(node), side).kind)

    def value_serde(self, node: Node, purpose: str) -> Serde[Any]:
        """The serde of a node's values."""
        return self.serde(node, "value")

    def input_types(self, node: Node, position: int = 0) -> Types:
        """The types of what comes from a parent."""
        return self.typed.of_parent(node, position)

    def joiner(self, node: Any) -> tuple[Callable[..., Any], bool]:
        """The joiner of a node as a Python function, and whether it takes the key."""
        if not isinstance(node.joiner, Expr):
            return node.joiner, node.with_key
        left = self.input_types(node)
        right = self.input_types(node, 1)
        return as_join_function(node, node.joiner, left, right, self.types(node)), True

    def function(self, node: Node, function: Any, reads: tuple[Serde[Any] | TypedColumn, ...]) -> UserFunction:
        """A Python function that the user gave for a node."""
        return UserFunction(function, node.name, node.declared_at, reads, self._topics)

    def read(self, node: Node, topics: Sequence[str]) -> Frame:
        """The records of some topics."""
        real = [self._topic_names.get(topic, topic) for topic in topics]
        return Frame.read(self._source(real), self.serde(node, "key"), self.serde(node, "value"))

    def rows_of(self, table: GlobalTableSource) -> DataFrame:
        """Key and value of the rows that a global table has when a plan runs."""
        records = self._whole(self._topic_names.get(table.topic, table.topic)).where("key is not null")
        return records.groupBy("key").agg(F.max_by("value", "offset").alias("value")).where("value is not null")

    def write(self, topic: str, frame: Frame, drops: str | None = None) -> None:
        """Let a frame go to a topic; rows without a key are dropped by the operator of this name, if there is one."""
        self.outputs.append(Output(self._topic_names.get(topic, topic), frame, drops))
