"""`Operator`: what a processor node does with records, as data that all tasks share.

The subclasses say how it becomes a closure of a task: a `ClosureOperator` makes a closure of its own, a
`StatementOperator` is a statement in the closure of a chain, a `ProcessOperator` runs a processor of the user.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Protocol, TypeAlias

Forward: TypeAlias = Callable[[Any, Any, int], None]
"""Takes key, value and timestamp (ms); between tables the value is a `Change`."""


class Operator:
    """What a processor node does with records: immutable, shared by all tasks.

    Attributes
    ----------
    runs_processor : bool
        Whether it runs a processor of the user, which may schedule punctuators of stream time.
    keeps_order : bool
        Whether it holds records back, and no record may overtake those.
    fills_global_store : bool
        Whether it keeps a global store, and so forwards nothing.
    """

    __slots__ = ()

    runs_processor: ClassVar[bool] = False

    @property
    def keeps_order(self) -> bool:
        return False

    @property
    def fills_global_store(self) -> bool:
        return False


class ColumnForm(Protocol):
    """The columnar form of an operator: takes a run of rows at once (see `processor/columns`)."""
