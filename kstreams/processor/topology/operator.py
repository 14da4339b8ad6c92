"""`Operator`: the effect of a processor node on records, as data that all tasks share.

Subclasses differ in their closure in a task: a `ClosureOperator` creates a closure of its own, a `StatementOperator` is
a statement in the closure of a chain, and a `ProcessOperator` runs a processor of the user.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Protocol, TypeAlias

Forward: TypeAlias = Callable[[Any, Any, int], None]
"""Takes key, value and timestamp (ms); between tables the value is a `Change`."""


class Operator:
    """The immutable definition of a processor node, shared by all tasks.

    Attributes
    ----------
    runs_processor : bool
        True if it runs a processor of the user, which may schedule punctuators of stream time.
    keeps_order : bool
        True if it holds records back which no other record may overtake.
    fills_global_store : bool
        True if it fills a global store, and so forwards nothing.
    parking_topic : str or None
        The topic to which it writes records whose calls fail for good.
    """

    __slots__ = ()

    runs_processor: ClassVar[bool] = False

    @property
    def keeps_order(self) -> bool:
        return False

    @property
    def fills_global_store(self) -> bool:
        return False

    @property
    def parking_topic(self) -> str | None:
        return None


class ColumnForm(Protocol):
    """The columnar form of an operator (see `processor/columns`)."""


class ProcessorKind(Enum):
    """The kind of processors that a supplier creates; it decides what their context allows."""

    ANY_KEY = "Processor"
    FIXED_KEY = "FixedKeyProcessor"
    GLOBAL_STORE = "Processor of a global store"


@dataclass(frozen=True, slots=True)
class ProcessOperator(Operator):
    """The operator that runs a processor from `supplier()`, a new one for each task.

    Parameters
    ----------
    supplier : callable
    kind : ProcessorKind
    """

    runs_processor: ClassVar[bool] = True

    supplier: Callable[[], Any]
    kind: ProcessorKind = ProcessorKind.ANY_KEY

    @property
    def fills_global_store(self) -> bool:
        return self.kind is ProcessorKind.GLOBAL_STORE
