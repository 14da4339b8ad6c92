"""How types flow through processors written by hand: only the user knows what they forward."""

from __future__ import annotations

from kstreams.dsl.analysis.types import TypeOf, Types
from kstreams.dsl.graph.processors import GlobalStore, Process, ProcessValues
from kstreams.dsl.graph.tables import TableTransformValues


def processed(node: Process, parents: tuple[Types, ...]) -> Types:
    return Types(TypeOf(node.key, node), TypeOf(node.value, node))


def values_processed(node: ProcessValues, parents: tuple[Types, ...]) -> Types:
    return Types(parents[0].key, TypeOf(node.value, node))


def values_transformed(node: TableTransformValues, parents: tuple[Types, ...]) -> Types:
    return Types(parents[0].key.or_declared(node.key, node), TypeOf(node.value, node))


def globally_stored(node: GlobalStore, parents: tuple[Types, ...]) -> Types:
    return Types(TypeOf(node.consumed.key, node), TypeOf(node.consumed.value, node))
