"""Joins of two tables: by the same key, or by a foreign key in the left row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, TypeAlias

from kstreams.dsl.graph.node import Keys, Node, Typing
from kstreams.dsl.graph.signatures import called_with
from kstreams.dsl.graph.stateless import Function
from kstreams.dsl.materialized import Materialized

Partitioner: TypeAlias = Callable[[str, Any, Any, int], int]
"""`(topic, key, None, number of partitions) -> partition`."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TableJoin(Node):
    """The rows of two tables that have the same key. The parents are the left and the right table.

    Parameters
    ----------
    joiner : callable or expression
        `joiner(left, right)`.
    left_outer, right_outer : bool
        True if rows of this side without a match are joined with None.
    this_join, other_join : str
        Names of the processors for the updates of the left and of the right table.
    key, result : type or Serde, optional
        Types of the result.
    """

    keys: ClassVar[Keys] = Keys.IN_PLACE

    joiner: Annotated[Function, called_with("left", "right")]
    left_outer: bool
    right_outer: bool
    this_join: str
    other_join: str
    key: Typing = None
    result: Typing = None
    materialized: Materialized = field(default_factory=Materialized)


@dataclass(frozen=True, slots=True)
class InternalTopicNames:
    """The names of an internal topic, its sink and its source."""

    topic: str
    sink: str
    source: str


@dataclass(frozen=True, slots=True)
class ForeignKeyNames:
    """The names of the processors (except the last one), topics and subscription store of a foreign-key join."""

    send: str
    registration: InternalTopicNames
    store: str
    receive: str
    join_foreign: str
    foreign_join: str
    response: InternalTopicNames
    resolver: str


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ForeignKeyJoin(Node):
    """The rows of a table, joined with the rows of another table by a foreign key.

    The parents are the left and the right table.

    Parameters
    ----------
    foreign_key : callable or expression
        `foreign_key(left)`, or `foreign_key(key, left)` if `with_key` is true: a key of the right table, or None.
    joiner : callable or expression
        `joiner(left, right)`.
    left_outer : bool
        True if left rows without a match are joined with None.
    store : str
        Name of the store of the result, if there is one.
    key, result : type or Serde, optional
        Types of the result.
    partitioner, other_partitioner : callable, optional
        How the left and the right table are partitioned, if not by their keys.
    """

    keys: ClassVar[Keys] = Keys.IN_PLACE

    foreign_key: Annotated[Function, called_with("left", key_first=True)]
    with_key: bool
    joiner: Annotated[Function, called_with("left", "right")]
    left_outer: bool
    names: ForeignKeyNames
    store: str
    key: Typing = None
    result: Typing = None
    materialized: Materialized = field(default_factory=Materialized)
    partitioner: Annotated[Partitioner | None, called_with("topic", "key", "value", "partitions")] = None
    other_partitioner: Annotated[Partitioner | None, called_with("topic", "key", "value", "partitions")] = None
