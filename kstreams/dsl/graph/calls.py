"""Async functions of operators: how they are recognized and called, and which operators refuse them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, TypedDict

from kstreams.dsl.graph.node import Node
from kstreams.errors import TopologyError
from kstreams.expressions import Expr
from kstreams.kernel.durations import Duration, to_ms
from kstreams.processor.context.delayed_results import Order


class CallOptions(TypedDict, total=False):
    """Settings for the calls of an async function.

    concurrency : int
        Maximum number of calls that one task makes at once; `async.concurrency` by default.
    timeout : timedelta or int (ms)
        Time after which a call fails; `async.timeout.ms` by default.
    ordered : bool or "by_key"
        The order in which results are forwarded: the order of all records (True, the default), the order of the
        records of each key ("by_key"), or the order in which calls end (False).
    """

    concurrency: int
    timeout: Duration
    ordered: Order


class NamedCallOptions(CallOptions, total=False):
    """`CallOptions`, and the name of the operator."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Calls:
    """Settings for the calls of an async function; None leaves a setting to the configuration.

    A node whose function may be async has a field `calls`.
    """

    concurrency: int | None = None
    timeout_ms: int | None = None
    ordered: Order = True


def calls_of(
    function: object,
    *,
    concurrency: int | None = None,
    timeout: Duration | None = None,
    ordered: Order = True,
    **unknown: object,
) -> Calls | None:
    """Return the call settings of an async function; None for any other function.

    A function counts as async if it is declared by `async def`, or if the user gives one of these settings.

    Raises
    ------
    TopologyError
        If a setting makes no sense, or is set for an expression.
    TypeError
        If a keyword is unknown: operators pass their keywords on.

    Examples
    --------
    >>> async def score(value: str) -> float: ...
    >>> calls_of(score, timeout=500), calls_of(len)
    (Calls(concurrency=None, timeout_ms=500, ordered=True), None)
    """
    if unknown:
        raise TypeError(f"unexpected keyword {', '.join(unknown)}: help() of the operator names those that it takes")
    if concurrency is not None and concurrency < 1:
        raise TopologyError(f"concurrency={concurrency} leaves no call to make: give 1 or more")
    if ordered not in (True, False, "by_key"):
        raise TopologyError(f'ordered={ordered!r} is no order: give True, False or "by_key"')
    timeout_ms = None if timeout is None else to_ms(timeout)
    if timeout_ms is not None and timeout_ms < 1:
        raise TopologyError(f"timeout={timeout!r} leaves no time for a call: give 1 ms or more")
    options = Calls(concurrency, timeout_ms, ordered)
    if isinstance(function, Expr) and options != Calls():
        raise TopologyError(f"{function!r} is computed, not called: concurrency, timeout and ordered are for functions")
    return options if is_async(function) or options != Calls() else None


def is_async(function: object) -> bool:
    """Return whether a function, or the `__call__` of an object, is declared by `async def`."""
    call = function if inspect.isroutine(function) else type(function).__call__
    return any(check(candidate) for check in _CHECKS for candidate in (function, call))


_CHECKS: tuple[Callable[[Any], bool], ...] = (inspect.iscoroutinefunction, inspect.isasyncgenfunction)


def refuse_async(node: Node) -> None:
    """Raise a TopologyError if an operator that cannot await has an async function."""
    if getattr(node, "calls", None) is not None:
        return
    if any(is_async(argument) or is_async(getattr(argument, "process", None)) for argument in _functions(node)):
        raise TopologyError(
            f"{node} cannot wait for an async function. One may stand in map, map_values, filter, filter_not, "
            "flat_map, flat_map_values, select_key, group_by, peek and foreach of a stream: call it there, and go on "
            "with its result."
        )


def _functions(part: Any) -> Iterator[Any]:
    """Yield the functions among the arguments of an operator and of its parts, such as its aggregation."""
    for field in fields(part):
        value = getattr(part, field.name)
        for item in value if isinstance(value, tuple) else (value,):
            if is_dataclass(item) and not isinstance(item, type | Expr):
                yield from _functions(item)
            elif callable(item):
                yield item
