"""Rule of processors written by hand."""

from __future__ import annotations

from kstreams.dsl.graph.processors import Process
from kstreams.dsl.lowering import Lowering, topology
from kstreams.processor.operators.process import Process as ProcessOperator


@topology.rule(Process)
def process(node: Process, build: Lowering) -> str:
    return build.step(node, ProcessOperator(node.supplier), stores=node.stores)
