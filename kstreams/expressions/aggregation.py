"""`Aggregation`: named expressions over many records, with a small state that each record updates.

The state is a flat tuple with one slot per distinct aggregation (`mean` is sum and count), so that the states of two
batches can be merged. The store and its changelog hold the state; the value of a row is computed from it.

`n_unique()`, `quantile()` and `collect()` need the values of a group, its members. They are part of the state, or rows
of a store of their own: then the slot is their number, or the values at a rank, so that a record costs the same however
many there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from kstreams.errors import SerdeError, TopologyError
from kstreams.expressions.expression import Expr
from kstreams.expressions.functions import inserted, inserted_all, quantile_in, quantile_of, union, with_member
from kstreams.expressions.generated import struct_type
from kstreams.expressions.operations import BY_ANOTHER, SKETCHES, Operation
from kstreams.expressions.python import Body
from kstreams.expressions.sketches import FUNCTIONS, require_sketches
from kstreams.expressions.types import PARTIAL, Schema, Typed, takes_null, type_of
from kstreams.expressions.vocabulary import rows

State = Any
"""A tuple with one slot per aggregation; for `counting()`, an int."""


@dataclass(frozen=True, slots=True, eq=False)
class Aggregation:
    """The state per key (and window), its functions, and its result; see `aggregation`.

    Parameters
    ----------
    slots : tuple of Expr
        The distinct aggregations; the state has one slot for each.
    initial, add, result : callable
        `initial() -> state`; `add(state, key, value, timestamp) -> state`, with the current record as one more argument
        if `reads_current_record`; `result(state) -> value`. If members are rows, those of the record's group
        (`Members`) are an argument after the timestamp, and the last argument of `result` if it lists them.
    state_type, value_type : type
        Types of the state and of the result.
    source : tuple
        The arguments of `aggregation`, for pickling.
    required : tuple of str
        The fields that may be null, but that `value_type` declares without None: `add` raises an error if one is null.
    in_rows : tuple of Operation
        The aggregations whose members are rows of a store of their own.
    member_types : mapping of int to type
        The types of the members of each slot that has any, by the number of the slot.
    """

    slots: tuple[Expr, ...]
    initial: Callable[[], State]
    add: Callable[..., State]
    result: Callable[[State], Any]
    state_type: Any
    value_type: Any
    source: tuple[Any, ...] = ()
    required: tuple[str, ...] = ()
    in_rows: tuple[Operation, ...] = ()
    member_types: Mapping[int, Any] = field(default_factory=dict)

    def __reduce__(self) -> Any:
        return (_counting, ()) if not self.source else (_recreated, (*self.source, self.in_rows))

    @property
    def is_count(self) -> bool:
        """True if the state is the number of records, as an int."""
        return not self.source

    @property
    def reads_current_record(self) -> bool:
        """True if it reads the headers or the position of the input records."""
        return any(slot.reads_current_record for slot in self.slots)

    @property
    def lists_members(self) -> bool:
        """True if the result lists members that are rows."""
        return Operation.COLLECT in self.in_rows and any(slot.operation is Operation.COLLECT for slot in self.slots)

    @property
    def divides(self) -> bool:
        """True if a required field may be null without null inputs, by a division by anything but a record count."""
        nodes = (node for name in self.required for node in self.source[0][name].walk())
        divisions = (node for node in nodes if node.operation in PARTIAL)
        return any(node.inputs[1].operation not in (Operation.COUNT, Operation.ROWS) for node in divisions)


def aggregation(
    expressions: Mapping[str, Expr],
    *,
    key: object = None,
    value: object = None,
    result: object = None,
    in_rows: Sequence[Operation] = (),
) -> Aggregation:
    """Return the aggregation of named expressions.

    Parameters
    ----------
    expressions : mapping of str to Expr
        Expressions of aggregations: `ks.len()`, `ks.col("delay").mean()`, `ks.col("a").sum() / ks.len()`.
    key, value : type, optional
        Types of the records' key and value.
    result : type, optional
        The type of the result, which is called with the names as keywords. By default a Struct with these names, or a
        dict if the types are not known.
    in_rows : sequence of Operation
        The aggregations of which a caller holds the members in rows; else they are part of the state.

    Raises
    ------
    TopologyError
        If an expression does not aggregate, or does not fit the types.

    Examples
    --------
    >>> from kstreams.expressions import col, rows
    >>> delays = aggregation({"flights": rows(), "mean": col("delay").mean()})
    >>> state = delays.add(delays.add(delays.initial(), "k", {"delay": 4}, 0), "k", {"delay": None}, 1)
    >>> state, delays.result(state)
    ((2, 4, 1), {'flights': 2, 'mean': 4.0})
    """
    if not expressions:
        raise TopologyError("aggregate needs at least one named expression, for example flights=ks.len()")
    schema = Schema(key, value)
    kinds = {name: type_of(expr, schema) for name, expr in expressions.items()}
    for name, expr in expressions.items():
        check_aggregates(name, expr)
    slots = distinct_slots(expressions)
    _check_slots(slots)
    value_type = result or struct_of(kinds)
    members = _Members.of(in_rows)
    start = tuple((_EMPTY | members.empty).get(slot.operation) for slot in slots)
    required = tuple(name for name, kind in kinds.items() if kind.nullable and not takes_null(value_type, name))
    return Aggregation(
        slots,
        lambda: start,
        _add_function(slots, schema, members, _Required(value_type, {name: expressions[name] for name in required})),
        _result_function(expressions, slots, members, value_type),
        tuple[tuple(_slot_type(slot, schema, members) for slot in slots)],  # type: ignore[misc]
        value_type,
        (dict(expressions), key, value, result),
        required,
        tuple(in_rows),
        {n: type_of(slot.inputs[0], schema).kind for n, slot in enumerate(slots) if slot.operation in in_rows},
    )


def _check_slots(slots: tuple[Expr, ...]) -> None:
    """Raise ImportError for a sketch whose library is not installed."""
    for slot in slots:
        if slot.operation in SKETCHES:
            require_sketches(slot)


def counting() -> Aggregation:
    """Return the aggregation of `count()`: the number of records, with an `int` as state.

    Examples
    --------
    >>> counting().add(41, "key", "value", 0)
    42
    """
    return _COUNTING


def _recreated(
    expressions: Mapping[str, Expr], key: object, value: object, result: object, in_rows: Sequence[Operation]
) -> Aggregation:
    return aggregation(expressions, key=key, value=value, result=result, in_rows=in_rows)


def _counting() -> Aggregation:
    return _COUNTING


def struct_of(kinds: Mapping[str, Typed]) -> Any:
    """Return the Struct with these fields; dict if the type of a field is not known."""
    if any(kind.kind is Any for kind in kinds.values()):
        return dict
    return struct_type(tuple((name, kind.annotation) for name, kind in kinds.items()))


_COUNTING = Aggregation((rows(),), lambda: 0, lambda n, *_: n + 1, lambda n: n, int, int)
_EMPTY: dict[Operation, object] = {Operation.ROWS: 0, Operation.COUNT: 0}


class _Slot(NamedTuple):
    """A slot that needs members: empty, the source that adds a value `new` to a slot `old`, and that of its result."""

    empty: object
    update: str
    result: str


_IN_STATE = {
    Operation.DISTINCT: _Slot((), "with_member({old}, {new})", "len({old})"),
    Operation.QUANTILE: _Slot((), "inserted({old}, {new})", "quantile_in({old}, {detail[0]!r}, {detail[1]!r})"),
    Operation.COLLECT: _Slot((), "(*{old}, {new})", "list({old})"),
}
_IN_ROWS = {
    Operation.DISTINCT: _Slot(0, "{old} + members.added({slot}, {new})", "{old}"),
    Operation.QUANTILE: _Slot(
        None,
        "members.with_ranked({slot}, {new}, {old}, {detail[0]!r})",
        "quantile_of({old}, {detail[0]!r}, {detail[1]!r})",
    ),
    Operation.COLLECT: _Slot(0, "members.appended({slot}, {new}, {old})", "members.listed({slot}, {old})"),
}
WITH_MEMBERS = tuple(_IN_ROWS)
"""The aggregations of streams that need the members of their groups."""


@dataclass(frozen=True, slots=True)
class _Members:
    """How slots have the members of a group, by their operation."""

    slots: Mapping[Operation, _Slot]
    are_rows: bool

    @classmethod
    def of(cls, in_rows: Sequence[Operation]) -> _Members:
        return cls({**_IN_STATE, **{operation: _IN_ROWS[operation] for operation in in_rows}}, bool(in_rows))

    @property
    def empty(self) -> dict[Operation, object]:
        return {operation: slot.empty for operation, slot in self.slots.items()}

    @property
    def updates(self) -> dict[Operation, str]:
        return {operation: f"{{old}} if {{new}} is None else {slot.update}" for operation, slot in self.slots.items()}

    def are_in_state(self, slot: Expr) -> bool:
        """Return whether the state has the members of a slot."""
        return self.slots.get(slot.operation) is _IN_STATE.get(slot.operation, self)


def check_aggregates(name: str, expr: Expr) -> None:
    """Raise TopologyError if a named expression is not one value of many records."""
    for node in expr.inputs if not expr.operation.is_aggregation else ():
        if node.operation is not Operation.LITERAL:
            check_aggregates(name, node)
    inside = [node for part in expr.inputs for node in part.walk()] if expr.operation.is_aggregation else []
    if expr.operation.is_leaf or (not expr.is_aggregation and expr.operation is not Operation.LITERAL):
        raise TopologyError(
            f"{name}={expr!r} is not one value of many records: end it with .sum(), .last() or the like"
        )
    if any(node.operation.is_aggregation for node in inside):
        raise TopologyError(f"{name}={expr!r} aggregates an aggregation: aggregate a value of the records")


def _slot_type(slot: Expr, schema: Schema, members: _Members) -> Any:
    if members.are_in_state(slot):
        return tuple[type_of(slot.inputs[0], schema).kind, ...]  # type: ignore[misc]
    if slot.operation is Operation.COLLECT:
        return int
    if slot.operation is Operation.QUANTILE:
        return ranked_type(slot, schema)
    if slot.operation in SKETCHES:
        return bytes | None
    return pair_type(slot, schema) | None if slot.operation in BY_ANOTHER else type_of(slot, schema).annotation


def ranked_type(slot: Expr, schema: Schema) -> Any:
    """Return the type of a slot with the values at a rank: their number, how many are less, and the values."""
    value = type_of(slot.inputs[0], schema).kind
    return tuple[int, int, value, value] | None  # type: ignore[valid-type]


def pair_type(slot: Expr, schema: Schema) -> Any:
    """Return the type of the pairs of `max_by`: the value by which one is chosen, and the value."""
    value, by = (type_of(node, schema) for node in slot.inputs)
    return tuple[by.kind, value.annotation]  # type: ignore[name-defined]


def add_input(body: Body, slot: Expr) -> str:
    """Add the lines that compute what a slot aggregates of a record; return the name that holds it, if any.

    Of `max_by`, it is a pair, or None without the value by which one is chosen.
    """
    names = [body.add(node) for node in slot.inputs]
    if slot.operation not in BY_ANOTHER:
        return "".join(names)
    value, by = names
    return body.assign(f"None if {by} is None or {by} != {by} else ({by}, {value})")


def value_of_slot(slot: Expr, name: str) -> str:
    """Return the source of the result of a slot that `name` holds."""
    if slot.operation is Operation.APPROX_DISTINCT:
        return f"approx_count({name})"
    if slot.operation is Operation.APPROX_QUANTILE:
        return f"approx_quantile({name}, {slot.detail!r})"
    return f"(None if {name} is None else {name}[1])" if slot.operation in BY_ANOTHER else name


def distinct_slots(expressions: Mapping[str, Expr]) -> tuple[Expr, ...]:
    """Return the distinct aggregations in expressions."""
    aggregations = [node for expr in expressions.values() for node in expr.walk() if node.operation.is_aggregation]
    return tuple({repr(node): node for node in aggregations}.values())


@dataclass(frozen=True, slots=True)
class _Required:
    """The fields of a result that must not be null, with their expressions."""

    result_type: object
    fields: Mapping[str, Expr]

    def add_to(self, body: Body) -> None:
        """Add the lines that check the fields after a record has changed the slots."""
        for name, expr in self.fields.items():
            raise_error = partial(self._raise_null, name, expr)
            body.lines.append(f"if {body.add(expr)} is None: {body.constant(raise_error)}()")

    def _raise_null(self, name: str, expr: Expr) -> None:
        kind = getattr(self.result_type, "__name__", self.result_type)
        raise SerdeError(
            f"{name}={expr!r} is null, which {kind} does not take for its field {name!r}: declare the field with "
            "`| None`, or drop such records with a filter"
        )


def _add_function(
    slots: tuple[Expr, ...], schema: Schema, members: _Members, required: _Required
) -> Callable[..., State]:
    reads_record = any(slot.reads_current_record for slot in slots)
    parts = ("members",) * members.are_rows + ("record",) * reads_record
    arguments = ("state", "key", "value", "timestamp", *parts)
    body = Body(arguments, schema)
    body.names |= _NAMES
    olds = [f"s{index}" for index in range(len(slots))]
    body.lines.append(f"{', '.join(olds)}, = state")
    news = []
    updates = {**UPDATES, **members.updates}
    for index, (slot, old) in enumerate(zip(slots, olds, strict=True)):
        new = add_input(body, slot)
        news.append(body.assign(updates[slot.operation].format(old=old, new=new, slot=index, detail=slot.detail)))
    _define_slots(body, slots, news, members)
    required.add_to(body)
    return body.function("add", arguments, f"({', '.join(news)},)")


def _result_function(
    expressions: Mapping[str, Expr], slots: tuple[Expr, ...], members: _Members, make: object
) -> Callable[[State], Any]:
    body = Body(("state",), Schema())
    body.names |= _NAMES
    names = [f"s{index}" for index in range(len(slots))]
    body.lines.append(f"{', '.join(names)}, = state")
    _define_slots(body, slots, names, members)
    fields = ", ".join(f"{name}={body.add(expr)}" for name, expr in expressions.items())
    lists = any(slot.operation is Operation.COLLECT and not members.are_in_state(slot) for slot in slots)
    arguments = ("state", "members") if lists else ("state",)
    return body.function("result", arguments, f"{body.constant(make)}({fields})")


def _define_slots(body: Body, slots: tuple[Expr, ...], names: Sequence[str], members: _Members) -> None:
    """Define the names that hold the slots."""
    for number, (slot, name) in enumerate(zip(slots, names, strict=True)):
        if slot.operation in members.slots:
            text = members.slots[slot.operation].result.format(old=name, slot=number, detail=slot.detail)
        else:
            text = value_of_slot(slot, name)
        body.define(slot, text)


_NAMES = {
    **{function.__name__: function for function in (inserted, quantile_in, quantile_of, with_member)},
    **FUNCTIONS,
}


# The source that updates a slot `old` with a value `new`. As in columns, minimum and maximum skip NaN, for which alone
# `x != x` is true.
UPDATES = {
    Operation.ROWS: "{old} + 1",
    Operation.COUNT: "{old} if {new} is None else {old} + 1",
    Operation.SUM: "{old} if {new} is None else {new} if {old} is None else {old} + {new}",
    Operation.MIN: "{old} if {new} is None or ({old} is not None and not ({new} < {old} or {old} != {old})) else {new}",
    Operation.MAX: "{old} if {new} is None or ({old} is not None and not ({new} > {old} or {old} != {old})) else {new}",
    Operation.MIN_BY: "{old} if {new} is None or ({old} is not None and not {new}[0] < {old}[0]) else {new}",
    Operation.MAX_BY: "{old} if {new} is None or ({old} is not None and not {new}[0] > {old}[0]) else {new}",
    Operation.APPROX_DISTINCT: "{old} if {new} is None else with_value({old}, {new})",
    Operation.APPROX_QUANTILE: "{old} if {new} is None else with_number({old}, {new})",
    Operation.FIRST: "{new} if {old} is None else {old}",
    Operation.LAST: "{old} if {new} is None else {new}",
}

_MERGES = {
    **UPDATES,
    Operation.ROWS: "{old} + {new}",
    Operation.COUNT: "{old} + {new}",
    Operation.DISTINCT: "union({old}, {new})",
    Operation.QUANTILE: "inserted_all({old}, {new})",
    Operation.COLLECT: "{old} + {new}",
    Operation.APPROX_DISTINCT: "union_of_values({old}, {new})",
    Operation.APPROX_QUANTILE: "union_of_numbers({old}, {new})",
}
"""The source that merges a slot `old` with the slot `new` of another state."""


def merging(aggregation: Aggregation) -> Callable[[State, State], State]:
    """Return the function `(state, state) -> state` that merges two states of an aggregation, as of two sessions.

    The first state is that of the earlier session: `first()` is taken from it, `last()` from the other state, and
    `collect()` has its values first. The initial state changes nothing.

    Examples
    --------
    >>> from kstreams.expressions import col, rows
    >>> merging(aggregation({"flights": rows(), "most": col("delay").max()}))((2, 5), (1, 9))
    (3, 9)
    """
    if aggregation.is_count:
        return lambda first, other: first + other
    body = Body(("one", "other"), Schema())
    body.names |= {"union": union, "inserted_all": inserted_all, **FUNCTIONS}
    size = range(len(aggregation.slots))
    olds = [f"a{index}" for index in size]
    news = [f"b{index}" for index in size]
    body.lines += [f"{', '.join(olds)}, = one", f"{', '.join(news)}, = other"]
    slots = zip(aggregation.slots, olds, news, strict=True)
    texts = [_MERGES[slot.operation].format(old=old, new=new) for slot, old, new in slots]
    return body.function("merge", ("one", "other"), f"({', '.join(f'({text})' for text in texts)},)")
