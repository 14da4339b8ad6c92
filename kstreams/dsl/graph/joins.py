"""Joins of a stream with another stream, a table or a global table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from kstreams.dsl.graph.node import Keys, Node, Typing
from kstreams.windows import JoinWindows


@dataclass(frozen=True, slots=True)
class StreamJoinNames:
    """The names that a stream-stream join gives out: of its steps (but for the last) and stores."""

    this_windowed: str
    other_windowed: str
    this_join: str
    other_join: str
    this_store: str
    other_store: str
    outer_store: str


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StreamJoin(Node):
    """Pairs of records of two streams whose times lie in a window: an inner join. The parents are left and right.

    Parameters
    ----------
    joiner : callable
        `joiner(left, right)`, or with the key in front when `with_key`.
    key, value, other_value : type or Serde, optional
        Of the key, the left value and the right value, where they are not known.
    """

    keys: ClassVar[Keys] = Keys.SETTLED

    joiner: Callable[..., Any]
    with_key: bool
    windows: JoinWindows
    names: StreamJoinNames
    key: Typing = None
    value: Typing = None
    other_value: Typing = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class OuterStreamJoin(StreamJoin):
    """A join that emits left rows without a partner too, and with `right_outer` the right ones as well."""

    takes_null_keys: ClassVar[bool] = True

    right_outer: bool


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StreamTableJoin(Node):
    """Each record of a stream with the table's row of its key: an inner join. The parents are stream and table."""

    keys: ClassVar[Keys] = Keys.SETTLED
    left: ClassVar[bool] = False

    joiner: Callable[..., Any]
    with_key: bool
    key: Typing = None
    value: Typing = None
    other_value: Typing = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LeftStreamTableJoin(StreamTableJoin):
    """The same, also for records without a row in the table."""

    takes_null_keys: ClassVar[bool] = True
    left: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class GlobalTableJoin(Node):
    """Each record of a stream with a row of a global table: an inner join. The parents are stream and table.

    Parameters
    ----------
    key_selector : callable
        `key_selector(key, value)` gives the table's key.
    """

    left: ClassVar[bool] = False

    key_selector: Callable[[Any, Any], Any]
    joiner: Callable[..., Any]
    with_key: bool


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LeftGlobalTableJoin(GlobalTableJoin):
    """The same, also for records without a row in the table."""

    takes_null_keys: ClassVar[bool] = True
    left: ClassVar[bool] = True
