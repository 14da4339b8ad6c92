"""The live parts of aggregations, which their closures and their columnar forms share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kstreams.processor.context.column_handle import ColumnHandle
from kstreams.processor.context.operator_context import OperatorContext
from kstreams.processor.operators.aggregation.emission import Emit


class AggregateHandle(ColumnHandle):
    """The live parts of an aggregation over all time or by windows of one size, which columns may fold into.

    Attributes
    ----------
    store : KeyValueStore or WindowStore
    emit_of : callable
        By the start of its window, or None: all that follows the write of one update.
    stream_time_ms : int
        Of a windowed aggregation: the greatest timestamp that reached it.
    """

    __slots__ = ("emit_of", "store", "stream_time_ms")

    def __init__(self, store: Any, emit_of: Callable[[Any], Emit]) -> None:
        self.store, self.emit_of, self.stream_time_ms = store, emit_of, -1

    def close_windows(self, timestamp: int) -> None:
        """Emit the windows that have closed at the stream time, where final results are wanted."""


class LiveAggregation(ColumnHandle):
    """The live parts of an aggregation by session or by sliding window.

    Its stream time is kept with every commit and advances while input is idle.
    """

    __slots__ = ("_close", "closed_until_ms", "emit", "store", "stream_time_ms")

    def __init__(self, context: OperatorContext, store: str, emit: Emit) -> None:
        self.store: Any = context.state_store(store)
        self.emit = emit
        self.stream_time_ms = context.keep_in_metadata("stream-time", lambda: self.stream_time_ms)
        self.closed_until_ms = -1  # what ended before this was emitted
        self._close: Callable[[], bool] = _nothing_closes
        context.at_idle(self.pass_time)
        context.share_with_columns(self)

    def closes_by(self, close: Callable[[], bool]) -> None:
        """Final results are wanted: `close()` emits what has ended, and returns whether there was anything."""
        self._close = close

    def pass_time(self, elapsed_ms: int) -> bool:
        """Input is idle: stream time moves on without a record; whether anything may have been emitted."""
        if self.stream_time_ms < 0:
            return False
        self.stream_time_ms += elapsed_ms
        return self._close()


def _nothing_closes() -> bool:
    return False
