"""`suppress`: holds updates of a table back, one per key, until their window closes or a time limit passes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kstreams.errors import StateError
from kstreams.processor.context.operator_context import ClosureOperator, OperatorContext
from kstreams.processor.topology.operator import Forward
from kstreams.record import Change
from kstreams.state.api import BufferedChange, TimeOrderedBuffer
from kstreams.windows import END_OF_TIME_MS


@dataclass(frozen=True, slots=True)
class SuppressOperator(ClosureOperator):
    """Holds updates back, and emits the last update of each key.

    Parameters
    ----------
    store : str
        Name of the buffer that holds the updates.
    wait_ms : int
        How long an update waits after its time, in stream time: the grace period of a window, or the time limit.
    until_window_closes : bool
        True if the time of an update is the end of its window; False if it is the timestamp of the key's first held
        update. If True, deletions are not emitted, because no update of the window was emitted before.
    max_records, max_bytes : int, optional
        Bounds of the buffer.
    emit_early : bool
        True if a full buffer emits its oldest updates; False if it is an error.
    """

    store: str
    wait_ms: int
    until_window_closes: bool = False
    max_records: int | None = None
    max_bytes: int | None = None
    emit_early: bool = False

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        buffer: TimeOrderedBuffer = context.state_store(self.store)
        emit = self._emitter(context, forward)
        wait_ms = self.wait_ms
        until_window_closes = self.until_window_closes
        current = context.current
        enforce_bounds = self._enforcer(buffer, emit)
        stream_time = -1

        def suppress(key: Any, change: Change, timestamp: int) -> None:
            nonlocal stream_time
            stream_time = max(stream_time, timestamp)
            time_ms = key.window.end_ms if until_window_closes else timestamp
            buffer.put(key, BufferedChange(change.new, change.old, timestamp, current.headers), time_ms)
            for row in context.sending_meanwhile(buffer.pop_until(stream_time - wait_ms)):
                emit(*row)
            enforce_bounds()

        def emit_all() -> None:
            for row in context.sending_meanwhile(buffer.pop_until(END_OF_TIME_MS)):
                emit(*row)

        def pass_time(elapsed_ms: int) -> bool:
            nonlocal stream_time
            if stream_time < 0:
                return False
            stream_time += elapsed_ms
            emitted = False
            for row in context.sending_meanwhile(buffer.pop_until(stream_time - wait_ms)):
                emit(*row)
                emitted = True
            return emitted

        stream_time = context.keep_in_metadata("stream_time", lambda: stream_time)
        context.at_end_of_input(emit_all)
        context.at_idle(pass_time)
        return suppress

    def _emitter(self, context: OperatorContext, forward: Forward) -> Callable[[Any, BufferedChange], None]:
        current = context.current
        drop_deletions = self.until_window_closes

        def emit(key: object, change: BufferedChange) -> None:
            if change.new is None and drop_deletions:
                return
            current.forward_with(change.headers, forward, key, Change(change.new, change.old), change.timestamp)

        return emit

    def _enforcer(self, buffer: TimeOrderedBuffer, emit: Callable[[Any, BufferedChange], None]) -> Callable[[], None]:
        max_records = self.max_records
        max_bytes = self.max_bytes

        def is_full() -> bool:
            return (max_records is not None and buffer.num_records() > max_records) or (
                max_bytes is not None and buffer.num_bytes() > max_bytes
            )

        def enforce_bounds() -> None:
            while is_full() and (row := buffer.pop_first()) is not None:
                if not self.emit_early:
                    raise StateError(
                        f"The buffer {self.store} of suppress is over its bound (max_records={max_records}, "
                        f"max_bytes={max_bytes}). Raise the bound, or let it emit early."
                    )
                emit(*row)

        return enforce_bounds
