"""Joins of a table with another table: by the same key, or by a key that the left row's value holds."""

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
    """Rows of two tables that have the same key. The parents are the left and the right table.

    Parameters
    ----------
    joiner : callable or expression
        `joiner(left, right)`.
    left_outer, right_outer : bool
        Whether rows of a side are joined with None where the other side has none.
    this_join, other_join : str
        Names of the steps that take the updates of the left and of the right table.
    key, result : type or Serde, optional
        Of what comes out.
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
    """The names of an internal topic, and of the sink and the source at its ends."""

    topic: str
    sink: str
    source: str


@dataclass(frozen=True, slots=True)
class ForeignKeyNames:
    """The names of the parts of a foreign-key join: processors (but for the last), topics and own store."""

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
    """Rows of a table joined with those of another whose keys they hold. The parents are the left and the right table.

    Parameters
    ----------
    foreign_key : callable or expression
        Of a left row, or with `with_key` of its key and the row; gives a key of the right table, or None.
    joiner : callable or expression
        `joiner(left, right)`.
    left_outer : bool
        Whether left rows without a partner are joined with None.
    store : str
        Name of the store of the result, if it is kept.
    key, result : type or Serde, optional
        Of what comes out.
    partitioner, other_partitioner : callable, optional
        How the left and the right table are partitioned, where not by their keys.
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
