"""Rules of sources, of sinks, and of repartitions: a filter, a sink and a source around an internal topic."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kstreams.dsl.analysis.tables import Materialization
from kstreams.dsl.analysis.types import TypeOf, Types, declared_types
from kstreams.dsl.graph import Consumed, GlobalTableSource, Node, Repartition, StreamSource, TableSource, To
from kstreams.dsl.lowering import Lowering
from kstreams.dsl.operator import OperatorDescriptor
from kstreams.dsl.rules.tables import table_of_records
from kstreams.expressions import Expr
from kstreams.expressions import key as key_of_record
from kstreams.kernel.timestamps import FailOnInvalidTimestamp
from kstreams.processor.columns import ProjectForm
from kstreams.processor.operators.aggregation.emission import MaterializedRows
from kstreams.processor.operators.stateless import DropNullKeysOperator, PassOperator
from kstreams.processor.operators.tables.rows import StoreView, TableSourceOperator
from kstreams.processor.topology.nodes import repartition_topic
from kstreams.state import store_kinds


def source_types(node: StreamSource | TableSource | GlobalTableSource, parents: tuple[Types, ...]) -> Types:
    return Types(TypeOf(node.consumed.key, node), TypeOf(node.consumed.value, node))


def stream_source(node: StreamSource, build: Lowering) -> str:
    return build.source(node, node.name, node.topics, pattern=node.pattern, **consumed(node, node.consumed, build))


def table_source(node: TableSource, build: Lowering) -> str:
    build.source(node, node.source, (node.topic,), **consumed(node, node.consumed, build))
    return table_of_records(node, build, (node.source,), node.topic if node.restored_from_source else None)


def global_table_source(node: GlobalTableSource, build: Lowering) -> str:
    settings = consumed(node, node.consumed, build)
    build.source(node, node.source, (node.topic,), **settings)
    serdes = {side: settings[side] for side in ("key", "value")}
    kind = store_kinds.TIMESTAMPED_KEY_VALUE
    store = build.store(node.store, kind, node.materialized, is_global=True, **serdes)
    build.set_view(node, StoreView(store))
    operator = TableSourceOperator(MaterializedRows(store, caching=False))
    return build.processor(node, operator, parents=(node.source,), stores=(store,))


def consumed(node: Node, how: Consumed, build: Lowering) -> dict[str, Any]:
    """Return the settings of a source: serdes, timestamp extractor, offset reset."""
    purpose = "to read its topics"
    return {
        "key": build.key_serde(node, purpose),
        "value": build.value_serde(node, purpose),
        "timestamp_extractor": how.timestamp_extractor,
        "offset_reset": how.offset_reset,
    }


def to(node: To, build: Lowering) -> str:
    where = f"to write topic {node.topic!r}" if isinstance(node.topic, str) else "to write the topics it chooses"
    settings = {"partitioner": node.partitioner, **build.serdes(node, where)}
    if node.park is not None:
        settings["parents"] = (*build.outputs(node), build.returned_records(node, node.park, str(node.topic)))
    return build.sink(node, node.name, _topic(node, build), **settings)


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
    OperatorDescriptor(node=StreamSource, types=source_types, topology=stream_source),
    OperatorDescriptor(
        node=TableSource, types=source_types, topology=table_source, materialization=Materialization.ON_DEMAND
    ),
    OperatorDescriptor(
        node=GlobalTableSource, types=source_types, topology=global_table_source, materialization=Materialization.ALWAYS
    ),
    OperatorDescriptor(node=To, types=declared_types, topology=to),
    OperatorDescriptor(node=Repartition, types=declared_types, topology=repartition),
)
