"""Joins of a stream with another stream, a table or a global table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from kstreams.dsl.graph.node import Keys, Node, Typing
from kstreams.dsl.graph.signatures import called_with
from kstreams.dsl.graph.stateless import Function
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
        `joiner(left, right)`, or with the key in front when `with_key`; or an expression over both values.
    key, value, other_value : type or Serde, optional
        Of the key, the left value and the right value, where they are not known.
    result : type or Serde, optional
        Of what comes out.
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
    """A join that emits left rows without a partner too, and with `right_outer` the right ones as well."""

    takes_null_keys: ClassVar[bool] = True

    right_outer: bool


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SelfJoin(Node):
    """A stream joined with itself in windows, its records kept once: what the optimizer makes of such a join.

    Both parents are that stream.

    Parameters
    ----------
    windowed, store : str
        Names of the step that keeps records, and of where it keeps them.
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
    """The same, made of a left or outer join: no repartition before it drops null keys."""

    takes_null_keys: ClassVar[bool] = True


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StreamTableJoin(Node):
    """Each record of a stream with the table's row of its key: an inner join. The parents are stream and table.

    Parameters
    ----------
    grace_ms : int, optional
        How long records wait for versions of the table that come late.
    """

    keys: ClassVar[Keys] = Keys.IN_PLACE
    left: ClassVar[bool] = False

    joiner: Annotated[Function, called_with("left", "right", key_first=True)]
    with_key: bool
    grace_ms: int | None = None
    key: Typing = None
    value: Typing = None
    other_value: Typing = None
    result: Typing = None


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
    with_mapped_key : bool
        Whether the joiner takes the key of the record and the table's key before the values.
    """

    left: ClassVar[bool] = False

    key_selector: Annotated[Function, called_with("key", "value")]
    joiner: Annotated[Function, called_with("left", "right", key_first=True, mapped_key_first=True)]
    with_key: bool
    with_mapped_key: bool = False
    result: Typing = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LeftGlobalTableJoin(GlobalTableJoin):
    """The same, also for records without a row in the table."""

    takes_null_keys: ClassVar[bool] = True
    left: ClassVar[bool] = True
