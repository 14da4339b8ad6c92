"""Operators that read and write topics: sources of streams, tables and global tables, sinks and repartitions."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, Any, ClassVar

from kstreams.dsl.graph.node import Keys, Node, Typing
from kstreams.dsl.graph.signatures import called_with
from kstreams.dsl.graph.stateless import Function
from kstreams.dsl.materialized import Materialized
from kstreams.kernel.timestamps import TimestampExtractor


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class To(Node):
    """Writes to one topic, or to a topic that is chosen for each record.

    `park`: the parking topic of the sink that reads the topic.
    """

    topic: Annotated[str | Function, called_with("key", "value", "record")]
    key: Typing = None
    value: Typing = None
    partitioner: Annotated[Callable[..., Any] | None, called_with("topic", "key", "value", "partitions")] = None
    park: str | None = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Repartition(Node):
    """Writes to an internal topic by the new key and reads it again; named after the source of this topic.

    `explicit`: True if the user called `repartition()`, False if an aggregation or join needs the repartition.
    """

    keys: ClassVar[Keys] = Keys.IN_PLACE

    topic: str
    filter: str
    sink: str
    explicit: bool = False
    key: Typing = None
    value: Typing = None
    partitions: int | None = None
    partitioner: Annotated[Callable[..., Any] | None, called_with("topic", "key", "value", "partitions")] = None


@dataclass(frozen=True, slots=True, eq=False)
class Consumed:
    """How a topic is read: types, event time, first offset, and the time without records after which it is idle."""

    key: Typing = None
    value: Typing = None
    timestamp_extractor: Annotated[TimestampExtractor | None, called_with("record", "partition_time_ms")] = None
    offset_reset: str | timedelta | None = None
    idle_ms: int | None = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StreamSource(Node):
    """A stream of one or more topics, or of all topics whose names match a pattern."""

    keys: ClassVar[Keys] = Keys.IN_PLACE

    topics: tuple[str, ...]
    pattern: re.Pattern[str] | None = None
    consumed: Consumed = field(default_factory=Consumed)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TableSource(Node):
    """A topic read as the changes of a table. `restored_from_source`: the topic is the changelog of the store."""

    keys: ClassVar[Keys] = Keys.IN_PLACE

    topic: str
    source: str
    store: str
    consumed: Consumed = field(default_factory=Consumed)
    materialized: Materialized = field(default_factory=Materialized)
    restored_from_source: bool = False


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class GlobalTableSource(Node):
    """A topic of which every instance reads all partitions into a table."""

    keys: ClassVar[Keys] = Keys.IN_PLACE

    topic: str
    source: str
    store: str
    consumed: Consumed = field(default_factory=Consumed)
    materialized: Materialized = field(default_factory=Materialized)
