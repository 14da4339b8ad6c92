"""Joins of a table with another table: by the same key, or by a key that the left row's value holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from kstreams.dsl.graph.node import Keys, Node, Typing
from kstreams.dsl.graph.stateless import Function
from kstreams.dsl.materialized import Materialized


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

    keys: ClassVar[Keys] = Keys.SETTLED

    joiner: Function
    left_outer: bool
    right_outer: bool
    this_join: str
    other_join: str
    key: Typing = None
    result: Typing = None
    materialized: Materialized = field(default_factory=Materialized)
