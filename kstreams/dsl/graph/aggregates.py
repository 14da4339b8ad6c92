"""Aggregations of grouped streams, over all time or by window."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Any, ClassVar, TypeAlias

from kstreams.dsl.graph.node import Keys, Node, Typing
from kstreams.dsl.graph.signatures import called_with
from kstreams.dsl.materialized import Materialized
from kstreams.expressions import Expr
from kstreams.windows import Windows


@dataclass(frozen=True, slots=True)
class Count:
    """The number of records."""


@dataclass(frozen=True, slots=True)
class Reduce:
    """Combines two values into one of the same type; the first value of a key is its first aggregate."""

    reducer: Annotated[Callable[[Any, Any], Any], called_with("aggregate", "value")]


@dataclass(frozen=True, slots=True)
class Fold:
    """Starts with `initializer()` and adds each record by `aggregator(key, value, aggregate)`.

    `merger(key, aggregate, aggregate)` combines the aggregates of two sessions that merge.
    """

    initializer: Annotated[Callable[[], Any], called_with()]
    aggregator: Annotated[Callable[[Any, Any, Any], Any], called_with("key", "value", "aggregate")]
    merger: Annotated[Callable[[Any, Any, Any], Any] | None, called_with("key", "aggregate", "other")] = None


@dataclass(frozen=True, slots=True)
class Expressions:
    """Named aggregate expressions; the aggregate is a row with one field per expression."""

    fields: Mapping[str, Expr]


Aggregation: TypeAlias = Count | Reduce | Fold | Expressions


class EmitStrategy(Enum):
    """When a windowed aggregation emits results. Kafka Streams: `EmitStrategy.onWindowUpdate()`, `onWindowClose()`."""

    ON_WINDOW_UPDATE = "on_window_update"
    """At every update. With the record cache, only the last update of a key before a commit is emitted."""

    ON_WINDOW_CLOSE = "on_window_close"
    """Once, after stream time has passed the end of the window plus its grace."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Grouped:
    """The types that `group_by` or `group_by_key` declares for the records of a group."""

    key: Typing = None
    value: Typing = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StreamAggregate(Node):
    """One aggregate per key."""

    keys: ClassVar[Keys] = Keys.IN_PLACE

    aggregation: Aggregation
    store: str
    grouped: Grouped = field(default_factory=Grouped)
    key: Typing = None
    value: Typing = None
    materialized: Materialized = field(default_factory=Materialized)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class WindowedAggregate(Node):
    """One aggregate per key and window."""

    keys: ClassVar[Keys] = Keys.IN_PLACE

    aggregation: Aggregation
    windows: Windows
    emit: EmitStrategy
    store: str
    grouped: Grouped = field(default_factory=Grouped)
    key: Typing = None
    value: Typing = None
    materialized: Materialized = field(default_factory=Materialized)
