"""Rules of processors written by hand."""

from __future__ import annotations

from kstreams.dsl.analysis import types_of_processors  # noqa: F401 (fills the book of types)
from kstreams.dsl.graph.processors import GlobalStore, Process, ProcessValues
from kstreams.dsl.lowering import Lowering, topology
from kstreams.dsl.rules.sources import consumed
from kstreams.processor.operators import process as op


@topology.rule(Process)
def process(node: Process, build: Lowering) -> str:
    return _with_stores(node, build, op.Process(node.supplier))


@topology.rule(ProcessValues)
def process_values(node: ProcessValues, build: Lowering) -> str:
    return _with_stores(node, build, op.ProcessValues(node.supplier))


@topology.rule(GlobalStore)
def global_store(node: GlobalStore, build: Lowering) -> str:
    build.source(node, node.source, (node.topic,), **consumed(node, node.consumed, build))
    build.topology.add_state_store(node.store, is_global=True)
    operator = op.UpdateGlobalStore(node.supplier)
    return build.step(node, operator, parents=(node.source,), stores=(node.store.name,))


def _with_stores(node: Process, build: Lowering, operator: op.Process) -> str:
    for builder in node.brought:
        build.topology.add_state_store(builder)
    name, stores = build.step(node, operator), dict.fromkeys((*node.stores, *(store.name for store in node.brought)))
    if stores:
        build.topology.connect_processor_and_state_stores(name, *stores)
    return name
