"""How a table passes its updates on: each at once, or with the record cache the last one per key at every flush.

The cache is a buffer of emissions only: stores always hold the latest value. As in Kafka Streams a cached update goes
out with the headers of the record that caused it, in the order of last updates, and not at all when a key came and
went.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from kstreams.processor.context import NodeContext
from kstreams.processor.operator import Forward
from kstreams.record import Change, Headers

make_tuple: Callable[[type, tuple[Any, ...]], Any] = tuple.__new__
"""Makes a named tuple in half the time of calling it: `make_tuple(Change, (new, old, True))`."""

Emit: TypeAlias = Callable[[Any, Any, Any, int, Headers], None]
"""`emit(key, new, old, timestamp, headers)`: what follows the write of one update to the store.

The key of a windowed table is given as (key, start of the window in ms); `old` is the value the store held before."""


def emitter(
    context: NodeContext,
    forward: Forward,
    *,
    caching: bool,
    sends_old: bool,
    shape: Callable[[Any], Any] | None = None,
    result: Callable[[Any], Any] | None = None,
) -> Emit:
    """The `emit` of a table node in one task.

    Parameters
    ----------
    caching : bool
        Whether the table wants the record cache; the application may have turned it off.
    sends_old : bool
        Whether old values go along.
    shape : callable, optional
        Makes the key that is forwarded.
    result : callable, optional
        Makes the value that is forwarded of the state that is stored.
    """
    at_once = _at_once(forward, sends_old, shape or _same, result)
    return _record_cache(context, at_once) if caching and context.caching else at_once


def _same(key: Any) -> Any:
    return key


def _at_once(
    forward: Forward, sends_old: bool, shape: Callable[[Any], Any], result: Callable[[Any], Any] | None
) -> Emit:
    def emit_new(key: Any, new: Any, old: Any, timestamp: int, headers: Headers) -> None:
        forward(shape(key), make_tuple(Change, (new, None, True)), timestamp)

    def emit_both(key: Any, new: Any, old: Any, timestamp: int, headers: Headers) -> None:
        forward(shape(key), make_tuple(Change, (new, old, True)), timestamp)

    emit = emit_both if sends_old else emit_new
    return emit if result is None else _with_results(emit, result)


def _with_results(emit: Emit, result: Callable[[Any], Any]) -> Emit:
    def emit_results(key: Any, new: Any, old: Any, timestamp: int, headers: Headers) -> None:
        emit(key, None if new is None else result(new), None if old is None else result(old), timestamp, headers)

    return emit_results


def _record_cache(context: NodeContext, at_once: Emit) -> Emit:
    pending: dict[Any, tuple[int, Any, Any, int, Headers]] = {}
    waiting, task, turn = pending.get, context.task, 0

    def emit(key: Any, new: Any, old: Any, timestamp: int, headers: Headers) -> None:
        nonlocal turn
        turn += 1  # cheaper than to move the key to the end of the dict
        update = waiting(key)
        pending[key] = (turn, new, old if update is None else update[2], timestamp, headers)

    def flush() -> None:
        nonlocal turn
        updates = sorted(pending.items(), key=_turn_of)
        pending.clear()
        turn = 0
        for key, (_, new, old, timestamp, headers) in updates:
            if new is not None or old is not None:
                task.headers = headers
                at_once(key, new, old, timestamp, headers)

    context.at_flush(flush)
    return emit


def _turn_of(update: tuple[Any, tuple[int, Any, Any, int, Headers]]) -> int:
    return update[1][0]
