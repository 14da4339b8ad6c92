"""`Aggregation`: named expressions over many records, with a small state that each record updates.

The state is a flat tuple with one slot per distinct aggregation (`mean` is sum and count), so that the states of two
batches can be merged. The store and its changelog hold the state; the value of a row is computed from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from kstreams.errors import SerdeError, TopologyError
from kstreams.expressions.expression import Expr
from kstreams.expressions.functions import union, with_member
from kstreams.expressions.generated import struct_type
from kstreams.expressions.operations import Operation
from kstreams.expressions.python import Body
from kstreams.expressions.types import PARTIAL, Schema, takes_null, type_of
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
        if `reads_current_record`; `result(state) -> value`.
    state_type, value_type : type
        Types of the state and of the result.
    source : tuple
        The arguments of `aggregation`, for pickling.
    required : tuple of str
        The fields that may be null, but that `value_type` declares without None: `add` raises an error if one is null.
    """

    slots: tuple[Expr, ...]
    initial: Callable[[], State]
    add: Callable[..., State]
    result: Callable[[State], Any]
    state_type: Any
    value_type: Any
    source: tuple[Any, ...] = ()
    required: tuple[str, ...] = ()

    def __reduce__(self) -> Any:
        return (_counting if not self.source else _recreated, self.source)

    @property
    def is_count(self) -> bool:
        """True if the state is the number of records, as an int."""
        return not self.source

    @property
    def reads_current_record(self) -> bool:
        """True if it reads the headers or the position of the input records."""
        return any(slot.reads_current_record for slot in self.slots)

    @property
    def divides(self) -> bool:
        """True if a required field may be null without null inputs, by a division by anything but a record count."""
        nodes = (node for name in self.required for node in self.source[0][name].walk())
        divisions = (node for node in nodes if node.operation in PARTIAL)
        return any(node.inputs[1].operation not in (Operation.COUNT, Operation.ROWS) for node in divisions)


def aggregation(
    expressions: Mapping[str, Expr], *, key: object = None, value: object = None, result: object = None
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
        _check_aggregates(name, expr)
    slots = _distinct_slots(expressions)
    are_known = all(kind.kind is not Any for kind in kinds.values())
    generated = struct_type(tuple((name, kind.annotation) for name, kind in kinds.items())) if are_known else dict
    value_type = result or generated
    start = tuple(_EMPTY.get(slot.operation) for slot in slots)
    required = tuple(name for name, kind in kinds.items() if kind.nullable and not takes_null(value_type, name))
    return Aggregation(
        slots,
        lambda: start,
        _add_function(slots, schema, _Required(value_type, {name: expressions[name] for name in required})),
        _result_function(expressions, slots, value_type),
        tuple[tuple(_slot_type(slot, schema) for slot in slots)],  # type: ignore[misc]
        value_type,
        (dict(expressions), key, value, result),
        required,
    )


def counting() -> Aggregation:
    """Return the aggregation of `count()`: the number of records, with an `int` as state.

    Examples
    --------
    >>> counting().add(41, "key", "value", 0)
    42
    """
    return _COUNTING


def _recreated(expressions: Mapping[str, Expr], key: object, value: object, result: object) -> Aggregation:
    return aggregation(expressions, key=key, value=value, result=result)


def _counting() -> Aggregation:
    return _COUNTING


_COUNTING = Aggregation((rows(),), lambda: 0, lambda n, *_: n + 1, lambda n: n, int, int)
_EMPTY = {Operation.ROWS: 0, Operation.COUNT: 0, Operation.DISTINCT: ()}


def _check_aggregates(name: str, expr: Expr) -> None:
    for node in expr.inputs if not expr.operation.is_aggregation else ():
        if node.operation is not Operation.LITERAL:
            _check_aggregates(name, node)
    inside = [node for part in expr.inputs for node in part.walk()] if expr.operation.is_aggregation else []
    if expr.operation.is_leaf or (not expr.is_aggregation and expr.operation is not Operation.LITERAL):
        raise TopologyError(
            f"{name}={expr!r} is not one value of many records: end it with .sum(), .last() or the like"
        )
    if any(node.operation.is_aggregation for node in inside):
        raise TopologyError(f"{name}={expr!r} aggregates an aggregation: aggregate a value of the records")


def _slot_type(slot: Expr, schema: Schema) -> Any:
    if slot.operation is Operation.DISTINCT:
        return tuple[type_of(slot.inputs[0], schema).kind, ...]  # type: ignore[misc]
    return type_of(slot, schema).annotation


def _distinct_slots(expressions: Mapping[str, Expr]) -> tuple[Expr, ...]:
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


def _add_function(slots: tuple[Expr, ...], schema: Schema, required: _Required) -> Callable[..., State]:
    reads_record = any(slot.reads_current_record for slot in slots)
    arguments = ("state", "key", "value", "timestamp", *(("record",) if reads_record else ()))
    body = Body(arguments, schema)
    body.names["with_member"] = with_member
    olds = [f"s{index}" for index in range(len(slots))]
    body.lines.append(f"{', '.join(olds)}, = state")
    news = []
    for slot, old in zip(slots, olds, strict=True):
        new = "".join(body.add(node) for node in slot.inputs)
        news.append(body.assign(_UPDATES[slot.operation].format(old=old, new=new)))
    _define_slots(body, slots, news)
    required.add_to(body)
    return body.function("add", arguments, f"({', '.join(news)},)")


def _result_function(expressions: Mapping[str, Expr], slots: tuple[Expr, ...], make: object) -> Callable[[State], Any]:
    body = Body(("state",), Schema())
    names = [f"s{index}" for index in range(len(slots))]
    body.lines.append(f"{', '.join(names)}, = state")
    _define_slots(body, slots, names)
    fields = ", ".join(f"{name}={body.add(expr)}" for name, expr in expressions.items())
    return body.function("result", ("state",), f"{body.constant(make)}({fields})")


def _define_slots(body: Body, slots: tuple[Expr, ...], names: Sequence[str]) -> None:
    """Define the names that hold the slots."""
    for slot, name in zip(slots, names, strict=True):
        body.define(slot, f"len({name})" if slot.operation is Operation.DISTINCT else name)


# The source that updates a slot `old` with a value `new`. As in columns, minimum and maximum skip NaN, for which alone
# `x != x` is true.
_UPDATES = {
    Operation.ROWS: "{old} + 1",
    Operation.COUNT: "{old} if {new} is None else {old} + 1",
    Operation.SUM: "{old} if {new} is None else {new} if {old} is None else {old} + {new}",
    Operation.MIN: "{old} if {new} is None or ({old} is not None and not ({new} < {old} or {old} != {old})) else {new}",
    Operation.MAX: "{old} if {new} is None or ({old} is not None and not ({new} > {old} or {old} != {old})) else {new}",
    Operation.DISTINCT: "{old} if {new} is None else with_member({old}, {new})",
    Operation.FIRST: "{new} if {old} is None else {old}",
    Operation.LAST: "{old} if {new} is None else {new}",
}

_MERGES = {
    **_UPDATES,
    Operation.ROWS: "{old} + {new}",
    Operation.COUNT: "{old} + {new}",
    Operation.DISTINCT: "union({old}, {new})",
}
"""The source that merges a slot `old` with the slot `new` of another state."""


def merging(aggregation: Aggregation) -> Callable[[State, State], State]:
    """Return the function `(state, state) -> state` that merges two states of an aggregation, as of two sessions.

    The first state is that of the earlier session: `first()` is taken from it, and `last()` from the other state. The
    initial state changes nothing.

    Examples
    --------
    >>> from kstreams.expressions import col, rows
    >>> merging(aggregation({"flights": rows(), "most": col("delay").max()}))((2, 5), (1, 9))
    (3, 9)
    """
    if aggregation.is_count:
        return lambda first, other: first + other
    body = Body(("one", "other"), Schema())
    body.names["union"] = union
    size = range(len(aggregation.slots))
    olds = [f"a{index}" for index in size]
    news = [f"b{index}" for index in size]
    body.lines += [f"{', '.join(olds)}, = one", f"{', '.join(news)}, = other"]
    slots = zip(aggregation.slots, olds, news, strict=True)
    texts = [_MERGES[slot.operation].format(old=old, new=new) for slot, old, new in slots]
    return body.function("merge", ("one", "other"), f"({', '.join(f'({text})' for text in texts)},)")
