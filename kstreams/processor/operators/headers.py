"""Operators that change headers: what follows sees the new ones, as behind a processor that forwards a new record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kstreams.expressions.headers import header_bytes
from kstreams.processor.context.operator_context import ClosureOperator, OperatorContext
from kstreams.processor.context.record_functions import OfRecord, RecordFunction
from kstreams.processor.operators.stateless import shortly
from kstreams.processor.topology.operator import Forward
from kstreams.record import Headers


def headers_of(result: object) -> Headers:
    """The headers that a function gave: pairs, or a mapping; raises TypeError for what are none.

    Examples
    --------
    >>> headers_of([("trace", "7"), ("tries", 2)]), headers_of({"trace": None})
    ((('trace', b'7'), ('tries', b'2')), (('trace', None),))
    """
    pairs = result.items() if isinstance(result, Mapping) else result
    if isinstance(pairs, str | bytes) or not hasattr(pairs, "__iter__"):
        raise TypeError(f"the function returned {shortly(result)}: return the headers, as [(name, value), ...]")
    return tuple(map(_header, pairs))


def _header(pair: object) -> tuple[str, bytes | None]:
    if not isinstance(pair, tuple | list) or len(pair) != 2 or not isinstance(pair[0], str):
        raise TypeError(f"the function returned the header {shortly(pair)}: a header is a pair of a name and a value")
    name, value = pair
    return name, header_bytes(value)


@dataclass(frozen=True, slots=True)
class WithoutHeaders:
    """The headers but for those of some names.

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
    """New headers for each record: `function(headers)`, or an `OfRecord`."""

    function: Callable[..., Any]

    @classmethod
    def of(cls, function: Callable[..., Any]) -> MapHeadersOperator:
        """That of a function of headers, or of the whole record."""
        return cls(function if isinstance(function, OfRecord) else _OfHeaders(function))

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        function = self.function
        current = context.current

        def process(key: object, value: object, timestamp: int) -> None:
            new = headers_of(function(key, value, timestamp))
            current.forward_with(new, forward, key, value, timestamp)

        return process


@dataclass(frozen=True, slots=True)
class _OfHeaders(RecordFunction):
    """A function of the headers alone."""

    function: Callable[[Headers], Any]

    def bind(self, current: Any) -> Callable[..., Any]:
        function = self.function
        return lambda key, value, timestamp: function(current.headers)


@dataclass(frozen=True, slots=True)
class WithHeadersOperator(ClosureOperator):
    """More headers for each record, in the place of those of the same names.

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
            new = [(name, header_bytes(value_of(key, value, timestamp))) for name, value_of in functions]
            current.forward_with((*remaining(current.headers), *new), forward, key, value, timestamp)

        return process
