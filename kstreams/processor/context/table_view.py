"""`TableView`: how an operator looks up rows of a table, whether a store holds them or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from kstreams.processor.context.operator_context import OperatorContext

ValueGetter: TypeAlias = Callable[..., Any]
"""Looks up a key of a table: a `ValueAndTimestamp`, or None; that of a versioned table also takes a time in ms."""

ValuesGetter: TypeAlias = Callable[[list[Any]], list[Any]]
"""Looks many keys up as they are now: values without timestamps."""


class TableView(Protocol):
    """How a join looks into a table, materialized or not."""

    @property
    def stores(self) -> tuple[str, ...]:
        """The stores that the lookup needs: whoever looks in must be connected to them."""
        ...

    def bind(self, context: OperatorContext) -> ValueGetter:
        """The live lookup for one task."""
        ...

    def bind_many(self, context: OperatorContext, get: ValueGetter) -> ValuesGetter:
        """The values of many keys; `get` is what `bind` gave."""
        return lambda keys: [None if row is None else row[0] for row in map(get, keys)]
