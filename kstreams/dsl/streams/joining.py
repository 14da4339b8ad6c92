"""Declares the joins of a stream: their repartitions, their nodes, and the names of processors and stores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import UNSET, UnsetType

from kstreams.dsl.analysis.key_types import check_keys
from kstreams.dsl.analysis.types import TypeOf, naming, result_type_of
from kstreams.dsl.graph import Function, Grouped, Typing
from kstreams.dsl.graph.joins import (
    FOREVER_MS,
    GlobalTableJoin,
    LeftGlobalTableJoin,
    LeftStreamTableJoin,
    OuterRetainedJoin,
    OuterStreamJoin,
    RetainedJoin,
    RetainedJoinNames,
    StreamJoin,
    StreamJoinNames,
    StreamTableJoin,
)
from kstreams.dsl.handle import Handle
from kstreams.dsl.naming import Names, validate_name
from kstreams.dsl.sugar.known_types import types_of
from kstreams.errors import TopologyError
from kstreams.expressions import Expr, gives_struct
from kstreams.kernel.durations import Duration, to_ms
from kstreams.kernel.source_line import declared_at
from kstreams.windows import JoinWindows

if TYPE_CHECKING:
    from kstreams.dsl.streams.kstream import KStream
    from kstreams.dsl.tables.global_ktable import GlobalKTable
    from kstreams.dsl.tables.ktable import KTable


def check_sides(join: str, left: Handle, right: Handle, declared: Typing) -> None:
    """Raise a TopologyError if the keys of two sides, or the keys that the join declares, are never equal."""
    place = f"{join} at {declared_at()}"
    keys = [types_of(side._graph, side._node).key for side in (left, right)]
    check_keys(place, *keys)
    for key in keys:
        check_keys(place, TypeOf(declared, key.origin), key)


def check_selected(join: str, selector: Function, left: Handle, right: Handle) -> None:
    """Raise a TopologyError if the keys that a function of the left side returns never equal those of the right side.

    A `ks.struct` is not checked: it is created as the type of the right key.
    """
    place = f"{join} at {declared_at()}"
    key = types_of(right._graph, right._node).key
    with naming(place):
        kind = result_type_of(selector, types_of(left._graph, left._node))
    if not (isinstance(selector, Expr) and gives_struct(selector)):
        check_keys(place, TypeOf(kind, left._node), key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """The arguments of a join, except for the other side; see `KStream.join`."""

    joiner: Function
    windows: JoinWindows | None = None
    retain: Duration | UnsetType | None = UNSET
    key_selector: Function | None = None
    with_key: bool = False
    with_mapped_key: bool = False
    key: Typing = None
    value: Typing = None
    other_value: Typing = None
    name: str | None = None
    store_name: str | None = None
    grace: Duration | None = None


_TAKEN_BY = {
    "windows": ("KStream",),
    "retain": ("KStream",),
    "key_selector": ("GlobalKTable",),
    "store_name": ("KStream",),
    "grace": ("KTable",),
    "key": ("KStream", "KTable"),
    "other_value": ("KStream", "KTable"),
    "with_mapped_key": ("GlobalKTable",),
}
"""By option: the handles with which a join takes it."""
_DEFAULTS = {field.name: field.default for field in fields(Joined)}


def refuse_options(other: Handle, joined: Joined) -> None:
    """Raise a TopologyError for an option that a join with `other` does not take."""
    kind = type(other).__name__
    for option, owners in _TAKEN_BY.items():
        value = getattr(joined, option)
        if value is not _DEFAULTS[option] and kind not in owners:
            raise TopologyError(
                f"the join at {declared_at()} is with a {kind}, but {option}= belongs to a join with a {owners[0]}: "
                "leave it out"
            )


def _left_value(left: Handle, joined: Joined) -> Typing:
    """Return the type of the left values if nothing else declares it: that of the result."""
    return joined.value if types_of(left._graph, left._node).value.kind is None else None


def join_streams(
    left: KStream[Any, Any],
    right: KStream[Any, Any],
    joined: Joined,
    *,
    left_outer: bool,
    right_outer: bool,
) -> StreamJoin | RetainedJoin:
    """Declare a join by windows or by retention; sides whose keys were changed are repartitioned first."""
    _check_span(joined, outer=left_outer or right_outer)
    check_sides("the join of two streams", left, right, joined.key)
    graph = left._graph
    name = joined.name
    value = _left_value(left, joined)
    this = left._placed(_prefix(left, name, "left"), Grouped(key=joined.key, value=value))
    other = right._placed(_prefix(right, name, "right"), Grouped(key=joined.key, value=joined.other_value))
    if joined.store_name is not None:
        validate_name(joined.store_name)
    outer = {"left_outer": left_outer, "right_outer": right_outer}
    if joined.windows is None:
        join = _by_retention(graph.names, joined, **outer)
    else:
        join = _by_windows(graph.names, joined, joined.windows, **outer)
    node = join(
        joiner=joined.joiner,
        with_key=joined.with_key,
        key=joined.key,
        value=value,
        other_value=joined.other_value,
        result=joined.value,
    )
    merge = _named(graph.names, name, "-merge", "KSTREAM-MERGE-")
    return graph.add(node, merge, (this.name, other.name))


def _check_span(joined: Joined, *, outer: bool) -> None:
    """Raise a TopologyError unless a join of streams says, in one way, which records are joined."""
    place = f"the join of two streams at {declared_at()}"
    if joined.windows is not None and joined.retain is not UNSET:
        raise TopologyError(
            f"{place} has windows= and retain=: leave retain= out to join records by the difference of their times, or "
            "windows= to join all records that are retained"
        )
    if joined.windows is None and joined.retain is UNSET:
        raise TopologyError(
            f"{place} needs windows=JoinWindows.of(...), which says which records may meet, or retain=: how long each "
            "record is retained, whatever the times of its partners (None: for ever)"
        )
    if outer and joined.windows is None and joined.retain is None:
        raise TopologyError(
            f"{place} emits records without a match when they are no longer retained, and retain=None retains them for "
            "ever: give retain= a duration, use join(), or join tables (to_table()), whose results are updated"
        )


_Declaration: TypeAlias = "Callable[..., StreamJoin | RetainedJoin]"
"""Takes the fields that joins by windows and by retention have in common."""


def _by_windows(
    names: Names, joined: Joined, windows: JoinWindows, *, left_outer: bool, right_outer: bool
) -> _Declaration:
    join_names = stream_join_names(
        names, joined.name, joined.store_name, left_outer=left_outer, right_outer=right_outer
    )
    if left_outer:
        return partial(OuterStreamJoin, windows=windows, names=join_names, right_outer=right_outer)
    return partial(StreamJoin, windows=windows, names=join_names)


def _by_retention(names: Names, joined: Joined, *, left_outer: bool, right_outer: bool) -> _Declaration:
    retain_ms = _retain_ms(joined.retain)
    join_names = _retained_join_names(names, joined.name, joined.store_name)
    if left_outer:
        return partial(OuterRetainedJoin, retain_ms=retain_ms, names=join_names, right_outer=right_outer)
    return partial(RetainedJoin, retain_ms=retain_ms, names=join_names)


def _retain_ms(retain: Duration | UnsetType | None) -> int:
    if retain is None or isinstance(retain, UnsetType):
        return FOREVER_MS
    retain_ms = to_ms(retain)
    if retain_ms < 0:
        raise TopologyError(f"the join at {declared_at()} cannot retain records for a negative time: retain={retain}")
    return retain_ms


def _prefix(side: KStream[Any, Any], name: str | None, which: str) -> str:
    return side._node.name if name is None else f"{validate_name(name)}-{which}"


def stream_join_names(
    names: Names, name: str | None, store_name: str | None, *, left_outer: bool, right_outer: bool
) -> StreamJoinNames:
    """Return the names that Kafka Streams gives the processors and stores of a join.

    Examples
    --------
    >>> names = stream_join_names(Names(), None, None, left_outer=True, right_outer=False)
    >>> names.other_join, names.this_store
    ('KSTREAM-OUTEROTHER-0000000003', 'KSTREAM-JOINTHIS-0000000002-store')
    >>> names.outer_store
    'KSTREAM-OUTERSHARED-0000000002-store'
    """
    this_windowed = _named(names, name, "-this-windowed", "KSTREAM-WINDOWED-")
    other_windowed = _named(names, name, "-other-windowed", "KSTREAM-WINDOWED-")
    this_prefix = "KSTREAM-OUTERTHIS-" if right_outer else "KSTREAM-JOINTHIS-"
    other_prefix = "KSTREAM-OUTEROTHER-" if left_outer else "KSTREAM-JOINOTHER-"
    this_suffix = "-outer-this-join" if right_outer else "-this-join"
    other_suffix = "-outer-other-join" if left_outer else "-other-join"
    shared_suffix = "-outer-shared-join" if right_outer else "-left-shared-join"
    this = names.next(this_prefix)
    other = names.next(other_prefix)
    shared = names.sibling(this, "KSTREAM-OUTERSHARED-")
    return StreamJoinNames(
        this_windowed,
        other_windowed,
        this if name is None else f"{name}{this_suffix}",
        other if name is None else f"{name}{other_suffix}",
        f"{this if store_name is None else store_name + this_suffix}-store",
        f"{other if store_name is None else store_name + other_suffix}-store",
        f"{shared if store_name is None else store_name + shared_suffix}-store",
    )


def _retained_join_names(names: Names, name: str | None, store_name: str | None) -> RetainedJoinNames:
    this = _named(names, name, "-this-join", "KSTREAM-JOINTHIS-")
    other = _named(names, name, "-other-join", "KSTREAM-JOINOTHER-")
    shared = names.sibling(this, "KSTREAM-OUTERSHARED-") if name is None else f"{name}-shared-join"
    if store_name is not None:
        stores = [f"{store_name}-{side}-join-store" for side in ("this", "other", "shared")]
    else:
        stores = [f"{processor}-store" for processor in (this, other, shared)]
    return RetainedJoinNames(this, other, *stores)


def _named(names: Names, name: str | None, suffix: str, prefix: str) -> str:
    return names.given_or_next(None if name is None else f"{name}{suffix}", prefix)


def join_table(
    stream: KStream[Any, Any], table: KTable[Any, Any], joined: Joined, *, left_outer: bool
) -> StreamTableJoin:
    """Declare a join with a table; a stream whose keys were changed is repartitioned first."""
    grace_ms = None if joined.grace is None else to_ms(joined.grace)
    if grace_ms is not None and grace_ms < 0:
        raise TopologyError(f"the join at {declared_at()} cannot wait for a negative time: grace={joined.grace}")
    check_sides("the join with a table", stream, table, joined.key)
    value = _left_value(stream, joined)
    prefix = stream._node.name if joined.name is None else joined.name
    placed = stream._placed(prefix, Grouped(key=joined.key, value=value))
    graph = stream._graph
    name = graph.names.given_or_next(joined.name, "KSTREAM-LEFTJOIN-" if left_outer else "KSTREAM-JOIN-")
    node = (LeftStreamTableJoin if left_outer else StreamTableJoin)(
        joiner=joined.joiner,
        with_key=joined.with_key,
        grace_ms=grace_ms,
        key=joined.key,
        value=value,
        other_value=joined.other_value,
        result=joined.value,
    )
    return graph.add(node, name, (placed.name, table._node.name))


def join_global_table(
    stream: KStream[Any, Any],
    table: GlobalKTable[Any, Any],
    joined: Joined,
    *,
    left_outer: bool,
) -> GlobalTableJoin:
    """Declare a join with a global table by any key."""
    key_selector = joined.key_selector
    if key_selector is None:
        raise TopologyError(
            f"the join with a global table at {declared_at()} needs key_selector=: which key of the table a record has"
        )
    check_selected("the join with a global table", key_selector, stream, table)
    if joined.with_mapped_key and isinstance(joined.joiner, Expr):
        raise TopologyError(
            f"the joiner of the join with a global table at {declared_at()} is an expression, which reads the values "
            "alone: leave with_mapped_key=True out, or give a function (key, mapped_key, left, right)"
        )
    node = (LeftGlobalTableJoin if left_outer else GlobalTableJoin)(
        key_selector=key_selector,
        joiner=joined.joiner,
        with_key=joined.with_key,
        with_mapped_key=joined.with_mapped_key,
        result=joined.value,
    )
    # Kafka Streams gives inner and left joins the same name.
    return stream._add_node(node, "KSTREAM-LEFTJOIN-", joined.name, table)
