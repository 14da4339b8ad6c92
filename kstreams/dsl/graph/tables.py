"""Operators between streams and tables, and the views of a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from kstreams.dsl.graph.node import Keys, Node, Typing
from kstreams.dsl.graph.signatures import called_with
from kstreams.dsl.graph.stateless import Function
from kstreams.dsl.materialized import Materialized
from kstreams.dsl.tables.suppressed import Suppressed
from kstreams.processor.api.processor import stores_of
from kstreams.state.api import StoreBuilder


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Suppress(Node):
    """The last update of each key, once its time has come. As a table it is a view of its parent."""

    suppressed: Suppressed
    store: str
    materialized: Materialized = field(default_factory=Materialized)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ToTable(Node):
    """A stream read as the changes of a table."""

    store: str
    key: Typing = None
    value: Typing = None
    materialized: Materialized = field(default_factory=Materialized)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ToStream(Node):
    """The changes of a table as a stream of its new values."""

    keys: ClassVar[Keys] = Keys.IN_PLACE


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TableFilter(Node):
    """The rows of a table for which the predicate holds, or for which it does not; kept only if a store is named."""

    predicate: Annotated[Function, called_with("key", "value")]
    negate: bool = False
    key: Typing = None
    value: Typing = None
    materialized: Materialized = field(default_factory=Materialized)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TableMapValues(Node):
    """A new value for each row of a table; kept only if a store is named."""

    function: Annotated[Function, called_with("value", key_first=True)]
    with_key: bool = False
    key: Typing = None
    value: Typing = None
    materialized: Materialized = field(default_factory=Materialized)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TableTransformValues(Node):
    """The values that a user's own processor makes of a table's rows; kept only if a store is named.

    Parameters
    ----------
    supplier : callable
        Makes a new fixed-key processor.
    stores : tuple of str
        Names of the state stores it uses, beside those that the supplier brings.
    """

    supplier: Annotated[Callable[[], Any], called_with()]
    stores: tuple[str, ...] = ()
    key: Typing = None
    value: Typing = None
    materialized: Materialized = field(default_factory=Materialized)

    @property
    def brought(self) -> tuple[StoreBuilder, ...]:
        """The stores that the supplier brings along."""
        return stores_of(self.supplier)
