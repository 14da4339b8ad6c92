"""Retried calls: a record whose call fails waits in a store, and later records of its key wait behind it.

After the last attempt, the record goes to the parking topic, or its error to the processing exception handler.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, TypeAlias

from kstreams.kernel.retry import Attempts, Retry
from kstreams.processor.api.error_handlers import OPERATOR, ErrorHandlerContext
from kstreams.processor.api.punctuation import NEVER
from kstreams.processor.context.current_record import CurrentRecord
from kstreams.processor.context.delayed_results import Order
from kstreams.processor.context.failures import UNHANDLED
from kstreams.processor.context.operator_context import ClosureOperator, OperatorContext, bind_operator
from kstreams.processor.context.parking import APPLICATION, RETRIED, own_headers, parked_record
from kstreams.processor.operators.asynchronous import event_loop
from kstreams.processor.operators.asynchronous.rows import (
    NEXT_CALL,
    AsyncCalls,
    function_and_arguments,
    with_timeout,
)
from kstreams.processor.operators.process.rows import process_closure
from kstreams.processor.operators.stateless import FlatMapOperator, FlatMapValuesOperator
from kstreams.processor.operators.waiting.key_queues import KeyQueues, failed_again
from kstreams.processor.operators.waiting.records import WaitingRecords
from kstreams.processor.topology.operator import Forward, ProcessOperator
from kstreams.record import Headers
from kstreams.serdes import Serde
from kstreams.state.kinds.waiting_records import WaitingRecord, WaitingRecordStore

Started: TypeAlias = Callable[[], object]
"""Returns the result of a call, or raises its error; a synchronous call is made by it."""
Start: TypeAlias = Callable[[Any, Any, int], Started]
"""Starts the call for a record: key, value, timestamp."""

_TURN_MS = 500
"""The time after which due records leave the thread to other work; they go on at the next call of the timer."""
_IN_PLACE = 1
"""Calls of a function that is not async are made one after the other."""


@dataclass(frozen=True, slots=True)
class RetrySettings:
    """The settings of a retried operator.

    Parameters
    ----------
    retry : Retry
    store : str
        Holds the waiting records.
    park : str or None
        The parking topic.
    """

    retry: Retry
    store: str
    park: str | None = None


class CallResult:
    """The result of the call for the current record, which the operator's own code takes in place of a call."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value: Any = None

    def __call__(self, *arguments: object) -> Any:
        return self.value


class _Attempted(NamedTuple):
    """A queue whose first record is being called."""

    queue: bytes
    record: WaitingRecord
    started: Started


class RetriedCalls:
    """The records of one operator whose calls have failed, in one task.

    Parameters
    ----------
    context : OperatorContext
    settings : RetrySettings
    start : Start
        Starts the call for a record.
    emit : callable
        Forwards what follows from the result of a call: key, value and timestamp of the record.
    result : CallResult
        Gets the result before `emit`.
    concurrency : int
        The greatest number of calls at the same time.
    """

    def __init__(
        self,
        context: OperatorContext,
        settings: RetrySettings,
        start: Start,
        emit: Forward,
        result: CallResult,
        *,
        concurrency: int = _IN_PLACE,
    ) -> None:
        store: WaitingRecordStore = context.state_store(settings.store)
        self.errors = settings.retry.on
        self.result = result
        self.emit = emit
        self.queues = KeyQueues(store)
        self._context = context
        self._current = context.current
        self._clock = context.task.application.clock
        self._settings = settings
        self._start = start
        self._concurrency = concurrency
        self._records = WaitingRecords(store, context.current)
        self._attempted: _Attempted
        self._finish = context.guarded(self._finish_call())
        self._timer = context.timer(self._attempt_due)
        self._timer.set(self.queues.next_due_ms())
        context.report_waits(self.queues.waits)

    # the first call for a record

    def waits(self, key: object) -> bool:
        """Return whether records of a key wait, so that a later one must wait behind them."""
        return self.queues.count > 0 and self.queues.holds(key)

    def wait_behind(self, key: object, value: object, timestamp: int) -> None:
        """Let the current record wait behind earlier ones of its key."""
        now_ms = self._clock.wall_ms()
        self.queues.add(self._records.of_current(key, value, timestamp, since_ms=now_ms, due_ms=now_ms))

    def failed(self, error: Exception, key: object, value: object, timestamp: int) -> None:
        """Let the current record wait after its first call; raises the error if it was the last one, and not parked."""
        now_ms = self._clock.wall_ms()
        record = self._records.of_current(key, value, timestamp, since_ms=now_ms, due_ms=now_ms)
        failed = failed_again(record, now_ms, self._settings.retry.delay_ms(1))
        if self._is_last(failed):
            self._end(failed, error, now_ms)
        else:
            self.queues.add(failed)
            self._timer.set(self.queues.next_due_ms())

    # further calls

    def _attempt_due(self, now_ms: int) -> None:
        """Call again for the records that are due, and for those behind them, until a turn is over."""
        end_ms = self._clock.uptime_ms() + _TURN_MS
        try:
            while self._clock.uptime_ms() < end_ms and (queues := self.queues.take_due(now_ms, self._concurrency)):
                for attempted in [self._started(queue) for queue in queues]:
                    self._attempted = attempted
                    self._forward(self._finish, attempted.record)
        finally:
            due_ms = self.queues.next_due_ms()
            self._timer.set(due_ms if due_ms == NEVER else max(due_ms, now_ms + 1))

    def _started(self, queue: bytes) -> _Attempted:
        started: Started

        def start(key: object, value: object, timestamp: int) -> None:
            nonlocal started
            started = self._start(key, value, timestamp)

        record = self.queues.first(queue)
        self._forward(start, record)
        return _Attempted(queue, record, started)

    def _forward(self, closure: Forward, record: WaitingRecord) -> None:
        held = self._records.to_forward(record)
        self._current.forward_held(closure, held, held.value)

    def _finish_call(self) -> Forward:
        """Return the closure that takes the record of `_attempted` with the outcome of its call."""

        def finish(key: object, value: object, timestamp: int) -> None:
            queue, record, started = self._attempted
            now_ms = self._clock.wall_ms()
            try:
                self.result.value = started()
            except UNHANDLED:
                raise
            except self.errors as error:
                self._failed_again(queue, record, error)
            except Exception:
                self.queues.remove_first(queue, now_ms)
                raise
            else:
                self.queues.remove_first(queue, now_ms)
                self.emit(key, value, timestamp)

        return finish

    def _failed_again(self, queue: bytes, record: WaitingRecord, error: Exception) -> None:
        now_ms = self._clock.wall_ms()
        failed = failed_again(record, now_ms, self._settings.retry.delay_ms(record.failures + 1))
        if self._is_last(failed):
            self.queues.remove_first(queue, now_ms)
            self._end(failed, error, now_ms)
        else:
            self.queues.put_off(queue, failed)

    def _is_last(self, failed: WaitingRecord) -> bool:
        return failed.failures >= self._settings.retry.attempts

    def _end(self, failed: WaitingRecord, error: Exception, now_ms: int) -> None:
        """Park a record whose last call has failed; without a parking topic, raise the error."""
        topic = self._settings.park
        if topic is None:
            raise error
        context = ErrorHandlerContext(
            topic=failed.topic,
            partition=self._current.partition,
            offset=failed.offset,
            headers=failed.headers,
            timestamp=failed.timestamp,
            processor_node_id=self._context.node,
            task_id=self._context.task.task_id,
            source_raw_key=failed.key,
            source_raw_value=failed.value,
        )
        attempts = Attempts(failed.failures, failed.failed_ms, now_ms)
        application_id = self._context.task.application.id
        parked = parked_record(context, topic, error, attempts, application_id)
        self._context.task.failures.park(self._context.node, parked)


@dataclass(frozen=True, slots=True)
class RetryOperator(ClosureOperator):
    """Calls a function for each record, and processes its result as a plain operator does.

    Parameters
    ----------
    plain : operator
        A synchronous operator with a `function`.
    settings : RetrySettings
    """

    plain: Any
    settings: RetrySettings

    @property
    def parking_topic(self) -> str | None:
        return self.settings.park

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        function, arguments_of = function_and_arguments(self.plain, context.current)
        function = _complete(self.plain, function)
        result = CallResult()
        emit = bind_operator(replace(self.plain, function=result), context, forward)

        def start(key: object, value: object, timestamp: int) -> Started:
            return partial(function, *arguments_of(key, value, timestamp))

        calls = RetriedCalls(context, self.settings, start, emit, result)
        return first_calls(calls, lambda key, value, timestamp: function(*arguments_of(key, value, timestamp)))


def first_calls(calls: RetriedCalls, call: Callable[[Any, Any, int], object]) -> Forward:
    """Return the closure that makes the first call for each record, unless earlier ones of its key wait."""
    errors = calls.errors
    result = calls.result
    emit = calls.emit
    queues = calls.queues

    def process(key: object, value: object, timestamp: int) -> None:
        if queues.count and calls.waits(key):
            calls.wait_behind(key, value, timestamp)
            return
        try:
            result.value = call(key, value, timestamp)
        except UNHANDLED:
            raise
        except errors as error:
            calls.failed(error, key, value, timestamp)
        else:
            emit(key, value, timestamp)

    return process


def _complete(plain: object, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose result is complete: a generator would fail only while its items are forwarded."""
    if not isinstance(plain, FlatMapOperator | FlatMapValuesOperator):
        return function

    def call(*arguments: object) -> Any:
        items = function(*arguments)
        return list(items) if inspect.isgenerator(items) else items

    return call


@dataclass(frozen=True, slots=True)
class RetryAsyncOperator(ClosureOperator):
    """Calls an async function, as `AsyncOperator` does; the calls for one key are made one after the other.

    Parameters
    ----------
    plain : operator
        A synchronous operator, whose `function` is the async function.
    settings : RetrySettings
    concurrency, timeout_ms, ordered
        As for `AsyncOperator`.
    """

    plain: Any
    settings: RetrySettings
    concurrency: int | None = None
    timeout_ms: int | None = None
    ordered: Order = True

    @property
    def keeps_order(self) -> bool:
        return self.ordered is not False

    @property
    def parking_topic(self) -> str | None:
        return self.settings.park

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        task_settings = context.task.application.settings
        concurrency = self.concurrency or task_settings.async_concurrency
        timeout_ms = task_settings.async_timeout_ms if self.timeout_ms is None else self.timeout_ms
        timeout_s = timeout_ms / 1000 if timeout_ms >= 0 else None
        function, arguments_of = function_and_arguments(self.plain, context.current)
        result = CallResult()
        emit = bind_operator(replace(self.plain, function=result), context, forward)

        def start(key: object, value: object, timestamp: int) -> Started:
            call = with_timeout(timeout_s, function, arguments_of(key, value, timestamp))
            return event_loop.start(call).result

        retried = RetriedCalls(context, self.settings, start, emit, result, concurrency=concurrency)
        first = AsyncCalls(context, _TakeOutcome(retried, result), forward, NEXT_CALL[self.ordered])

        def call(key: object, value: object, timestamp: int) -> None:
            if key is not None:
                while any(pending.record.key == key for pending in first.waiting):
                    first.release_until(len(first.waiting) - 1)
            if retried.waits(key):
                retried.wait_behind(key, value, timestamp)
                return
            first.release_until(concurrency - 1)
            arguments = arguments_of(key, value, timestamp)
            held = first.hold(key, value, timestamp)
            first.start(held, partial(with_timeout, timeout_s, function, arguments))

        context.at_close(first.cancel)
        return call


@dataclass(frozen=True, slots=True)
class _TakeOutcome(ClosureOperator):
    """Takes each record when its first call has ended; `function` returns the result of the call."""

    retried: RetriedCalls
    function: Callable[[], object]

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        outcome = self.function
        return first_calls(self.retried, lambda key, value, timestamp: outcome())


@dataclass(frozen=True, slots=True)
class RetryProcessOperator(ClosureOperator):
    """Runs a processor of the user; what it forwards goes on only after its `process` has returned.

    Parameters
    ----------
    plain : ProcessOperator
    settings : RetrySettings
    """

    runs_processor: ClassVar[bool] = True

    plain: ProcessOperator
    settings: RetrySettings

    @property
    def parking_topic(self) -> str | None:
        return self.settings.park

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        held = HeldForwards(context.current)
        children = {name: held.holding(child) for name, child in context.children.items()}
        process = process_closure(self.plain, context.with_children(children), held.holding(forward))
        call = held.of_call(process)
        result = CallResult()

        def start(key: object, value: object, timestamp: int) -> Started:
            return partial(call, key, value, timestamp)

        def emit(key: object, value: object, timestamp: int) -> None:
            held.release(result.value)

        return first_calls(RetriedCalls(context, self.settings, start, emit, result), call)


class HeldForward(NamedTuple):
    """A record that a processor has forwarded, and the closure that takes it."""

    forward: Forward
    headers: Headers
    key: object
    value: object
    timestamp: int


class HeldForwards:
    """The records that a processor forwards during a call, which are held until the call has succeeded.

    Parameters
    ----------
    current : CurrentRecord
    """

    def __init__(self, current: CurrentRecord) -> None:
        self._current = current
        self._held: list[HeldForward] = []
        self._is_holding = False

    def holding(self, forward: Forward) -> Forward:
        """Return a closure that holds records during a call, and forwards them at other times, as for punctuators."""
        current = self._current

        def hold_or_forward(key: object, value: object, timestamp: int) -> None:
            if self._is_holding:
                self._held.append(HeldForward(forward, current.headers, key, value, timestamp))
            else:
                forward(key, value, timestamp)

        return hold_or_forward

    def of_call(self, process: Forward) -> Callable[[Any, Any, int], list[HeldForward]]:
        """Return a function that calls `process`, and returns the records that it has forwarded."""

        def call(key: object, value: object, timestamp: int) -> list[HeldForward]:
            held: list[HeldForward] = []
            self._held = held
            self._is_holding = True
            try:
                process(key, value, timestamp)
            finally:
                self._is_holding = False
            return held

        return call

    def release(self, held: list[HeldForward]) -> None:
        """Forward held records."""
        for record in held:
            self._current.forward_with(record.headers, record.forward, record.key, record.value, record.timestamp)


@dataclass(frozen=True, slots=True)
class ReturnedRecordsOperator(ClosureOperator):
    """Reads a parking topic: forwards the records that are sent back to one operator, and skips all others.

    Parameters
    ----------
    operator : str
        The name of the operator.
    key, value : Serde
        The serdes of its input.
    """

    operator: str
    key: Serde
    value: Serde

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        current = context.current
        application_id = context.task.application.id.encode()
        operator = self.operator.encode()
        key_of = self.key.deserialize
        value_of = self.value.deserialize

        def take_returned(key: bytes | None, value: bytes | None, timestamp: int) -> None:
            headers = dict(current.headers)
            if RETRIED not in headers or (headers.get(APPLICATION), headers.get(OPERATOR)) != (
                application_id,
                operator,
            ):
                return
            record_key = None if key is None else key_of(key)
            record_value = None if value is None else value_of(value)
            current.forward_with(own_headers(current.headers), forward, record_key, record_value, timestamp)

        return take_returned
