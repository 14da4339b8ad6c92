"""`Operator`: one step of a topology as data, and how it becomes a closure of a task.

A chain of operators is built from its sinks upwards: each `bind` gets the closure of what follows and returns its
own. A record is three positional arguments; what belongs to the whole input record lies in the `TaskContext`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from kstreams.processor.context.operator_context import OperatorContext

Forward: TypeAlias = Callable[[Any, Any, int], None]
"""Takes key, value and timestamp (ms); between tables the value is a `Change`."""

ValueGetter: TypeAlias = Callable[..., Any]
"""Looks up a key of a table: a `ValueAndTimestamp`, or None; that of a versioned table also takes a time in ms."""


class Operator(Protocol):
    """One step, immutable and shared by all tasks; `bind` makes the live closure for one task."""

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        """The closure of this step.

        Parameters
        ----------
        context : OperatorContext
            Stores, headers and metadata of the current input record, cache, punctuation, callbacks at flush and end of
            input; `context.children` holds the closures of the children one by one, for steps that choose among them.
        forward : callable
            Passes (key, value, timestamp) to all children, in order of declaration.
        """
        ...


class TableView(Protocol):
    """How a join looks into a table, materialized or not."""

    @property
    def stores(self) -> tuple[str, ...]:
        """The stores that the lookup needs: whoever looks in must be connected to them."""
        ...

    def bind(self, context: OperatorContext) -> ValueGetter:
        """The live lookup for one task."""
        ...


class ColumnForm(Protocol):
    """The columnar form of an operator: takes a run of rows at once (see `processor/columns`)."""


Children: TypeAlias = Mapping[str, Forward]
