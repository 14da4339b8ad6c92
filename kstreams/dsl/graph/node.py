"""`Node`: what every operator of the logical graph has, whatever it does."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, ClassVar, TypeAlias, TypeVar

from kstreams.kernel.source_line import operator_at
from kstreams.serdes import Serde

Typing: TypeAlias = type | Serde[Any] | None
"""What the user declares about a key or value: a type, a serde, or nothing."""

T = TypeVar("T")
Declared: TypeAlias = type[T] | Serde[T]
"""The same for the type checker, where it is declared."""

N = TypeVar("N", bound="Node")


class Keys(Enum):
    """Whether the records that come out of an operator are in the partition of their key."""

    KEPT = "kept"
    CHANGED = "changed"  # a later grouping or join must repartition
    IN_PLACE = "in place"  # every record is in the partition of its key


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One operator as the user said it; nothing of any engine.

    Parameters
    ----------
    name : str
        As `describe()` prints it; unique in the graph.
    parents : tuple of str
        Names of the operators it reads.
    declared_at : str
        `file:line` of the user's code.
    """

    keys: ClassVar[Keys] = Keys.KEPT
    takes_null_keys: ClassVar[bool] = False
    """Whether it gives records with a null key a result, so that a repartition before it must let them pass."""
    changes_values: ClassVar[bool] = False
    """Whether what comes out holds other values or headers under the same key, so that no repartition may move before
    it."""

    name: str = ""
    parents: tuple[str, ...] = ()
    declared_at: str = ""

    @property
    def called(self) -> str:
        """What the user wrote, as `map_values()`; the name where that is not known."""
        method = getattr(self.declared_at, "method", None)
        return self.name if method is None else f"{method}()"

    def __str__(self) -> str:
        return operator_at(self.name, self.declared_at)


def declare(node: N, name: str, parents: tuple[str, ...], declared_at: str) -> N:
    """The node with its place in the graph."""
    return replace(node, name=name, parents=parents, declared_at=declared_at)
