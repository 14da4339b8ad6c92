"""Several grouped streams, aggregated together into one table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from kstreams.dsl.graph.aggregates import Grouped
from kstreams.dsl.graph.node import Keys, Node, Typing
from kstreams.dsl.graph.signatures import called_with
from kstreams.dsl.materialized import Materialized
from kstreams.windows import Windows


@dataclass(frozen=True, slots=True)
class CogroupedInput:
    """A grouped stream: the name of its processor, its declared types, and `aggregator(key, value, aggregate)`."""

    name: str
    grouped: Grouped
    aggregator: Annotated[Callable[[Any, Any, Any], Any], called_with("key", "value", "aggregate")]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Cogroup(Node):
    """One aggregate per key, over the records of all inputs. Parents and inputs have the same order."""

    keys: ClassVar[Keys] = Keys.IN_PLACE

    inputs: tuple[CogroupedInput, ...]
    initializer: Annotated[Callable[[], Any], called_with()]
    store: str
    key: Typing = None
    value: Typing = None
    materialized: Materialized = field(default_factory=Materialized)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class WindowedCogroup(Cogroup):
    """One aggregate per key and window. `merger(key, aggregate, aggregate)` combines two sessions that merge."""

    windows: Windows
    merger: Annotated[Callable[[Any, Any, Any], Any] | None, called_with("key", "aggregate", "other")] = None
