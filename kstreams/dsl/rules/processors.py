"""Rules of processors of the user."""

from __future__ import annotations

from functools import partial

from kstreams.dsl.analysis.tables import Materialization
from kstreams.dsl.analysis.types import TypeOf, Types
from kstreams.dsl.graph.processors import ApplyChanges, Deduplicate, GlobalStore, Process, ProcessValues
from kstreams.dsl.graph.tables import TableTransformValues
from kstreams.dsl.lowering import Lowering
from kstreams.dsl.operator import OperatorDescriptor
from kstreams.dsl.rules.sources import consumed
from kstreams.dsl.rules.tables import materialized_rows
from kstreams.processor.operators.process.transform import Transformation, TransformedView, TransformOperator
from kstreams.processor.topology.operator import Operator, ProcessOperator, ProcessorKind


def process_types(node: Process, parents: tuple[Types, ...]) -> Types:
    return Types(TypeOf(node.key, node), TypeOf(node.value, node))


def process_values_types(node: ProcessValues, parents: tuple[Types, ...]) -> Types:
    return Types(parents[0].key, TypeOf(node.value, node))


def transform_values_types(node: TableTransformValues, parents: tuple[Types, ...]) -> Types:
    return Types(parents[0].key.or_declared(node.key, node), TypeOf(node.value, node))


def global_store_types(node: GlobalStore, parents: tuple[Types, ...]) -> Types:
    return Types(TypeOf(node.consumed.key, node), TypeOf(node.consumed.value, node))


def process(node: Process, build: Lowering) -> str:
    return _with_stores(node, build, ProcessOperator(node.supplier))


def process_values(node: ProcessValues, build: Lowering) -> str:
    operator = ProcessOperator(node.supplier, ProcessorKind.FIXED_KEY)
    if node.retries is None:
        return _with_stores(node, build, operator)
    from kstreams.processor.operators.waiting.retry import RetryProcessOperator  # loads asyncio

    for builder in node.supplied_stores:
        build.topology.add_state_store(builder)
    name = build.retried(node, node.retries, partial(RetryProcessOperator, operator))
    if stores := _stores(node):
        build.topology.connect_processor_and_state_stores(name, *stores)
    return name


def global_store(node: GlobalStore, build: Lowering) -> str:
    build.source(node, node.source, (node.topic,), **consumed(node, node.consumed, build))
    build.topology.add_state_store(node.store, is_global=True)
    operator = ProcessOperator(node.supplier, ProcessorKind.GLOBAL_STORE)
    return build.processor(node, operator, parents=(node.source,), stores=(node.store.name,))


def transform_values(node: TableTransformValues, build: Lowering) -> str:
    transformation = Transformation(node.supplier)
    sends_old = build.sends_old(node)
    if node.materialized.name is not None:
        table_rows = materialized_rows(node, node.materialized.name, build)
        operator = TransformOperator(transformation, table_rows, sends_old)
        return _with_stores(node, build, operator, table_rows.store)
    parent = build.view_of_parent(node)
    if parent is not None:
        build.set_view(node, TransformedView(parent, transformation, _stores(node)))
    return _with_stores(node, build, TransformOperator(transformation, sends_old=sends_old))


def _with_stores(node: Process | TableTransformValues, build: Lowering, operator: Operator, *own_stores: str) -> str:
    for builder in node.supplied_stores:
        build.topology.add_state_store(builder)
    name = build.processor(node, operator, stores=own_stores)
    stores = _stores(node)
    if stores:
        build.topology.connect_processor_and_state_stores(name, *stores)
    return name


def _stores(node: Process | TableTransformValues) -> tuple[str, ...]:
    """Return the names of the stores that a processor uses."""
    return tuple(dict.fromkeys((*node.stores, *(store.name for store in node.supplied_stores))))


OPERATORS = (
    OperatorDescriptor(node=Process, types=process_types, topology=process),
    OperatorDescriptor(node=ProcessValues, types=process_values_types, topology=process_values),
    OperatorDescriptor(node=ApplyChanges, types=process_values_types, topology=process),
    OperatorDescriptor(node=Deduplicate, types=process_values_types, topology=process_values),
    OperatorDescriptor(node=GlobalStore, types=global_store_types, topology=global_store),
    OperatorDescriptor(
        node=TableTransformValues,
        types=transform_values_types,
        topology=transform_values,
        materialization=Materialization.IF_NAMED,
    ),
)
