"""Operators whose records wait for the wall clock: delays, throttles and schedules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, ClassVar

from kstreams.dsl.graph.node import Node
from kstreams.dsl.graph.signatures import called_with
from kstreams.dsl.graph.stateless import Function


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Delay(Node):
    """Forwards each record at a time of its own: that of `until`, else its timestamp plus `for_ms`."""

    changes_values: ClassVar[bool] = True

    until: Annotated[Function | None, called_with("key", "value", of_record=True)] = None
    for_ms: int = 0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Throttle(Node):
    """Forwards at most so many records in a time, per partition."""

    changes_values: ClassVar[bool] = True

    records: int
    per_ms: int


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Schedule(Node):
    """Forwards the latest record of each key at every time of a schedule; `next_after` returns the next time in ms."""

    changes_values: ClassVar[bool] = True

    next_after: Callable[[int], int]
