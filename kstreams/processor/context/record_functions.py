"""`RecordFunction`: a function that reads headers or metadata of a record, bound to a task.

Operators pass on key, value and timestamp of a record. Its headers, and the place of the input record, are in the
`CurrentRecord` of the task. A function that needs them takes the `CurrentRecord` as its last argument, which is bound
once, when the operator is bound.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from types import FunctionType
from typing import Any, TypeVar

from kstreams.processor.context.current_record import CurrentRecord
from kstreams.processor.topology.operator import Operator
from kstreams.record import RecordWithMetadata

T = TypeVar("T")


class RecordFunction(ABC):
    """A function in an operator that needs the current record."""

    __slots__ = ()

    @abstractmethod
    def bind(self, current: CurrentRecord) -> Callable[..., Any]:
        """Return the function for one task, with the parameters that other functions of its operator have."""

    def __call__(self, *arguments: Any) -> object:
        """Call the function with the current record as the last argument."""
        *other_arguments, current = arguments
        return self.bind(current)(*other_arguments)


@dataclass(frozen=True, slots=True)
class ReadingCurrent(RecordFunction):
    """A function of kstreams whose last argument is the `CurrentRecord`, such as the function of an expression."""

    function: Callable[..., Any]

    def bind(self, current: CurrentRecord) -> Callable[..., Any]:
        of: Any = self.function
        # The current record becomes a default, which costs nothing in a call.
        return FunctionType(of.__code__, of.__globals__, of.__name__, (current,), of.__closure__)


@dataclass(frozen=True, slots=True)
class OfRecord(RecordFunction):
    """A function of the user that takes the whole record, in an operator with `with_record=True`.

    Examples
    --------
    >>> OfRecord(lambda record: record.value).function.__name__
    '<lambda>'
    """

    function: Callable[[RecordWithMetadata], Any]

    def bind(self, current: CurrentRecord) -> Callable[..., Any]:
        function = self.function

        def call(key: object, value: object, timestamp: int) -> Any:
            return function(record_of(current, key, value, timestamp))

        return call


def record_of(current: CurrentRecord, key: object, value: object, timestamp: int) -> RecordWithMetadata[object, object]:
    """Return the whole record, for a function of the user."""
    return RecordWithMetadata(
        key=key,
        value=value,
        timestamp=timestamp,
        headers=current.headers,
        topic=current.topic,
        partition=current.partition,
        offset=current.offset,
    )


def with_current(part: T, current: CurrentRecord) -> T:
    """Return an operator, or a part of one, with its record functions bound to a task.

    An operator within an operator binds its own.
    """
    if not is_dataclass(part) or isinstance(part, type):
        return part
    values = {field.name: getattr(part, field.name) for field in fields(part)}
    bound = {name: _bound(value, current) for name, value in values.items()}
    changed = {name: value for name, value in bound.items() if value is not values[name]}
    return replace(part, **changed) if changed else part


def _bound(value: object, current: CurrentRecord) -> object:
    if isinstance(value, RecordFunction):
        return value.bind(current)
    if isinstance(value, tuple) and any(isinstance(element, RecordFunction) for element in value):
        return tuple(_bound(element, current) for element in value)
    return value if isinstance(value, Operator) else with_current(value, current)
