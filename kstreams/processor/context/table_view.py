"""`TableView`: the lookup of a table's rows, whether or not a store holds them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from kstreams.processor.context.operator_context import OperatorContext

ValueGetter: TypeAlias = Callable[..., Any]
"""Looks up a key of a table: a `ValueAndTimestamp`, or None. For a versioned table it also takes a time in ms."""

ValuesGetter: TypeAlias = Callable[[list[Any]], list[Any]]
"""Looks up the present values of several keys, without timestamps."""


class TableView(Protocol):
    """The view that a join has of a table, materialized or not."""

    @property
    def stores(self) -> tuple[str, ...]:
        """The stores that the lookup reads; the operator must be connected to them."""
        ...

    def bind(self, context: OperatorContext) -> ValueGetter:
        """Return the lookup for one task."""
        ...

    def bind_many(self, context: OperatorContext, get: ValueGetter) -> ValuesGetter:
        """Return the lookup of several keys; `get` is the result of `bind`."""
        return lambda keys: [None if row is None else row[0] for row in map(get, keys)]
