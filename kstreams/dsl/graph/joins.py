"""Joins of a stream with another stream, a table or a global table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from kstreams.dsl.graph.node import Keys, Node, Typing
from kstreams.dsl.graph.signatures import called_with
from kstreams.dsl.graph.stateless import Function
from kstreams.windows import END_OF_TIME_MS, JoinWindows

FOREVER_MS = END_OF_TIME_MS - 1
"""The retention of records that are retained for ever. Stores retain a row for one millisecond more."""


@dataclass(frozen=True, slots=True)
class StreamJoinNames:
    """The names of the processors (except the last one) and of the stores of a stream-stream join."""

    this_windowed: str
    other_windowed: str
    this_join: str
    other_join: str
    this_store: str
    other_store: str
    outer_store: str


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StreamJoin(Node):
    """The pairs of records of two streams whose times lie in a window: an inner join.

    The parents are the left and the right stream.

    Parameters
    ----------
    joiner : callable
        `joiner(left, right)`, `joiner(key, left, right)` if `with_key` is true, or an expression over both values.
    key, value, other_value : type or Serde, optional
        Types of the key, the left value and the right value, if they are not declared before.
    result : type or Serde, optional
        Type of the result.
    """

    keys: ClassVar[Keys] = Keys.IN_PLACE

    joiner: Annotated[Function, called_with("left", "right", key_first=True)]
    with_key: bool
    windows: JoinWindows
    names: StreamJoinNames
    key: Typing = None
    value: Typing = None
    other_value: Typing = None
    result: Typing = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class OuterStreamJoin(StreamJoin):
    """A join that also emits left records without a match, and with `right_outer` right records without a match."""

    takes_null_keys: ClassVar[bool] = True

    right_outer: bool


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SelfJoin(Node):
    """A windowed join of a stream with itself that stores each record once; the optimizer makes it of a `StreamJoin`.

    Both parents are the stream.

    Parameters
    ----------
    windowed, store : str
        Names of the processor that stores the records, and of its store.
    """

    keys: ClassVar[Keys] = Keys.IN_PLACE

    joiner: Annotated[Function, called_with("left", "right", key_first=True)]
    with_key: bool
    windows: JoinWindows
    windowed: str
    store: str
    key: Typing = None
    value: Typing = None
    other_value: Typing = None
    result: Typing = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class OuterSelfJoin(SelfJoin):
    """A self-join made of a left or outer join: repartitions before it pass records with null keys on."""

    takes_null_keys: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class RetainedJoinNames:
    """The names of the processors (except the last one) and of the stores of a join of retained records."""

    this_join: str
    other_join: str
    this_store: str
    other_store: str
    outer_store: str


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RetainedJoin(Node):
    """The pairs of records of two streams that were retained when the later of both arrived: an inner join.

    The parents are the left and the right stream.

    Parameters
    ----------
    retain_ms : int
        How far a record may be behind stream time; `FOREVER_MS` if all records are retained.
    """

    keys: ClassVar[Keys] = Keys.IN_PLACE

    joiner: Annotated[Function, called_with("left", "right", key_first=True)]
    with_key: bool
    retain_ms: int
    names: RetainedJoinNames
    key: Typing = None
    value: Typing = None
    other_value: Typing = None
    result: Typing = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class OuterRetainedJoin(RetainedJoin):
    """A join that also emits left records that met no right one, and with `right_outer` the converse."""

    takes_null_keys: ClassVar[bool] = True

    right_outer: bool


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StreamTableJoin(Node):
    """Each record of a stream, joined with the table's row of the same key: an inner join.

    The parents are the stream and the table.

    Parameters
    ----------
    grace_ms : int, optional
        How long records wait for late versions of the table.
    """

    keys: ClassVar[Keys] = Keys.IN_PLACE
    left_outer: ClassVar[bool] = False

    joiner: Annotated[Function, called_with("left", "right", key_first=True)]
    with_key: bool
    grace_ms: int | None = None
    key: Typing = None
    value: Typing = None
    other_value: Typing = None
    result: Typing = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LeftStreamTableJoin(StreamTableJoin):
    """A stream-table join that also emits records without a row in the table."""

    takes_null_keys: ClassVar[bool] = True
    left_outer: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class GlobalTableJoin(Node):
    """Each record of a stream, joined with a row of a global table: an inner join.

    The parents are the stream and the table.

    Parameters
    ----------
    key_selector : callable
        `key_selector(key, value)` returns the key in the table.
    with_mapped_key : bool
        True if the joiner takes the record's key and the key in the table before the values.
    """

    left_outer: ClassVar[bool] = False

    key_selector: Annotated[Function, called_with("key", "value")]
    joiner: Annotated[Function, called_with("left", "right", key_first=True, mapped_key_first=True)]
    with_key: bool
    with_mapped_key: bool = False
    result: Typing = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LeftGlobalTableJoin(GlobalTableJoin):
    """A global table join that also emits records without a row in the table."""

    takes_null_keys: ClassVar[bool] = True
    left_outer: ClassVar[bool] = True
