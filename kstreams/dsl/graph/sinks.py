"""Where records leave a sub-topology: to a topic of the user, or through a repartition topic into the next one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from kstreams.dsl.graph.node import Keys, Node, Typing
from kstreams.dsl.graph.signatures import called_with
from kstreams.dsl.graph.stateless import Function


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class To(Node):
    """Writes to a topic, fixed or chosen for each record."""

    topic: Annotated[str | Function, called_with("key", "value", "record")]
    key: Typing = None
    value: Typing = None
    partitioner: Annotated[Callable[..., Any] | None, called_with("topic", "key", "value", "partitions")] = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Repartition(Node):
    """Writes to an internal topic by the new key and reads it again. Its name is that of the source that reads.

    `explicit`: whether the user called `repartition()`; an aggregation or join needs the others.
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
