"""`TypeOf` and `Types`: the key and value types that an operator puts out, and what rules derive them from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from kstreams import expressions
from kstreams.dsl.graph import Function, Node, PairFunction, Typing
from kstreams.dsl.return_annotations import return_pair, return_type
from kstreams.errors import KStreamsError, SerdeError, TopologyError
from kstreams.expressions import Expr
from kstreams.serdes import Serde, serde_of


@dataclass(frozen=True, slots=True)
class TypeOf:
    """A type or serde, and the operator that set it; `kind` None: unknown since that operator."""

    kind: Typing
    origin: Node

    def or_declared(self, kind: Typing, node: Node) -> TypeOf:
        """What the operator declares, else this."""
        return self if kind is None else TypeOf(kind, node)

    @property
    def python(self) -> Any:
        """The Python type, where it is known."""
        return self.kind.type if isinstance(self.kind, Serde) else self.kind


class Types(NamedTuple):
    """The types of what an operator puts out."""

    key: TypeOf
    value: TypeOf


def required_serde(type_of: TypeOf, node: Node, side: str, purpose: str) -> Serde[Any]:
    """The serde of a known type.

    Parameters
    ----------
    type_of : TypeOf
        What flows.
    node : Node
        The operator that needs bytes.
    side : {"key", "value"}
        For the error.
    purpose : str
        What it needs bytes for, as "to write topic 'out'".

    Raises
    ------
    TopologyError
        When the type is unknown or has no serde: names the operator, the user's line and what to write.
    """
    if type_of.kind is None:
        raise TopologyError(_unknown(type_of, node, side, purpose))
    try:
        return serde_of(type_of.kind)
    except SerdeError as error:
        raise TopologyError(f"{node} cannot turn its {side} into bytes {purpose}: {error}") from error


def _unknown(type_of: TypeOf, node: Node, side: str, purpose: str) -> str:
    if type_of.origin is node:
        return f"{node} must know the type of its {side} {purpose}: write {side}=<type> there"
    return (
        f"{node} must know the type of its {side} {purpose}, but it is unknown since {type_of.origin}: "
        f"write {side}=<type> at {node.called}, or annotate what the function of {type_of.origin.called} returns"
    )


def type_given_by(function: Function, parent: Types) -> Any:
    """The type of what a function of key or value says it gives, or an expression over both gives; None: not known."""
    if not isinstance(function, Expr):
        return return_type(function)
    return expressions.result_type(function, key=parent.key.python, value=parent.value.python)


@contextmanager
def naming(node: object) -> Iterator[None]:
    """Errors of expressions, which know no operator, become errors that name it and the user's line."""
    try:
        yield
    except KStreamsError as error:
        raise TopologyError(f"{node}: {error}") from error


def returned_by(node: Node, function: Function, parent: Types) -> Any:
    """The same for a function of a node, which errors name."""
    with naming(node):
        return type_given_by(function, parent)


def pair_returned_by(node: Node, function: PairFunction, parent: Types) -> tuple[Any, Any]:
    """The types of the key and value that a function of a node gives."""
    if not isinstance(function, tuple):
        return return_pair(function)
    key, value = function
    return returned_by(node, key, parent), returned_by(node, value, parent)


def unchanged(node: Node, parents: tuple[Types, ...]) -> Types:
    """The rule of operators whose records have the types of the first parent."""
    return parents[0]
