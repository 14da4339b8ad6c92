"""Checks, when a join is declared, that keys of both sides can be equal."""

from __future__ import annotations

from kstreams.dsl.analysis.key_types import check_keys
from kstreams.dsl.analysis.types import TypeOf, naming, type_given_by
from kstreams.dsl.graph import Function, Typing
from kstreams.dsl.handle import Handle
from kstreams.dsl.sugar.known_types import types_of
from kstreams.expressions import Expr, gives_struct
from kstreams.kernel.source_line import declared_at


def check_sides(join: str, left: Handle, right: Handle, declared: Typing) -> None:
    """Raise a TopologyError when the keys of two sides, or those that the join declares, are never equal."""
    place = f"{join} at {declared_at()}"
    keys = [types_of(side._graph, side._node).key for side in (left, right)]
    check_keys(place, *keys)
    for key in keys:
        check_keys(place, TypeOf(declared, key.origin), key)


def check_selected(join: str, selector: Function, left: Handle, right: Handle) -> None:
    """The same for a join by what a function of the left side gives; a `ks.struct` is built as the right side's key."""
    place = f"{join} at {declared_at()}"
    key = types_of(right._graph, right._node).key
    with naming(place):
        kind = type_given_by(selector, types_of(left._graph, left._node))
    if not (isinstance(selector, Expr) and gives_struct(selector)):
        check_keys(place, TypeOf(kind, left._node), key)
