"""Async functions: a bounded number of calls at once, each result forwarded in the place of its record."""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from operator import attrgetter
from threading import Event
from typing import Any, TypeAlias

from kstreams.processor.context.current_record import CurrentRecord, DelayedRecord
from kstreams.processor.context.delayed_results import DelayedResults, Order
from kstreams.processor.context.operator_context import ClosureOperator, OperatorContext, bind_operator
from kstreams.processor.context.record_functions import OfRecord, record_of
from kstreams.processor.operators.asynchronous import event_loop
from kstreams.processor.operators.stateless import Takes
from kstreams.processor.topology.operator import Forward


@dataclass(frozen=True, slots=True)
class AsyncOperator(ClosureOperator):
    """Does what a plain operator does with the result of a call, once it is there.

    Parameters
    ----------
    plain : operator
        With the async function as its `function`.
    concurrency : int, optional
        Most calls of a task at once; `async.concurrency` by default.
    timeout_ms : int, optional
        How long a call may take; `async.timeout.ms` by default.
    ordered : bool or "by_key"
    """

    plain: object
    concurrency: int | None = None
    timeout_ms: int | None = None
    ordered: Order = True

    @property
    def keeps_order(self) -> bool:
        return self.ordered is not False

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        settings = context.task.application.settings
        most = self.concurrency or settings.async_concurrency
        timeout_ms = settings.async_timeout_ms if self.timeout_ms is None else self.timeout_ms
        calls = AsyncCalls(context, self.plain, forward, _NEXT[self.ordered])
        timeout_s = timeout_ms / 1000 if timeout_ms >= 0 else None
        function, arguments_of = _called(self.plain, context.current)

        def call(key: object, value: object, timestamp: int) -> None:
            calls.release_until(most - 1)
            arguments = arguments_of(key, value, timestamp)
            calls.start(calls.hold(key, value, timestamp), partial(_within, timeout_s, function, arguments))

        context.at_close(calls.cancel)
        return call


@dataclass(slots=True, eq=False)
class Call:
    """A pending call and its record; `ended` is its number in the order in which calls ended."""

    kept: DelayedRecord
    future: Future[object] = field(init=False)
    ended: int | None = None


NextCall: TypeAlias = Callable[[deque[Call]], Call | None]


class AsyncCalls(DelayedResults[Call]):
    """The calls of one step in one task.

    Parameters
    ----------
    context : OperatorContext
    plain : operator
        What becomes of results.
    forward : callable
        Takes what comes out of that.
    next_of : callable
        Which of the pending calls is forwarded next; None while none may be.
    """

    def __init__(self, context: OperatorContext, plain: Any, forward: Forward, next_of: NextCall) -> None:
        super().__init__(context.current)
        context.hold_back(self)
        self._forward = bind_operator(replace(plain, function=self.result), context, forward)
        self._next_of = next_of
        self._one_ended = Event()
        self._turn = count()
        self._current: Future[Any]

    def start(self, kept: DelayedRecord, function: Callable[[], Awaitable[Any]]) -> None:
        """Begin a call."""
        call = Call(kept)
        call.future = event_loop.start(self._run(call, function))
        self.waiting.append(call)

    def release_next(self) -> None:
        """Forward the next record, as soon as its call is done."""
        call = self._next()
        self.waiting.remove(call)
        self._current = call.future
        self.forward_held(self._forward, call.kept, call.kept.value)

    def result(self, *arguments: Any) -> Any:
        """What the current record's call gave; raises what it raised. Stands where the plain operator calls."""
        return self._current.result()

    def cancel(self) -> None:
        """Cancel all pending calls: their records were not committed."""
        for call in self.waiting:
            call.future.cancel()

    def _next(self) -> Call:
        while True:
            self._one_ended.clear()  # before looking, so that no call that ends meanwhile is missed
            call = self._next_of(self.waiting)
            if call is not None:
                return call
            self._one_ended.wait()

    async def _run(self, call: Call, function: Callable[[], Awaitable[Any]]) -> Any:
        try:
            return await function()
        finally:
            call.ended = next(self._turn)
            self._one_ended.set()


def _oldest(calls: deque[Call]) -> Call | None:
    return None if calls[0].ended is None else calls[0]


def _first_to_end(calls: Iterable[Call]) -> Call | None:
    return min((call for call in calls if call.ended is not None), key=attrgetter("ended"), default=None)


def _first_to_end_of_its_key(calls: deque[Call]) -> Call | None:
    return _first_to_end(_oldest_of_keys(calls))


def _oldest_of_keys(calls: deque[Call]) -> Iterator[Call]:
    keys: list[object] = []  # not a set: keys may be mutable
    for call in calls:
        if call.kept.key not in keys:
            keys.append(call.kept.key)
            yield call


_NEXT: dict[Order, NextCall] = {True: _oldest, "by_key": _first_to_end_of_its_key, False: _first_to_end}


Arguments: TypeAlias = Callable[[Any, Any, int], tuple[Any, ...]]
"""What a function is called with for a key, value and timestamp."""


def _called(plain: Any, current: CurrentRecord) -> tuple[Callable[..., Awaitable[Any]], Arguments]:
    """The function that a plain operator calls, and its arguments: those of a call are there before it begins."""
    function = plain.function
    if isinstance(function, OfRecord):
        return _awaitable(function.function), lambda key, value, timestamp: (record_of(current, key, value, timestamp),)
    if getattr(plain, "takes", Takes.KEY_VALUE) is Takes.VALUE:
        return _awaitable(function), lambda key, value, timestamp: (value,)
    return _awaitable(function), lambda key, value, timestamp: (key, value)


def _awaitable(function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """The function; one that yields becomes one that returns a list."""
    if not inspect.isasyncgenfunction(function):
        return function

    async def collect(*arguments: object) -> list[object]:
        return [item async for item in function(*arguments)]

    return collect


async def _within(
    timeout_s: float | None, function: Callable[..., Awaitable[Any]], arguments: tuple[object, ...]
) -> Any:
    limit = asyncio.timeout(timeout_s)
    try:
        async with limit:
            return await function(*arguments)
    except TimeoutError as error:
        if limit.expired():
            raise TimeoutError(f"a call took longer than {timeout_s} s: give it more by timeout=") from error
        raise
