"""Async functions in the graph: what counts as one, how it is to be called, and where none may stand."""

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
    """How an async function is called.

    concurrency : int
        Most calls of one task at once; `async.concurrency` by default.
    timeout : timedelta or int (ms)
        How long a call may take before it fails; `async.timeout.ms` by default.
    ordered : bool or "by_key"
        Whether results go on in the order of their records (the default), in that of the records of each key, or as
        they come (False).
    """

    concurrency: int
    timeout: Duration
    ordered: Order


class NamedCallOptions(CallOptions, total=False):
    """The same, and the name of the operator."""

    name: str | None


@dataclass(frozen=True, slots=True)
class Calls:
    """How an async function is called; None: as the application's settings say.

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
    """How a function is called if it is async: declared by `async def`, or called with one of these settings.

    Raises
    ------
    TopologyError
        When a setting makes no sense, or is given for an expression.
    TypeError
        When a keyword is not known: they come here from the operator's own call.

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
    """Whether a function, or an object that is called as one, is declared by `async def`."""
    called = function if inspect.isroutine(function) else type(function).__call__
    return any(check(candidate) for check in _CHECKS for candidate in (function, called))


_CHECKS: tuple[Callable[[Any], bool], ...] = (inspect.iscoroutinefunction, inspect.isasyncgenfunction)


def refuse_async(node: Node) -> None:
    """Raise a TopologyError when an operator that calls its functions at once was given an async one."""
    if getattr(node, "calls", None) is not None:
        return
    if any(is_async(argument) or is_async(getattr(argument, "process", None)) for argument in _given(node)):
        raise TopologyError(
            f"{node} cannot wait for an async function. One may stand in map, map_values, filter, filter_not, "
            "flat_map, flat_map_values, select_key, group_by, peek and foreach of a stream: call it there, and go on "
            "with its result."
        )


def _given(part: Any) -> Iterator[Any]:
    """The functions among the arguments of an operator, and of parts such as its aggregation."""
    for field in fields(part):
        value = getattr(part, field.name)
        for item in value if isinstance(value, tuple) else (value,):
            if is_dataclass(item) and not isinstance(item, type | Expr):
                yield from _given(item)
            elif callable(item):
                yield item
