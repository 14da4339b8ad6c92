"""Operators that change headers. Later operators see the new headers, as if a processor had forwarded a new record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kstreams.expressions.headers import header_bytes
from kstreams.processor.context.current_record import CurrentRecord
from kstreams.processor.context.operator_context import ClosureOperator, OperatorContext
from kstreams.processor.context.record_functions import OfRecord, RecordFunction
from kstreams.processor.operators.stateless import short_repr
from kstreams.processor.topology.operator import Forward
from kstreams.record import Headers


def headers_of(result: object) -> Headers:
    """Return a function's result, pairs or a mapping, as headers. Raise a TypeError if it is neither.

    Examples
    --------
    >>> headers_of([("trace", "7"), ("tries", 2)]), headers_of({"trace": None})
    ((('trace', b'7'), ('tries', b'2')), (('trace', None),))
    """
    pairs = result.items() if isinstance(result, Mapping) else result
    if isinstance(pairs, str | bytes) or not hasattr(pairs, "__iter__"):
        raise TypeError(f"the function returned {short_repr(result)}: return the headers, as [(name, value), ...]")
    return tuple(map(_header, pairs))


def _header(pair: object) -> tuple[str, bytes | None]:
    if not isinstance(pair, tuple | list) or len(pair) != 2 or not isinstance(pair[0], str):
        raise TypeError(
            f"the function returned the header {short_repr(pair)}: a header is a pair of a name and a value"
        )
    name, value = pair
    return name, header_bytes(value)


@dataclass(frozen=True, slots=True)
class WithoutHeaders:
    """Removes the headers of some names.

    Examples
    --------
    >>> WithoutHeaders(frozenset({"a"}))((("a", b"1"), ("b", b"2")))
    (('b', b'2'),)
    """

    names: frozenset[str]

    def __call__(self, headers: Headers) -> Headers:
        return tuple(header for header in headers if header[0] not in self.names)


@dataclass(frozen=True, slots=True)
class MapHeadersOperator(ClosureOperator):
    """Replaces the headers of each record by the result of `function(headers)`, or of an `OfRecord`."""

    function: Callable[..., Any]

    @classmethod
    def of(cls, function: Callable[..., Any]) -> MapHeadersOperator:
        """Return the operator of a function of headers, or of the whole record."""
        return cls(function if isinstance(function, OfRecord) else _OfHeaders(function))

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        function = self.function
        current = context.current

        def process(key: object, value: object, timestamp: int) -> None:
            new_headers = headers_of(function(key, value, timestamp))
            current.forward_with(new_headers, forward, key, value, timestamp)

        return process


@dataclass(frozen=True, slots=True)
class _OfHeaders(RecordFunction):
    """A function that takes only the headers of a record."""

    function: Callable[[Headers], Any]

    def bind(self, current: CurrentRecord) -> Callable[..., Any]:
        function = self.function
        return lambda key, value, timestamp: function(current.headers)


@dataclass(frozen=True, slots=True)
class WithHeadersOperator(ClosureOperator):
    """Sets headers of each record; earlier headers of the same names are removed.

    Parameters
    ----------
    names : tuple of str
    values : tuple of callable
        `(key, value, timestamp) -> value of the header`, one for each name.
    """

    names: tuple[str, ...]
    values: tuple[Callable[..., Any], ...]

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        remaining = WithoutHeaders(frozenset(self.names))
        current = context.current
        functions = tuple(zip(self.names, self.values, strict=True))

        def process(key: object, value: object, timestamp: int) -> None:
            added = [(name, header_bytes(value_of(key, value, timestamp))) for name, value_of in functions]
            current.forward_with((*remaining(current.headers), *added), forward, key, value, timestamp)

        return process
