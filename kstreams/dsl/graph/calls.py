"""Calls of functions of operators: async functions, which operators refuse them, and calls that are retried."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypedDict

from kstreams.dsl.graph.node import Node
from kstreams.dsl.naming import check_topic
from kstreams.errors import TopologyError
from kstreams.expressions import Expr
from kstreams.kernel.durations import Duration, to_ms
from kstreams.kernel.retry import Retry
from kstreams.kernel.source_line import declared_at
from kstreams.processor.context.delayed_results import Order


class RetryOptions(TypedDict, total=False):
    """Settings for calls that fail.

    retry : Retry
        How often and when a failed call is repeated; not at all by default.
    park : str
        The topic for records whose last call has failed; by default the processing exception handler decides.
    """

    retry: Retry | None
    park: str | None


class NamedRetryOptions(RetryOptions, total=False):
    """`RetryOptions`, and the name of the operator."""

    name: str | None


class CallOptions(RetryOptions, total=False):
    """Settings for the calls of an async function, and for calls that fail.

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
class Retries:
    """How failed calls are repeated, and the topic for records whose last call has failed."""

    retry: Retry
    park: str | None = None


@dataclass(frozen=True, slots=True)
class Calls:
    """Settings for the calls of a function that is async or retried; None leaves a setting to the configuration.

    A node whose function may be async has a field `calls`.
    """

    concurrency: int | None = None
    timeout_ms: int | None = None
    ordered: Order = True
    is_async: bool = True
    retries: Retries | None = None


def retries_of(retry: Retry | None, park: str | None) -> Retries | None:
    """Return the settings for failed calls; None if they are not repeated.

    Raises
    ------
    TopologyError
        If there is a parking topic, but no `retry`.
    """
    if park is not None:
        check_topic(park, "park=")
    if retry is not None:
        return Retries(retry, park)
    if park is not None:
        raise TopologyError(
            f"park={park!r} at {declared_at()} needs retry=, since a record is parked after its last attempt: "
            "retry=ks.Retry(attempts=1) parks it after the first"
        )
    return None


def calls_of(
    function: object,
    *,
    concurrency: int | None = None,
    timeout: Duration | None = None,
    ordered: Order = True,
    retry: Retry | None = None,
    park: str | None = None,
    **unknown: object,
) -> Calls | None:
    """Return the call settings of a function that is async or retried; None for any other function.

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
    (Calls(concurrency=None, timeout_ms=500, ordered=True, is_async=True, retries=None), None)
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
    called = replace(options, is_async=is_async(function) or options != Calls())
    return _retried(called, function, retries_of(retry, park))


def _retried(calls: Calls, function: object, retries: Retries | None) -> Calls | None:
    """Return the settings with those of retries; None for a function that is neither async nor retried."""
    if retries is None:
        return calls if calls.is_async else None
    if isinstance(function, Expr | tuple):
        raise TopologyError(f"{function!r} is computed, not called: retry and park are for functions")
    return replace(calls, retries=retries)


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
