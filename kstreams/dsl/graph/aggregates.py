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
    """How many records."""


@dataclass(frozen=True, slots=True)
class Reduce:
    """Two values to one of the same type; the first value of a key stands for itself."""

    reducer: Annotated[Callable[[Any, Any], Any], called_with("aggregate", "value")]


@dataclass(frozen=True, slots=True)
class Fold:
    """From `initializer()`, one record at a time: `aggregator(key, value, aggregate)`.

    Of two sessions that become one: `merger(key, aggregate, aggregate)`.
    """

    initializer: Annotated[Callable[[], Any], called_with()]
    aggregator: Annotated[Callable[[Any, Any, Any], Any], called_with("key", "value", "aggregate")]
    merger: Annotated[Callable[[Any, Any, Any], Any] | None, called_with("key", "aggregate", "other")] = None


@dataclass(frozen=True, slots=True)
class Expressions:
    """Named aggregate expressions: a row with one field each."""

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
    """What `group_by` and `group_by_key` declared about the records that are aggregated."""

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
