"""Rules of sinks, and of repartitions: a filter, a sink and a source around an internal topic."""

from __future__ import annotations

from collections.abc import Callable

from kstreams.dsl.analysis.types_of_streams import declared
from kstreams.dsl.graph import Repartition, To
from kstreams.dsl.lowering import Lowering
from kstreams.dsl.operator import OperatorDescriptor
from kstreams.expressions import Expr
from kstreams.expressions import key as key_of_record
from kstreams.kernel.timestamps import FailOnInvalidTimestamp
from kstreams.processor.columns import ProjectForm
from kstreams.processor.operators.stateless import DropNullKeysOperator, PassOperator
from kstreams.processor.topology.nodes import repartition_topic


def to(node: To, build: Lowering) -> str:
    where = f"to write topic {node.topic!r}" if isinstance(node.topic, str) else "to write the topics it chooses"
    return build.sink(node, node.name, _topic(node, build), partitioner=node.partitioner, **build.serdes(node, where))


def _topic(node: To, build: Lowering) -> str | Callable[..., str]:
    if not isinstance(node.topic, Expr):
        return node.topic
    choose = build.function(node, node.topic, ("key", "value", "timestamp", "record"))
    return lambda key, value, context: choose(key, value, context.timestamp, context)


def repartition(node: Repartition, build: Lowering) -> str:
    serdes = build.serdes(node, "to repartition its records")
    build.topology.add_repartition_topic(repartition_topic(node.topic, node.partitions))
    build.sink(node, node.sink, node.topic, parents=(_filter(node, build),), partitioner=node.partitioner, **serdes)
    return build.source(node, node.name, (node.topic,), timestamp_extractor=FailOnInvalidTimestamp(), **serdes)


def _filter(node: Repartition, build: Lowering) -> str:
    if node.name in build.with_null_keys:
        return build.processor(node, PassOperator(), name=node.filter, columns=ProjectForm())
    columns = ProjectForm(where=~key_of_record.is_null(), counts=True)
    return build.processor(node, DropNullKeysOperator(), name=node.filter, columns=columns)


OPERATORS = (
    OperatorDescriptor(node=To, types=declared, topology=to),
    OperatorDescriptor(node=Repartition, types=declared, topology=repartition),
)
