"""Conversions between streams and tables, and operators of one table."""

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
    """Holds back updates, then emits the last one of each key. As a table, it is a view of its parent."""

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
    """The rows for which the predicate is true or, with `negate`, false; stored only if the user names a store."""

    predicate: Annotated[Function, called_with("key", "value")]
    negate: bool = False
    key: Typing = None
    value: Typing = None
    materialized: Materialized = field(default_factory=Materialized)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TableMapValues(Node):
    """A new value for each row of a table; stored only if the user names a store."""

    function: Annotated[Function, called_with("value", key_first=True)]
    with_key: bool = False
    key: Typing = None
    value: Typing = None
    materialized: Materialized = field(default_factory=Materialized)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TableTransformValues(Node):
    """A new value for each row of a table, from a processor of the user; stored only if the user names a store.

    Parameters
    ----------
    supplier : callable
        Returns a new fixed-key processor.
    stores : tuple of str
        Names of the state stores that it uses, besides those that the supplier adds.
    """

    supplier: Annotated[Callable[[], Any], called_with()]
    stores: tuple[str, ...] = ()
    key: Typing = None
    value: Typing = None
    materialized: Materialized = field(default_factory=Materialized)

    @property
    def supplied_stores(self) -> tuple[StoreBuilder, ...]:
        """The stores that the supplier adds."""
        return stores_of(self.supplier)
