"""Async functions: a bounded number of concurrent calls, whose results are forwarded in place of their records."""

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
    """Calls an async function, and processes the result as a plain operator does.

    Parameters
    ----------
    plain : operator
        A synchronous operator, whose `function` is the async function.
    concurrency : int, optional
        Greatest number of pending calls of a task; `async.concurrency` by default.
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
        max_pending = self.concurrency or settings.async_concurrency
        timeout_ms = settings.async_timeout_ms if self.timeout_ms is None else self.timeout_ms
        calls = AsyncCalls(context, self.plain, forward, NEXT_CALL[self.ordered])
        timeout_s = timeout_ms / 1000 if timeout_ms >= 0 else None
        function, arguments_of = function_and_arguments(self.plain, context.current)

        def call(key: object, value: object, timestamp: int) -> None:
            calls.release_until(max_pending - 1)
            arguments = arguments_of(key, value, timestamp)
            calls.start(calls.hold(key, value, timestamp), partial(with_timeout, timeout_s, function, arguments))

        context.at_close(calls.cancel)
        return call


@dataclass(slots=True, eq=False)
class Call:
    """A call and its record. `end_number` is its position in the order in which calls end; None while it runs."""

    record: DelayedRecord
    future: Future[object] = field(init=False)
    end_number: int | None = None


NextCall: TypeAlias = Callable[[deque[Call]], Call | None]
"""Returns the call to be forwarded next; None while there is none."""


class AsyncCalls(DelayedResults[Call]):
    """The pending calls of one operator in one task.

    Parameters
    ----------
    context : OperatorContext
    plain : operator
        Processes the results.
    forward : callable
        Takes the records that the plain operator forwards.
    choose_next : NextCall
    """

    def __init__(self, context: OperatorContext, plain: Any, forward: Forward, choose_next: NextCall) -> None:
        super().__init__(context.current)
        context.hold_back(self)
        self._forward = bind_operator(replace(plain, function=self.result), context, forward)
        self._choose_next = choose_next
        self._call_ended = Event()
        self._end_numbers = count()
        self._released_future: Future[Any]

    def start(self, record: DelayedRecord, function: Callable[[], Awaitable[object]]) -> None:
        """Start the call for a record."""
        call = Call(record)
        call.future = event_loop.start(self._run(call, function))
        self.waiting.append(call)

    def release_next(self) -> None:
        """Wait for the next call to end, and forward its record."""
        call = self._wait_for_next()
        self.waiting.remove(call)
        self._released_future = call.future
        self.forward_held(self._forward, call.record, call.record.value)

    def result(self, *arguments: object) -> object:
        """Return the result of the current record's call, or raise its error. The plain operator calls this method."""
        return self._released_future.result()

    def cancel(self) -> None:
        """Cancel all pending calls. Their records are not committed and will be read again."""
        for call in self.waiting:
            call.future.cancel()

    def _wait_for_next(self) -> Call:
        while True:
            self._call_ended.clear()  # before the choice, so that a call that ends meanwhile is not missed
            call = self._choose_next(self.waiting)
            if call is not None:
                return call
            self._call_ended.wait()

    async def _run(self, call: Call, function: Callable[[], Awaitable[object]]) -> object:
        try:
            return await function()
        finally:
            call.end_number = next(self._end_numbers)
            self._call_ended.set()


def _oldest(calls: deque[Call]) -> Call | None:
    return None if calls[0].end_number is None else calls[0]


def _first_to_end(calls: Iterable[Call]) -> Call | None:
    return min((call for call in calls if call.end_number is not None), key=attrgetter("end_number"), default=None)


def _first_to_end_of_its_key(calls: deque[Call]) -> Call | None:
    return _first_to_end(_oldest_of_keys(calls))


def _oldest_of_keys(calls: deque[Call]) -> Iterator[Call]:
    keys: list[object] = []  # not a set: keys may be unhashable
    for call in calls:
        if call.record.key not in keys:
            keys.append(call.record.key)
            yield call


NEXT_CALL: dict[Order, NextCall] = {True: _oldest, "by_key": _first_to_end_of_its_key, False: _first_to_end}


Arguments: TypeAlias = Callable[[Any, Any, int], tuple[Any, ...]]
"""Returns the arguments of a function for a key, value and timestamp."""


def function_and_arguments(plain: Any, current: CurrentRecord) -> tuple[Callable[..., Awaitable[Any]], Arguments]:
    """Return the function that a plain operator calls, and a function that makes the arguments of a call.

    The arguments are made before the call starts, because the current record changes while the call runs.
    """
    function = plain.function
    if isinstance(function, OfRecord):
        return _awaitable(function.function), lambda key, value, timestamp: (record_of(current, key, value, timestamp),)
    if getattr(plain, "takes", Takes.KEY_VALUE) is Takes.VALUE:
        return _awaitable(function), lambda key, value, timestamp: (value,)
    return _awaitable(function), lambda key, value, timestamp: (key, value)


def _awaitable(function: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
    """Return the function itself; an async generator becomes a function that returns a list."""
    if not inspect.isasyncgenfunction(function):
        return function

    async def collect(*arguments: object) -> list[object]:
        return [item async for item in function(*arguments)]

    return collect


async def with_timeout(
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
