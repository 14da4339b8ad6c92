"""Tables grouped by another key, and their aggregations: each change subtracts the old row and adds the new one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, TypeAlias

from kstreams.dsl.graph.aggregates import Grouped
from kstreams.dsl.graph.node import Keys, Node, Typing
from kstreams.dsl.graph.signatures import called_with
from kstreams.dsl.graph.stateless import PairFunction
from kstreams.dsl.materialized import Materialized
from kstreams.expressions import Expr


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TableGroupBy(Node):
    """A new key and value for each row, by which the table is grouped."""

    keys: ClassVar[Keys] = Keys.CHANGED

    function: Annotated[PairFunction, called_with("key", "value")]
    grouped: Grouped = field(default_factory=Grouped)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TableRepartition(Node):
    """Writes changes to an internal topic by the new key and reads them again; named after the source of this topic."""

    keys: ClassVar[Keys] = Keys.IN_PLACE

    topic: str
    sink: str


@dataclass(frozen=True, slots=True)
class TableCount:
    """The number of rows."""


@dataclass(frozen=True, slots=True)
class TableReduce:
    """Combines rows into one value of the same type by `adder(aggregate, new)` and `subtractor(aggregate, old)`."""

    adder: Annotated[Callable[[Any, Any], Any], called_with("aggregate", "new")]
    subtractor: Annotated[Callable[[Any, Any], Any], called_with("aggregate", "old")]


@dataclass(frozen=True, slots=True)
class TableFold:
    """Starts with `initializer()`; `adder(key, new, aggregate)` and `subtractor(key, old, aggregate)` change it."""

    initializer: Annotated[Callable[[], Any], called_with()]
    adder: Annotated[Callable[[Any, Any, Any], Any], called_with("key", "row", "aggregate")]
    subtractor: Annotated[Callable[[Any, Any, Any], Any], called_with("key", "row", "aggregate")]


@dataclass(frozen=True, slots=True)
class TableRanking:
    """The `n` rows with the highest scores; `row` is the type of rows."""

    n: int
    by: Annotated[Callable[[Any], Any], called_with("value")]
    row: Any


@dataclass(frozen=True, slots=True)
class TableExpressions:
    """Named aggregate expressions; the aggregate is a row with one field per expression."""

    fields: Mapping[str, Expr]


TableAggregation: TypeAlias = TableCount | TableReduce | TableFold | TableRanking | TableExpressions


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TableAggregate(Node):
    """One aggregate per group of rows."""

    keys: ClassVar[Keys] = Keys.IN_PLACE

    aggregation: TableAggregation
    store: str
    key: Typing = None
    value: Typing = None
    materialized: Materialized = field(default_factory=Materialized)
