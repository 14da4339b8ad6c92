"""Rules of sources."""

from __future__ import annotations

from typing import Any

from kstreams.dsl.analysis.tables import Materialization
from kstreams.dsl.analysis.types_of_streams import source
from kstreams.dsl.graph import Consumed, GlobalTableSource, Node, StreamSource, TableSource
from kstreams.dsl.lowering import Lowering
from kstreams.dsl.operator import OperatorDescriptor
from kstreams.dsl.rules.tables import table_of_records
from kstreams.processor.operators.tables.rows import MaterializedRows, StoreView, TableSourceOperator
from kstreams.state import store_kinds


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
    """The settings of a source: serdes, event time, where to start."""
    purpose = "to read its topics"
    return {
        "key": build.key_serde(node, purpose),
        "value": build.value_serde(node, purpose),
        "timestamp_extractor": how.timestamp_extractor,
        "offset_reset": how.offset_reset,
    }


OPERATORS = (
    OperatorDescriptor(node=StreamSource, types=source, topology=stream_source),
    OperatorDescriptor(
        node=TableSource, types=source, topology=table_source, materialization=Materialization.ON_DEMAND
    ),
    OperatorDescriptor(
        node=GlobalTableSource, types=source, topology=global_table_source, materialization=Materialization.ALWAYS
    ),
)
