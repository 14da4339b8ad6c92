"""`Node`: the base class of the operators in the logical graph."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import ClassVar, TypeAlias, TypeVar

from kstreams.kernel.source_line import operator_at
from kstreams.serdes import Serde

Typing: TypeAlias = type | Serde | None
"""The declaration of a key or value: a type, a serde, or None."""

T = TypeVar("T")
Declared: TypeAlias = type[T] | Serde[T]
"""A declaration that is not None, from which a type checker infers `T`."""

N = TypeVar("N", bound="Node")


class Keys(Enum):
    """Whether the output records of an operator are in the partition of their key."""

    KEPT = "kept"
    CHANGED = "changed"  # a later grouping or join must repartition
    IN_PLACE = "in place"  # every record is in the partition of its key


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One operator as the user declared it, independent of the engine.

    Parameters
    ----------
    name : str
        As `describe()` prints it; unique in the graph.
    parents : tuple of str
        Names of the operators that it reads.
    declared_at : str
        `file:line` of the user's code.
    """

    keys: ClassVar[Keys] = Keys.KEPT
    takes_null_keys: ClassVar[bool] = False
    """True if it emits results for records with a null key, so that a repartition before it must pass them on."""
    changes_values: ClassVar[bool] = False
    """True if it sets other values or headers under the same key, so that no repartition may move before it."""

    name: str = ""
    parents: tuple[str, ...] = ()
    declared_at: str = ""

    @property
    def called(self) -> str:
        """The method that the user called, such as `map_values()`; the name of the operator if that is not known."""
        method = getattr(self.declared_at, "method", None)
        return self.name if method is None else f"{method}()"

    def __str__(self) -> str:
        return operator_at(self.name, self.declared_at)


def declare(node: N, name: str, parents: tuple[str, ...], declared_at: str) -> N:
    """Return the node with its name, its parents and the line that declared it."""
    return replace(node, name=name, parents=parents, declared_at=declared_at)
