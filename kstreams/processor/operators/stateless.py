"""Operators without state: most are one statement in the compiled closure of a chain.

A function takes what its `Takes` says: values, keys and values, or (expressions) the timestamp as well.
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
    """What a function is called with; the names are in the order of the arguments."""

    VALUE = ("value",)
    KEY_VALUE = ("key", "value")
    RECORD = ("key", "value", "timestamp")

    @property
    def arguments(self) -> str:
        """As they are written in a call."""
        return ", ".join(self.value)


@dataclass(frozen=True, slots=True)
class FilterOperator(StatementOperator):
    """Forwards the records for which the predicate holds, or for which it does not."""

    function: Callable[..., Any]
    negate: bool = False
    takes: Takes = Takes.KEY_VALUE

    def statement(self) -> Statement:
        refuses = "" if self.negate else "not "
        text = f"if {refuses}{{function}}({self.takes.arguments}): return"
        return Statement(text, {"function": self.function})


@dataclass(frozen=True, slots=True)
class MapValuesOperator(StatementOperator):
    """A new value for each record."""

    function: Callable[..., Any]
    takes: Takes = Takes.VALUE

    def statement(self) -> Statement:
        return Statement(f"value = {{function}}({self.takes.arguments})", {"function": self.function})


@dataclass(frozen=True, slots=True)
class FlatMapValuesOperator(ClosureOperator):
    """Any number of new values for each record."""

    function: Callable[..., Any]
    takes: Takes = Takes.VALUE
    gave_text: Callable[[], None] = no_warning
    """Called when the first result is a text, of which each letter is forwarded."""

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        return _VALUE_FLAT_MAPPERS[self.takes](self.function, forward, self.gave_text)


def _flat_map_value(mapper: Callable[..., Any], forward: Forward, gave_text: Callable[[], None]) -> Forward:
    function = mapper

    def know() -> None:
        nonlocal function
        function = mapper

    function = first_looked_at(mapper, gave_text, know)

    def process(key: object, value: object, timestamp: int) -> None:
        for new in several(function(value), "values"):
            forward(key, new, timestamp)

    return process


def _flat_map_key_value(mapper: Callable[..., Any], forward: Forward, gave_text: Callable[[], None]) -> Forward:
    function = mapper

    def know() -> None:
        nonlocal function
        function = mapper

    function = first_looked_at(mapper, gave_text, know)

    def process(key: object, value: object, timestamp: int) -> None:
        for new in several(function(key, value), "values"):
            forward(key, new, timestamp)

    return process


def _flat_map_record(mapper: Callable[..., Any], forward: Forward, gave_text: Callable[[], None]) -> Forward:
    function = mapper

    def know() -> None:
        nonlocal function
        function = mapper

    function = first_looked_at(mapper, gave_text, know)

    def process(key: object, value: object, timestamp: int) -> None:
        for new in several(function(key, value, timestamp), "values"):
            forward(key, new, timestamp)

    return process


def pair_of(result: object) -> tuple[object, object]:
    """The key and value that a function gave; raises TypeError for what is no pair.

    Examples
    --------
    >>> pair_of(["k", "v"])
    ('k', 'v')
    """
    if isinstance(result, tuple | list) and len(result) == 2:
        key, value = result
        return key, value
    raise TypeError(f"the function returned {shortly(result)}: return a pair, as (key, value)")


def several(results: object, kind: str) -> Any:
    """What a function gave to be forwarded one by one; raises TypeError for what cannot be.

    Examples
    --------
    >>> several(None, "values")
    Traceback (most recent call last):
    TypeError: the function returned None: return a list of values, [] for none
    """
    if hasattr(results, "__iter__"):
        return results
    raise TypeError(f"the function returned {shortly(results)}: return a list of {kind}, [] for none")


def shortly(result: object) -> str:
    """A result as errors show it."""
    text = repr(result)
    return text if len(text) <= 60 else f"{text[:57]}..."


def first_looked_at(
    function: Callable[..., Any], gave_text: Callable[[], None], know: Callable[[], None]
) -> Callable[..., Any]:
    """Stands for a function in its first call; `know` then puts the function itself in its place, which costs less."""

    def first(*arguments: object) -> Any:
        know()
        result = function(*arguments)
        if isinstance(result, str | bytes):
            gave_text()
        return result

    return first


_VALUE_FLAT_MAPPERS = {
    Takes.VALUE: _flat_map_value,
    Takes.KEY_VALUE: _flat_map_key_value,
    Takes.RECORD: _flat_map_record,
}


@dataclass(frozen=True, slots=True)
class SelectKeyOperator(StatementOperator):
    """A new key for each record."""

    function: Callable[..., Any]
    takes: Takes = Takes.KEY_VALUE

    def statement(self) -> Statement:
        return Statement(f"key = {{function}}({self.takes.arguments})", {"function": self.function})


@dataclass(frozen=True, slots=True)
class MapOperator(StatementOperator):
    """A new key and value for each record."""

    function: Callable[..., tuple[Any, Any]]
    takes: Takes = Takes.KEY_VALUE

    def statement(self) -> Statement:
        text = (
            f"pair = {{function}}({self.takes.arguments})\n"
            "if pair.__class__ is not tuple or len(pair) != 2: pair = {pair_of}(pair)\n"
            "key, value = pair"
        )
        return Statement(text, {"function": self.function, "pair_of": pair_of})


@dataclass(frozen=True, slots=True)
class MapRecordOperator(StatementOperator):
    """A new key and value for each record, by two expressions."""

    key: Callable[[Any, Any, int], Any]
    value: Callable[[Any, Any, int], Any]

    def statement(self) -> Statement:
        text = "key, value = {key}(key, value, timestamp), {value}(key, value, timestamp)"
        return Statement(text, {"key": self.key, "value": self.value})


@dataclass(frozen=True, slots=True)
class FlatMapOperator(ClosureOperator):
    """Any number of new keys and values for each record."""

    function: Callable[..., Any]
    takes: Takes = Takes.KEY_VALUE

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        return _FLAT_MAPPERS[self.takes](self.function, forward)


def _flat_map(function: Callable[[Any, Any], Any], forward: Forward) -> Forward:
    def process(key: object, value: object, timestamp: int) -> None:
        for pair in several(function(key, value), "(key, value) pairs"):
            new_key, new_value = pair if pair.__class__ is tuple and len(pair) == 2 else pair_of(pair)
            forward(new_key, new_value, timestamp)

    return process


def _flat_map_records(function: Callable[[Any, Any, int], Any], forward: Forward) -> Forward:
    def process(key: object, value: object, timestamp: int) -> None:
        for pair in several(function(key, value, timestamp), "(key, value) pairs"):
            forward(*pair_of(pair), timestamp)

    return process


_FLAT_MAPPERS: dict[Takes, Callable[[Callable[..., Any], Forward], Forward]] = {
    Takes.KEY_VALUE: _flat_map,
    Takes.RECORD: _flat_map_records,
}


@dataclass(frozen=True, slots=True)
class PeekOperator(StatementOperator):
    """Shows each record to a function and forwards it."""

    function: Callable[..., Any]
    takes: Takes = Takes.KEY_VALUE

    def statement(self) -> Statement:
        return Statement(f"{{function}}({self.takes.arguments})", {"function": self.function})


@dataclass(frozen=True, slots=True)
class ForeachOperator(StatementOperator):
    """Gives each record to a function; nothing comes out."""

    function: Callable[..., Any]
    takes: Takes = Takes.KEY_VALUE

    def statement(self) -> Statement:
        return Statement(f"{{function}}({self.takes.arguments})", {"function": self.function})


@dataclass(frozen=True, slots=True)
class PrintOperator(ClosureOperator):
    """Prints each record as `[label]: key, value`, to standard output unless a file or its path is given.

    `mapper(key, value)` gives what is printed after the label.
    """

    label: str
    mapper: Callable[[Any, Any], Any] | None = None
    file: str | Path | TextIO | None = None

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        label = self.label
        file = self._opened(context)
        mapper = self.mapper or (lambda key, value: f"{key}, {value}")

        def process(key: object, value: object, timestamp: int) -> None:
            (file or sys.stdout).write(f"[{label}]: {mapper(key, value)}\n")

        return process

    def _opened(self, context: OperatorContext) -> TextIO | None:
        if not isinstance(self.file, str | Path):
            return self.file
        # By lines: several tasks write the same file.
        opened = open(self.file, "a", encoding="utf-8", buffering=1)  # noqa: SIM115  (closed with the task)
        context.at_close(opened.close)
        return opened


@dataclass(frozen=True, slots=True)
class PassOperator(StatementOperator):
    """Forwards everything: where streams merge, and where a branch leaves a split."""

    def statement(self) -> Statement:
        return Statement("", {})


@dataclass(frozen=True, slots=True)
class DropNullKeysOperator(StatementOperator):
    """Stands before a repartition topic: a record without a key has no place in it."""

    def statement(self) -> Statement:
        return Statement("if key is None: return {dropped}('null key')", {})


@dataclass(frozen=True, slots=True)
class SplitOperator(ClosureOperator):
    """Forwards each record to the child of the first predicate that holds.

    Parameters
    ----------
    predicates : tuple of callable
        All called alike, as `takes` says.
    children : tuple of str
        Names of the branches' nodes, one more than predicates when there is a default branch.
    """

    predicates: tuple[Callable[..., Any], ...]
    children: tuple[str, ...]
    takes: Takes = Takes.KEY_VALUE

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        branches = [context.children[child] for child in self.children]
        choices = tuple(zip(self.predicates, branches, strict=False))
        default = branches[len(choices)] if len(branches) > len(choices) else _nowhere
        return _SPLITS[self.takes](choices, default)


Choices: TypeAlias = tuple[tuple[Callable[..., Any], Forward], ...]


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


def _nowhere(key: object, value: object, timestamp: int) -> None:
    return None


_SPLITS = {Takes.KEY_VALUE: _split, Takes.RECORD: _split_records}
