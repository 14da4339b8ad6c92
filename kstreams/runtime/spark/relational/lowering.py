"""The relational path: the rule book from logical nodes to DataFrames, and what keeps a node off it.

Two books with one entry per node type: `relational` says how, `obstacles` says why not for what the user gave. A node
type without a rule is declared unsupported, with the reason; `differences` says in words what is not exact.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kstreams.dsl.analysis.types import Types
from kstreams.dsl.graph import LogicalGraph, Node
from kstreams.dsl.rule_book import RuleBook
from kstreams.log.partitioning import partitions_of
from kstreams.runtime.spark.plan import PathPlan
from kstreams.runtime.spark.program import Program
from kstreams.runtime.spark.relational.frame import Frame, arrow_call
from kstreams.runtime.spark.relational.obstacles import Facts
from kstreams.runtime.spark.relational.user_function import UserFunction, origin_column, partition_of_origin
from kstreams.runtime.spark.reports import CONTROL_TOPIC, one_dropped
from kstreams.serdes import Serde, TimeWindowedSerde, serde_of

Rule = Callable[[Any, "Lowering"], Frame | None]
relational: RuleBook[Rule] = RuleBook("Spark's relational path")


class Output(NamedTuple):
    """The rows that one sink writes to one topic; `drops` names the operator that drops those without a key, if any."""

    topic: str
    frame: Frame
    drops: str | None = None


class Lowering:
    """The nodes of one sub-topology on their way to DataFrames.

    Parameters
    ----------
    facts : Facts
        The graph and what is known of it.
    source : callable
        Gives the records of some topics, as `OUT_SCHEMA`.
    topic_names : mapping of str to str
        Real names of internal topics.
    topics : sequence of str
        Real names of the topics that the sub-topology reads.
    """

    def __init__(
        self,
        facts: Facts,
        source: Callable[[list[str]], DataFrame],
        topic_names: Mapping[str, str],
        topics: Sequence[str],
    ) -> None:
        self.facts, self._source, self._topic_names, self._topics = facts, source, topic_names, tuple(topics)
        self._frames: dict[str, Frame] = {}
        self.outputs: list[Output] = []

    def run(self, nodes: Sequence[Node]) -> list[Output]:
        """Apply the rule of every node, parents first."""
        for node in nodes:
            frame = relational.rule_for(node)(node, self)
            if frame is not None:
                self._frames[node.name] = frame
        return self.outputs

    @property
    def graph(self) -> LogicalGraph:
        return self.facts.graph

    def parent(self, node: Node, position: int = 0) -> Frame:
        """The frame of a parent."""
        return self._frames[node.parents[position]]

    def has_parent(self, node: Node) -> bool:
        """Whether the node reads another one of this sub-topology, rather than a topic."""
        return bool(node.parents) and node.parents[0] in self._frames

    def types(self, node: Node) -> Types:
        """The types that flow out of a node."""
        return self.facts.types[node.name]

    def serde(self, node: Node, side: str) -> Serde[Any]:
        """The serde of a node's keys or values."""
        return serde_of(getattr(self.types(node), side).kind)

    def function(self, node: Node, function: Any, reads: tuple[Serde[Any], ...]) -> UserFunction:
        """A Python function that the user gave for a node."""
        return UserFunction(function, node.name, node.declared_at, reads, self._topics)

    def read(self, node: Node, topics: Sequence[str]) -> Frame:
        """The records of some topics."""
        real = [self._topic_names.get(topic, topic) for topic in topics]
        return Frame(self._source(real), self.serde(node, "key"), self.serde(node, "value"))

    def write(self, topic: str, frame: Frame, drops: str | None = None) -> None:
        """Let a frame go to a topic; rows without a key are dropped by the operator of this name, if there is one."""
        self.outputs.append(Output(self._topic_names.get(topic, topic), frame, drops))


def relational_rows(
    plan: PathPlan, number: int, source: Callable[[list[str]], DataFrame], program: Program
) -> DataFrame:
    """What a sub-topology on the relational path writes, as `OUT_SCHEMA`.

    Parameters
    ----------
    source : callable
        Gives the records of some topics, as `OUT_SCHEMA` but for the origin.
    """
    from kstreams.runtime.spark.relational import rules  # noqa: F401 (fills the rule book)

    assert plan.facts is not None
    build = Lowering(
        plan.facts,
        lambda topics: source(topics).withColumn("origin", origin_column(number)),
        program.topic_names,
        program.inputs[number],
    )
    written = [_rows(output, program) for output in build.run(plan.nodes[number])]
    return reduce(lambda left, right: left.union(right), written)


def _rows(output: Output, program: Program) -> DataFrame:
    count = program.partitions.get(output.topic, program.default_partitions)
    key, serde = F.col("key"), output.frame.key
    if isinstance(serde, TimeWindowedSerde):
        key = key.substr(F.lit(1), F.length(key) - 8)  # windows of one key stay together: only the key inside decides
    partition = arrow_call("int", _placed, (count,), key, partition_of_origin())
    topic, value = F.lit(output.topic), F.col("value")
    if output.drops is not None:
        has_key, told = F.col("key").isNotNull(), bytearray(one_dropped(output.drops, "null key"))
        topic, value = F.when(has_key, topic).otherwise(CONTROL_TOPIC), F.when(has_key, value).otherwise(F.lit(told))
    return output.frame.rows.select(
        topic.alias("topic"),
        partition.alias("partition"),
        *("offset", "timestamp", "key"),
        value.alias("value"),
        *("headers", "origin"),
    )


def _placed(count: int, keys: pa.Array, own: pa.Array) -> pa.Array:
    """Where each row goes: by its key; without one, to the partition that it came from, as a task would put it."""
    chosen = partitions_of(keys, count)
    return pa.array(np.where(chosen < 0, own.to_numpy() % count, chosen), pa.int32())
