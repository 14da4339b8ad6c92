"""Functions of whole records (`with_record=True`), and the nodes that read the current input record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from kstreams.dsl.graph.node import Node
from kstreams.errors import TopologyError
from kstreams.expressions import Expr
from kstreams.kernel.source_line import declared_at
from kstreams.processor.context.record_functions import OfRecord


def node_function(function: Any, *, with_record: bool, with_key: bool = False) -> Any:
    """Return a function for a node: `OfRecord` if it takes the whole record, else the function itself.

    Raises
    ------
    TopologyError
        If `with_record` is set for an expression, or together with `with_key`.

    Examples
    --------
    >>> node_function(len, with_record=False)
    <built-in function len>
    """
    if not with_record:
        return function
    if isinstance(function, Expr | tuple):
        raise TopologyError(
            f"with_record=True at {declared_at()} is for functions: an expression reads what it needs by itself, as "
            'ks.header("trace-id"), ks.timestamp, ks.topic or ks.offset'
        )
    if with_key:
        raise TopologyError(
            f"the operator at {declared_at()} has with_key=True and with_record=True: leave with_key out, the record "
            "has the key"
        )
    return OfRecord(function)


def reads_current_record(node: Node) -> bool:
    """Return whether a function or an expression of a node reads headers or the position of the input record."""
    return any(True for _ in reads_of_current_record(node))


def reads_of_current_record(node: Node) -> Iterator[OfRecord | Expr]:
    """Yield the functions of a node that take whole records, and the leaves of its expressions that read the record."""
    for part in _parts(node):
        if isinstance(part, OfRecord):
            yield part
        elif isinstance(part, Expr):
            yield from (leaf for leaf in part.leaves if leaf.reads_current_record)


def _parts(part: object) -> Iterator[Any]:
    """Yield a part of a node and its own parts, down to functions and expressions."""
    yield part
    if isinstance(part, OfRecord | Expr | type):
        return
    inner: Any = ()
    if is_dataclass(part):
        inner = (getattr(part, field.name) for field in fields(part))
    elif isinstance(part, Mapping):
        inner = part.values()
    elif isinstance(part, tuple):
        inner = part
    for member in inner:
        yield from _parts(member)
