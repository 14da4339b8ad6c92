"""`TypeOf` and `Types`: the key and value types of the output of an operator, and helpers of the type rules."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from kstreams import expressions
from kstreams.dsl.graph import Function, Node, PairFunction, Repartition, TableFilter, To, ToTable, Typing
from kstreams.dsl.return_annotations import return_pair, return_type
from kstreams.errors import KStreamsError, SerdeError, TopologyError
from kstreams.expressions import Expr
from kstreams.serdes import Serde, serde_of


@dataclass(frozen=True, slots=True)
class TypeOf:
    """A type or serde, and the operator that set it. If `kind` is None, the type is unknown since this operator."""

    kind: Typing
    origin: Node

    def or_declared(self, kind: Typing, node: Node) -> TypeOf:
        """Return the type that an operator declares; this type if it declares none."""
        return self if kind is None else TypeOf(kind, node)

    @property
    def python(self) -> Any:
        """The Python type; None if it is not known."""
        return self.kind.type if isinstance(self.kind, Serde) else self.kind


class Types(NamedTuple):
    """The types of the keys and values of the output of an operator."""

    key: TypeOf
    value: TypeOf


def required_serde(type_of: TypeOf, node: Node, side: str, purpose: str) -> Serde:
    """Return the serde of a type that must be known.

    Parameters
    ----------
    type_of : TypeOf
        The type.
    node : Node
        The operator that needs bytes.
    side : {"key", "value"}
        For the error.
    purpose : str
        Why it needs bytes, such as "to write topic 'out'".

    Raises
    ------
    TopologyError
        If the type is unknown or has no serde: names the operator, the line in the user's code, and the cure.
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


def result_type_of(function: Function, parent: Types) -> Any:
    """Return the type of the result of a function (by its annotation) or of an expression; None if it is not known."""
    if not isinstance(function, Expr):
        return return_type(function)
    return expressions.result_type(function, key=parent.key.python, value=parent.value.python)


@contextmanager
def naming(node: object) -> Iterator[None]:
    """Turn errors of expressions into errors that name the operator and its line."""
    try:
        yield
    except KStreamsError as error:
        raise TopologyError(f"{node}: {error}") from error


def returned_by(node: Node, function: Function, parent: Types) -> Any:
    """Return the type of the result of a function of a node; errors name the node."""
    with naming(node):
        return result_type_of(function, parent)


def pair_returned_by(node: Node, function: PairFunction, parent: Types) -> tuple[Any, Any]:
    """Return the types of the key and value that a function of a node returns."""
    if not isinstance(function, tuple):
        return return_pair(function)
    key, value = function
    return returned_by(node, key, parent), returned_by(node, value, parent)


def declared_types(node: To | Repartition | ToTable | TableFilter, parents: tuple[Types, ...]) -> Types:
    """Return the types of the parent, or those that the node declares."""
    (parent,) = parents
    return Types(parent.key.or_declared(node.key, node), parent.value.or_declared(node.value, node))


def unchanged(node: Node, parents: tuple[Types, ...]) -> Types:
    """Return the types of the first parent: the rule of operators that change no types."""
    return parents[0]
