"""Where records enter: streams, tables and global tables of topics."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from kstreams.dsl.graph.node import Keys, Node, Typing
from kstreams.dsl.materialized import Materialized

TimestampExtractor: TypeAlias = Callable[[Any, int], int]
"""Takes the record and the partition time (ms, -1 when unknown); gives the event time in ms."""


@dataclass(frozen=True, slots=True, eq=False)
class Consumed:
    """How a topic is read: types, event time, where to start."""

    key: Typing = None
    value: Typing = None
    timestamp_extractor: TimestampExtractor | None = None
    offset_reset: str | None = None
    idle_ms: int | None = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StreamSource(Node):
    """A stream of one or more topics, or of all whose names match a pattern."""

    keys: ClassVar[Keys] = Keys.SETTLED

    topics: tuple[str, ...]
    pattern: re.Pattern[str] | None = None
    consumed: Consumed = field(default_factory=Consumed)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TableSource(Node):
    """A topic read as the changes of a table."""

    keys: ClassVar[Keys] = Keys.SETTLED

    topic: str
    source: str
    store: str
    consumed: Consumed = field(default_factory=Consumed)
    materialized: Materialized = field(default_factory=Materialized)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class GlobalTableSource(Node):
    """A topic read completely by every instance."""

    keys: ClassVar[Keys] = Keys.SETTLED

    topic: str
    source: str
    store: str
    consumed: Consumed = field(default_factory=Consumed)
    materialized: Materialized = field(default_factory=Materialized)
