"""`RelationalLowering`: converts nodes to DataFrames by their rules, and gives the rules parents, types and serdes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from kstreams.dsl.analysis.types import Types
from kstreams.dsl.graph import (
    GlobalTableJoin,
    GlobalTableSource,
    LogicalGraph,
    Node,
    SelfJoin,
    StreamJoin,
    StreamTableJoin,
)
from kstreams.dsl.lowering import as_join_function
from kstreams.dsl.operator import operators
from kstreams.errors import TopologyError
from kstreams.expressions import Expr
from kstreams.runtime.spark.code.typed_graph import TypedGraph
from kstreams.runtime.spark.relational.frame import Frame
from kstreams.runtime.spark.relational.functions import F
from kstreams.runtime.spark.relational.user_function import TypedColumn, UserFunction
from kstreams.serdes import Serde, serde_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Join: TypeAlias = StreamJoin | SelfJoin | StreamTableJoin | GlobalTableJoin
"""The joins that have a relational form."""


class RelationalLowering:
    """The conversion of the nodes before a stream to the DataFrame of the stream.

    Parameters
    ----------
    typed : TypedGraph
        The graph with its types.
    source : callable
        Returns the records of some topics, as `OUT_SCHEMA`.
    topic_names : mapping of str to str
        The names of internal topics in the log, by their names in the topology.
    topics : sequence of str
        The names in the log of the topics that are read.
    all_records : callable
        Returns all records that the topic of a global table holds when a plan runs.
    """

    def __init__(
        self,
        typed: TypedGraph,
        source: Callable[[list[str]], DataFrame],
        topic_names: Mapping[str, str],
        topics: Sequence[str],
        all_records: Callable[[str], DataFrame],
    ) -> None:
        self._all_records = all_records
        self.typed = typed
        self._source = source
        self._topic_names = topic_names
        self._topics = tuple(topics)
        self._frames: dict[str, Frame] = {}

    def run(self, nodes: Sequence[Node]) -> None:
        """Apply the rule of every node, parents first."""
        for node in nodes:
            lower = operators.of(node).spark.lower
            if lower is None:
                raise TopologyError(f"{node} has no relational form")
            self._frames[node.name] = lower(node, self)

    @property
    def graph(self) -> LogicalGraph:
        return self.typed.graph

    def parent(self, node: Node, position: int = 0) -> Frame:
        """Return the frame of a parent."""
        return self.frame(node.parents[position])

    def frame(self, name: str) -> Frame:
        """Return the frame of a node by its name."""
        return self._frames[name]

    def types(self, node: Node) -> Types:
        """Return the output types of a node."""
        return self.typed.types[node.name]

    def serde(self, node: Node, side: str) -> Serde:
        """Return the serde of a node's keys or values."""
        return serde_of(getattr(self.types(node), side).kind)

    def value_serde(self, node: Node, purpose: str) -> Serde:
        """Return the serde of a node's values."""
        return self.serde(node, "value")

    def input_types(self, node: Node, position: int = 0) -> Types:
        """Return the output types of a parent."""
        return self.typed.of_parent(node, position)

    def joiner(self, node: Join) -> tuple[Callable[..., Any], bool]:
        """Return the joiner of a node as a Python function, and True if it takes the key."""
        if not isinstance(node.joiner, Expr):
            return node.joiner, node.with_key
        left = self.input_types(node)
        right = self.input_types(node, 1)
        return as_join_function(node, node.joiner, left, right, self.types(node)), True

    def function(self, node: Node, function: Any, reads: tuple[Serde | TypedColumn, ...]) -> UserFunction:
        """Return a Python function of the user for a node."""
        return UserFunction(function, node.name, node.declared_at, reads, self._topics)

    def read(self, node: Node, topics: Sequence[str]) -> Frame:
        """Return the records of some topics."""
        names_in_log = [self._topic_names.get(topic, topic) for topic in topics]
        return Frame.read(self._source(names_in_log), self.serde(node, "key"), self.serde(node, "value"))

    def rows_of(self, table: GlobalTableSource) -> DataFrame:
        """Return the keys and values of the rows that a global table has when a plan runs."""
        records = self._all_records(self._topic_names.get(table.topic, table.topic)).where("key is not null")
        return records.groupBy("key").agg(F.max_by("value", "offset").alias("value")).where("value is not null")
