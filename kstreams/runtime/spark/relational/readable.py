"""The reasons why Spark cannot read the input of an operator's functions or write their output; None if it can."""

from __future__ import annotations

from collections.abc import Iterable

from kstreams.dsl.analysis.types import TypeOf, Types
from kstreams.dsl.analysis.types_of_joins import side_types
from kstreams.dsl.graph import Node
from kstreams.errors import KStreamsError
from kstreams.expressions import Expr, Operation
from kstreams.expressions.frame import refusal
from kstreams.runtime.spark.code.typed_graph import TypedGraph
from kstreams.runtime.spark.relational.header_reads import unreadable_header
from kstreams.serdes import serde_of
from kstreams.serdes.json_columns import JsonColumns


def unknown_type(kind: TypeOf, side: str) -> str | None:
    """Return the reason why keys or values cannot be converted between bytes and objects."""
    if kind.kind is None:
        return f"the type of its {side} is not known"
    try:
        serde_of(kind.kind)
    except KStreamsError as error:
        return str(error)
    return None


def unreadable(function: object, types: Types) -> str | None:
    """Return the reason why an expression's columns, or a function's arguments, cannot be read from bytes."""
    if not isinstance(function, Expr):
        return unknown_type(types.key, "key") or unknown_type(types.value, "value")
    return refusal(function) or first_reason(undecodable(leaf, types) for leaf in function.leaves)


def unbuildable(function: object) -> str | None:
    """Return the reason why the result of an expression cannot be a column."""
    builds = isinstance(function, Expr) and any(node.operation is Operation.STRUCT for node in function.walk())
    return "ks.struct builds objects" if builds else None


def undecodable(leaf: Expr, types: Types) -> str | None:
    """Return the reason why the parts of a record that an expression reads have no column."""
    if leaf.operation is Operation.TIMESTAMP:
        return None
    if leaf.operation is Operation.HEADER:
        return unreadable_header(leaf)
    try:
        if leaf.operation is Operation.FIELD:
            JsonColumns(types.value.python, [str(leaf.detail)])
            return None
        side = {Operation.KEY: types.key, Operation.VALUE: types.value}.get(leaf.operation)
        if side is None or side.kind is None or serde_of(side.kind).arrow_type is None:
            return f"{leaf!r} has no columnar form"
    except KStreamsError as error:
        return str(error)
    return None


def unreadable_join(node: Node, typed: TypedGraph) -> str | None:
    """Return the reason why the inputs of a join cannot be decoded, or its results cannot be encoded."""
    left, right = side_types(node, typed.of_parent(node, 0), typed.of_parent(node, 1))
    return (
        unknown_type(left.key, "key")
        or unknown_type(left.value, "left value")
        or unknown_type(right.value, "right value")
        or unknown_type(typed.types[node.name].value, "result")
    )


def first_reason(reasons: Iterable[str | None]) -> str | None:
    """Return the first reason that is not None."""
    return next((reason for reason in reasons if reason is not None), None)
