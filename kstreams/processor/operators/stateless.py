"""Stateless operators. Most of them are one statement in the compiled closure of a chain.

The `Takes` of an operator says whether its function takes the value, key and value, or (expressions) the timestamp too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, TextIO, TypeAlias

from kstreams.processor.context.chain import Statement, StatementOperator
from kstreams.processor.context.operator_context import ClosureOperator, OperatorContext
from kstreams.processor.operators.first_warning import no_warning
from kstreams.processor.topology.operator import Forward


class Takes(Enum):
    """The arguments of a user's function, in their order."""

    VALUE = ("value",)
    KEY_VALUE = ("key", "value")
    RECORD = ("key", "value", "timestamp")

    @property
    def arguments(self) -> str:
        """The arguments as the text of a call."""
        return ", ".join(self.value)


@dataclass(frozen=True, slots=True)
class FilterOperator(StatementOperator):
    """Forwards the records for which a predicate is true, or with `negate` those for which it is false."""

    function: Callable[..., Any]
    negate: bool = False
    takes: Takes = Takes.KEY_VALUE

    def statement(self) -> Statement:
        negation = "" if self.negate else "not "
        text = f"if {negation}{{function}}({self.takes.arguments}): return"
        return Statement(text, {"function": self.function})


@dataclass(frozen=True, slots=True)
class MapValuesOperator(StatementOperator):
    """Replaces the value of each record by a function's result."""

    function: Callable[..., Any]
    takes: Takes = Takes.VALUE

    def statement(self) -> Statement:
        return Statement(f"value = {{function}}({self.takes.arguments})", {"function": self.function})


def iterable_result(result: object, items: str) -> Any:
    """Return a function's result if it is iterable. Raise a TypeError otherwise, which names the `items` to return.

    Examples
    --------
    >>> iterable_result(None, "values")
    Traceback (most recent call last):
    TypeError: the function returned None: return a list of values, [] for none
    """
    if hasattr(result, "__iter__"):
        return result
    raise TypeError(f"the function returned {short_repr(result)}: return a list of {items}, [] for none")


def items_or_none(result: object, items: str) -> Any:
    """Return the items of the list that an expression returns: none for a null.

    Examples
    --------
    >>> items_or_none(None, "values"), items_or_none([1], "values")
    ((), [1])
    """
    return () if result is None else iterable_result(result, items)


def short_repr(result: object) -> str:
    """Return the text of a result in errors."""
    text = repr(result)
    return text if len(text) <= 60 else f"{text[:57]}..."


@dataclass(frozen=True, slots=True)
class FlatMapValuesOperator(ClosureOperator):
    """Forwards any number of new values for each record."""

    function: Callable[..., Any]
    takes: Takes = Takes.VALUE
    warn_of_text: Callable[[], None] = no_warning
    """Called if the first result is a text: each of its letters is forwarded, which is probably a mistake."""
    items: Callable[[object, str], Any] = iterable_result
    """Returns the values in a result."""

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        return _flat_map_values(self.function, self.takes, forward, self.warn_of_text, self.items)


def _flat_map_values(
    mapper: Callable[..., Any],
    takes: Takes,
    forward: Forward,
    warn_of_text: Callable[[], None],
    items: Callable[[object, str], Any],
) -> Forward:
    function = mapper

    def use_mapper() -> None:
        nonlocal function
        function = mapper

    function = check_first_result(mapper, warn_of_text, use_mapper)

    def process_value(key: object, value: object, timestamp: int) -> None:
        for new_value in items(function(value), "values"):
            forward(key, new_value, timestamp)

    def process_key_value(key: object, value: object, timestamp: int) -> None:
        for new_value in items(function(key, value), "values"):
            forward(key, new_value, timestamp)

    def process_record(key: object, value: object, timestamp: int) -> None:
        for new_value in items(function(key, value, timestamp), "values"):
            forward(key, new_value, timestamp)

    return {Takes.VALUE: process_value, Takes.KEY_VALUE: process_key_value, Takes.RECORD: process_record}[takes]


def pair_result(result: object) -> tuple[object, object]:
    """Return a function's result as (key, value). Raise a TypeError if it is not a pair.

    Examples
    --------
    >>> pair_result(["k", "v"])
    ('k', 'v')
    """
    if isinstance(result, tuple | list) and len(result) == 2:
        key, value = result
        return key, value
    raise TypeError(f"the function returned {short_repr(result)}: return a pair, as (key, value)")


def check_first_result(
    function: Callable[..., Any], warn_of_text: Callable[[], None], use_function: Callable[[], None]
) -> Callable[..., Any]:
    """Return a function for the first call, which warns if the result is a text.

    It calls `use_function`, with which the caller replaces it by `function`: later calls then cost nothing extra.
    """

    def call_first(*arguments: object) -> Any:
        use_function()
        result = function(*arguments)
        if isinstance(result, str | bytes):
            warn_of_text()
        return result

    return call_first


@dataclass(frozen=True, slots=True)
class SelectKeyOperator(StatementOperator):
    """Replaces the key of each record by a function's result."""

    function: Callable[..., Any]
    takes: Takes = Takes.KEY_VALUE

    def statement(self) -> Statement:
        return Statement(f"key = {{function}}({self.takes.arguments})", {"function": self.function})


@dataclass(frozen=True, slots=True)
class MapOperator(StatementOperator):
    """Replaces key and value of each record by a function's result."""

    function: Callable[..., tuple[Any, Any]]
    takes: Takes = Takes.KEY_VALUE

    def statement(self) -> Statement:
        text = (
            f"pair = {{function}}({self.takes.arguments})\n"
            "if pair.__class__ is not tuple or len(pair) != 2: pair = {pair_result}(pair)\n"
            "key, value = pair"
        )
        return Statement(text, {"function": self.function, "pair_result": pair_result})


@dataclass(frozen=True, slots=True)
class MapRecordOperator(StatementOperator):
    """Replaces key and value of each record by the results of two expressions."""

    key: Callable[[Any, Any, int], Any]
    value: Callable[[Any, Any, int], Any]

    def statement(self) -> Statement:
        text = "key, value = {key}(key, value, timestamp), {value}(key, value, timestamp)"
        return Statement(text, {"key": self.key, "value": self.value})


@dataclass(frozen=True, slots=True)
class FlatMapOperator(ClosureOperator):
    """Forwards any number of new keys and values for each record."""

    function: Callable[..., Any]
    takes: Takes = Takes.KEY_VALUE

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        return _FLAT_MAPPERS[self.takes](self.function, forward)


def _flat_map(function: Callable[[Any, Any], Any], forward: Forward) -> Forward:
    def process(key: object, value: object, timestamp: int) -> None:
        for pair in iterable_result(function(key, value), "(key, value) pairs"):
            new_key, new_value = pair if pair.__class__ is tuple and len(pair) == 2 else pair_result(pair)
            forward(new_key, new_value, timestamp)

    return process


def _flat_map_records(function: Callable[[Any, Any, int], Any], forward: Forward) -> Forward:
    def process(key: object, value: object, timestamp: int) -> None:
        for pair in iterable_result(function(key, value, timestamp), "(key, value) pairs"):
            new_key, new_value = pair_result(pair)
            forward(new_key, new_value, timestamp)

    return process


_FLAT_MAPPERS: dict[Takes, Callable[[Callable[..., Any], Forward], Forward]] = {
    Takes.KEY_VALUE: _flat_map,
    Takes.RECORD: _flat_map_records,
}


@dataclass(frozen=True, slots=True)
class PeekOperator(StatementOperator):
    """Calls a function with each record, and forwards the record."""

    function: Callable[..., Any]
    takes: Takes = Takes.KEY_VALUE

    def statement(self) -> Statement:
        return Statement(f"{{function}}({self.takes.arguments})", {"function": self.function})


@dataclass(frozen=True, slots=True)
class ForeachOperator(StatementOperator):
    """Calls a function with each record, and forwards nothing."""

    function: Callable[..., Any]
    takes: Takes = Takes.KEY_VALUE

    def statement(self) -> Statement:
        return Statement(f"{{function}}({self.takes.arguments})", {"function": self.function})


@dataclass(frozen=True, slots=True)
class PrintOperator(ClosureOperator):
    """Prints each record as `[label]: key, value`, to a file or else to standard output.

    `mapper(key, value)` returns the text after the label.
    """

    label: str
    mapper: Callable[[Any, Any], Any] | None = None
    file: str | Path | TextIO | None = None

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        label = self.label
        file = self._open_file(context)
        mapper = self.mapper or (lambda key, value: f"{key}, {value}")

        def process(key: object, value: object, timestamp: int) -> None:
            (file or sys.stdout).write(f"[{label}]: {mapper(key, value)}\n")

        return process

    def _open_file(self, context: OperatorContext) -> TextIO | None:
        if not isinstance(self.file, str | Path):
            return self.file
        # It is flushed after each line, because several tasks write to the same file.
        file = open(self.file, "a", encoding="utf-8", buffering=1)  # noqa: SIM115  (closed with the task)
        context.at_close(file.close)
        return file


@dataclass(frozen=True, slots=True)
class PassOperator(StatementOperator):
    """Forwards every record: the node of a merge, and of a branch of a split."""

    def statement(self) -> Statement:
        return Statement("", {})


@dataclass(frozen=True, slots=True)
class DropNullKeysOperator(StatementOperator):
    """Drops records without a key before a repartition topic, which needs the key to choose the partition."""

    def statement(self) -> Statement:
        return Statement("if key is None: return {dropped}('null key')", {})


@dataclass(frozen=True, slots=True)
class SplitOperator(ClosureOperator):
    """Forwards each record to the branch of the first predicate that is true.

    Parameters
    ----------
    predicates : tuple of callable
        All take the same arguments: see `takes`.
    children : tuple of str
        Names of the branches' nodes. If there is a default branch, it is the last child, without a predicate.
    """

    predicates: tuple[Callable[..., Any], ...]
    children: tuple[str, ...]
    takes: Takes = Takes.KEY_VALUE

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        branches = [context.children[child] for child in self.children]
        choices = tuple(zip(self.predicates, branches, strict=False))
        default = branches[len(choices)] if len(branches) > len(choices) else _drop
        return _SPLITS[self.takes](choices, default)


Choices: TypeAlias = tuple[tuple[Callable[..., Any], Forward], ...]
"""Predicates, and the closures of their branches."""


def _split(choices: Choices, default: Forward) -> Forward:
    def process(key: object, value: object, timestamp: int) -> None:
        for predicate, branch in choices:
            if predicate(key, value):
                branch(key, value, timestamp)
                return
        default(key, value, timestamp)

    return process


def _split_records(choices: Choices, default: Forward) -> Forward:
    def process(key: object, value: object, timestamp: int) -> None:
        for predicate, branch in choices:
            if predicate(key, value, timestamp):
                branch(key, value, timestamp)
                return
        default(key, value, timestamp)

    return process


def _drop(key: object, value: object, timestamp: int) -> None:
    return None


_SPLITS = {Takes.KEY_VALUE: _split, Takes.RECORD: _split_records}
