"""`RowAggregation`: named expressions over the rows of a table, which come and leave.

As in an `Aggregation`, the state is a tuple with one slot per distinct aggregation. Each slot can take a row back: the
values of which `min`, `max` and `n_unique` are computed are members of the group, which the caller holds and counts.
The first slot is the number of rows: a group without rows has no state.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kstreams.errors import TopologyError
from kstreams.expressions.aggregation import (
    UPDATES,
    WITH_MEMBERS,
    add_input,
    check_aggregates,
    distinct_slots,
    pair_type,
    ranked_type,
    struct_of,
    value_of_slot,
)
from kstreams.expressions.expression import Expr
from kstreams.expressions.functions import quantile_of
from kstreams.expressions.operations import BY_ANOTHER, SKETCHES, Operation
from kstreams.expressions.python import Body
from kstreams.expressions.types import Schema, type_of
from kstreams.expressions.vocabulary import rows

State = tuple[Any, ...]
_WITH_MEMBERS = (*WITH_MEMBERS, Operation.MIN, Operation.MAX, *BY_ANOTHER)


@dataclass(frozen=True, slots=True, eq=False)
class RowAggregation:
    """The state per group, its functions, and its result; see `row_aggregation`.

    Parameters
    ----------
    initial : tuple
        The state before the first row.
    add, subtract : callable
        `(state, key, value, members) -> state`, or None if no row is left. `members` has the values of the group:
        `added(slot, value)` and `removed(slot, value)` return 1 if a value is new or gone, else 0;
        `with_least(slot, value, least)` and `without_least(slot, value, least)` return the least value afterwards, as
        do `with_greatest` and `without_greatest`. The methods that end in `_pair` do the same for pairs of `max_by`.
        `with_ranked(slot, value, ranked, quantile)` and `without_ranked` return the values at a rank, and
        `appended(slot, value, version)` and `dropped(slot, value, version)` the version of a list.
    result : callable
        `result(state) -> value`; with the members as one more argument if `lists_members`.
    state_type, value_type : type
    member_types : mapping of int to type
        The types of the members of each slot that has any.
    source : tuple
        The arguments of `row_aggregation`, for pickling.
    """

    initial: State
    add: Callable[..., State]
    subtract: Callable[..., State | None]
    result: Callable[[State], Any]
    state_type: Any
    value_type: Any
    member_types: Mapping[int, Any]
    source: tuple[Any, ...]

    def __reduce__(self) -> Any:
        return row_aggregation, self.source

    @property
    def lists_members(self) -> bool:
        """True if the result lists members."""
        return any(expr.operation is Operation.COLLECT for name in self.source[0].values() for expr in name.walk())


def row_aggregation(
    expressions: Mapping[str, Expr], key: object = None, value: object = None, result: object = None
) -> RowAggregation:
    """Return the aggregation of named expressions over the rows of groups.

    Parameters
    ----------
    expressions : mapping of str to Expr
    key, value : type, optional
        Types of the groups' keys and of the rows.
    result : type, optional
        The type of the result, by default a Struct with the names of the expressions.

    Raises
    ------
    TopologyError
        If an expression does not aggregate, does not fit the types, or depends on the order of rows.

    Examples
    --------
    >>> from kstreams.expressions import col, rows
    >>> wages = row_aggregation({"people": rows(), "mean": col("wage").mean()})
    >>> one = wages.add(wages.initial, "k", {"wage": 4}, None)
    >>> two = wages.add(one, "k", {"wage": 6}, None)
    >>> wages.result(two), wages.subtract(two, "k", {"wage": 4}, None), wages.subtract(one, "k", {"wage": 4}, None)
    ({'people': 2, 'mean': 5.0}, (1, 6, 1), None)
    """
    schema = Schema(key, value)
    kinds = {name: type_of(expr, schema) for name, expr in expressions.items()}
    for name, expr in expressions.items():
        check_aggregates(name, expr)
        _check_takes_back(name, expr)
    slots = _slots(expressions)
    value_type = result or struct_of(kinds)
    start = tuple(None if slot.operation in _NULL_AT_FIRST else 0 for slot in slots)
    return RowAggregation(
        start,
        _function("add", slots, schema, _ADDED, "({news},)"),
        _function("subtract", slots, schema, _SUBTRACTED, "({news},) if {rows} else None"),
        _result_function(expressions, slots, value_type),
        tuple[tuple(_slot_type(slot, schema) for slot in slots)],  # type: ignore[misc]
        value_type,
        {number: _member_type(slot, schema) for number, slot in enumerate(slots) if slot.operation in _WITH_MEMBERS},
        (dict(expressions), key, value, result),
    )


_NULL_AT_FIRST = (Operation.SUM, Operation.MIN, Operation.MAX, Operation.QUANTILE, *BY_ANOTHER)


def _slot_type(slot: Expr, schema: Schema) -> Any:
    if slot.operation in BY_ANOTHER:
        return pair_type(slot, schema) | None
    if slot.operation is Operation.COLLECT:
        return int
    if slot.operation is Operation.QUANTILE:
        return ranked_type(slot, schema)
    return type_of(slot, schema).annotation


def _member_type(slot: Expr, schema: Schema) -> Any:
    return pair_type(slot, schema) if slot.operation in BY_ANOTHER else type_of(slot.inputs[0], schema).kind


def _check_takes_back(name: str, expr: Expr) -> None:
    for node in expr.walk():
        if node.operation in (Operation.FIRST, Operation.LAST):
            raise TopologyError(
                f"{name}={expr!r}: the rows of a group have no order, since they come and leave: use min(), max() or "
                "top_n()"
            )
        if node.operation in SKETCHES:
            raise TopologyError(f"{name}={expr!r}: a sketch takes no rows back: use n_unique(), median() or quantile()")
        if node.reads_current_record:
            raise TopologyError(f"{name}={expr!r}: a row of a table has no headers and no position in a topic")


def _slots(expressions: Mapping[str, Expr]) -> tuple[Expr, ...]:
    """Return the slots: the number of rows, the aggregations, and the number of values of each sum."""
    aggregations = distinct_slots(expressions)
    of_sums = [Expr(Operation.COUNT, node.inputs) for node in aggregations if node.operation is Operation.SUM]
    return tuple({repr(node): node for node in (rows(), *aggregations, *of_sums)}.values())


def _function(
    name: str, slots: tuple[Expr, ...], schema: Schema, updates: Mapping[Operation, str], returned: str
) -> Callable[..., Any]:
    arguments = ("state", "key", "value", "members")
    body = Body(arguments, schema)
    olds = _named(slots)
    body.lines.append(f"{', '.join(olds.values())}, = state")
    news = []
    for number, slot in enumerate(slots):
        new = add_input(body, slot)
        count = _count_of(slot, olds)
        quantile = slot.detail[0] if slot.operation is Operation.QUANTILE else None
        parts = {"new": new, "slot": number, "count": count, "quantile": quantile}
        update = updates[slot.operation].format(old=olds[repr(slot)], **parts)
        news.append(body.assign(update))
    return body.function(name, arguments, returned.format(news=", ".join(news), rows=news[0]))


def _named(slots: tuple[Expr, ...]) -> dict[str, str]:
    """Return the names of slots in the source of a function, by expression."""
    return {repr(slot): f"s{number}" for number, slot in enumerate(slots)}


def _count_of(slot: Expr, names: Mapping[str, str]) -> str:
    """Return the name of the number of values of a sum; empty for other slots."""
    return names[repr(Expr(Operation.COUNT, slot.inputs))] if slot.operation is Operation.SUM else ""


def _result_function(expressions: Mapping[str, Expr], slots: tuple[Expr, ...], make: object) -> Callable[[State], Any]:
    body = Body(("state",), Schema())
    body.names["quantile_of"] = quantile_of
    names = _named(slots)
    body.lines.append(f"{', '.join(names.values())}, = state")
    for number, slot in enumerate(slots):
        parts = {"old": names[repr(slot)], "count": _count_of(slot, names), "slot": number, "detail": slot.detail}
        template = _RESULTS.get(slot.operation)
        body.define(slot, template.format(**parts) if template else value_of_slot(slot, names[repr(slot)]))
    fields = ", ".join(f"{name}={body.add(expr)}" for name, expr in expressions.items())
    lists = any(slot.operation is Operation.COLLECT for slot in slots)
    return body.function("result", ("state", "members") if lists else ("state",), f"{body.constant(make)}({fields})")


# The source that adds a value `new` to a slot `old`, or subtracts it. `count` is the number of values of a sum before.
_ADDED = {
    **UPDATES,
    Operation.SUM: "{old} if {new} is None else {old} + {new} if {count} else {new}",
    Operation.DISTINCT: "{old} if {new} is None else {old} + members.added({slot}, {new})",
    Operation.MIN: "{old} if {new} is None else members.with_least({slot}, {new}, {old})",
    Operation.MAX: "{old} if {new} is None else members.with_greatest({slot}, {new}, {old})",
    Operation.QUANTILE: "{old} if {new} is None else members.with_ranked({slot}, {new}, {old}, {quantile!r})",
    Operation.COLLECT: "{old} if {new} is None else members.appended({slot}, {new}, {old})",
    Operation.MIN_BY: "{old} if {new} is None else members.with_least_pair({slot}, {new}, {old})",
    Operation.MAX_BY: "{old} if {new} is None else members.with_greatest_pair({slot}, {new}, {old})",
}
_RESULTS = {
    Operation.SUM: "({old} if {count} else None)",
    Operation.QUANTILE: "quantile_of({old}, {detail[0]!r}, {detail[1]!r})",
    Operation.COLLECT: "members.listed({slot}, {old})",
}
"""The source of the result of a slot, if it is not the slot itself."""
_SUBTRACTED = {
    Operation.ROWS: "{old} - 1",
    Operation.COUNT: "{old} if {new} is None else {old} - 1",
    Operation.SUM: "{old} if {new} is None else {old} - {new}",
    Operation.DISTINCT: "{old} if {new} is None else {old} - members.removed({slot}, {new})",
    Operation.MIN: "{old} if {new} is None else members.without_least({slot}, {new}, {old})",
    Operation.MAX: "{old} if {new} is None else members.without_greatest({slot}, {new}, {old})",
    Operation.QUANTILE: "{old} if {new} is None else members.without_ranked({slot}, {new}, {old}, {quantile!r})",
    Operation.COLLECT: "{old} if {new} is None else members.dropped({slot}, {new}, {old})",
    Operation.MIN_BY: "{old} if {new} is None else members.without_least_pair({slot}, {new}, {old})",
    Operation.MAX_BY: "{old} if {new} is None else members.without_greatest_pair({slot}, {new}, {old})",
}
