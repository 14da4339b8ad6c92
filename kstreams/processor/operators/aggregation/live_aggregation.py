"""The state of aggregations in a task, which their closures and their columnar forms share.

If final results are emitted, the windows that a record closes are emitted before the record is added to its windows. A
write to the store expires windows, and no window may expire before it was emitted. Kafka Streams writes first, so it
loses windows when stream time jumps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kstreams.processor.context.operator_context import ColumnHandle, OperatorContext
from kstreams.processor.operators.aggregation.emission import Emit
from kstreams.processor.operators.aggregation.members import Members
from kstreams.processor.topology.operator import Forward

Close = Callable[[], int]
"""Emits the windows that have closed by the stream time. Returns the stream time at which the next may close."""


class AggregateHandle(ColumnHandle):
    """The state of an aggregation over all time or by windows of one size, which columns can be merged into.

    Attributes
    ----------
    store : KeyValueStore or WindowStore
    emit_of : callable
        `(start of the window, or None) -> Emit`, which passes updates on.
    stream_time_ms : int
        The greatest timestamp of the records of a windowed aggregation, -1 at first.
    members : Members or None
        The members of groups, if they are rows.
    """

    __slots__ = ("emit_of", "members", "store", "stream_time_ms")

    def __init__(self, store: Any, emit_of: Callable[[Any], Emit]) -> None:
        self.store = store
        self.emit_of = emit_of
        self.stream_time_ms = -1
        self.members: Members | None = None

    def close_windows(self) -> None:
        """Emit the windows that have closed by the stream time, if final results are emitted."""


class LiveWindows(AggregateHandle):
    """The state of an aggregation by windows of any kind.

    Its stream time is stored with every commit, and advances while the input is idle.
    """

    __slots__ = ("_close", "closed_until_ms", "next_close_ms")

    def __init__(self, context: OperatorContext, store: str, emit_of: Callable[[Any], Emit]) -> None:
        super().__init__(context.state_store(store), emit_of)
        self.stream_time_ms = context.keep_in_metadata("stream-time", lambda: self.stream_time_ms)
        self.closed_until_ms = -1  # windows were emitted up to this start or end, as the kind of windows decides
        self.next_close_ms = 0  # the stream time at which the next windows may close
        self._close: Close | None = None
        context.at_idle(self.pass_time)
        context.share_with_columns(self)

    def closes_by(self, context: OperatorContext, close: Close, last_close_ms: Callable[[int], int]) -> None:
        """Emit final results only, by `close`.

        Parameters
        ----------
        context : OperatorContext
        close : callable
        last_close_ms : callable
            `(stream time) -> ms`: the time by which all windows that may have a record are closed. At the end of a
            bounded input, stream time advances to it. Records of a later run are late for these windows.
        """
        self.closed_until_ms = context.keep_in_metadata("closed-until", lambda: self.closed_until_ms)
        self._close = close

        def close_all() -> None:
            self.pass_time(last_close_ms(self.stream_time_ms) - self.stream_time_ms)

        context.at_end_of_input(close_all)

    def close_windows(self) -> None:
        if self._close is not None:
            self.next_close_ms = self._close()

    def pass_time(self, elapsed_ms: int) -> bool:
        """Advance stream time without a record. Return True if windows may have been emitted."""
        if self.stream_time_ms < 0:
            return False
        self.stream_time_ms += elapsed_ms
        is_due = self._close is not None and self.stream_time_ms >= self.next_close_ms
        if is_due:
            self.close_windows()
        return is_due

    def closing_first(self, process: Forward, *, needs_value: bool = False) -> Forward:
        """Return `process`, preceded by the emission of the windows that its record closes.

        Parameters
        ----------
        process : callable
        needs_value : bool
            True if records without a value are dropped, as records without a key always are. They do not advance time.
        """

        def close_then_process(key: object, value: object, timestamp: int) -> None:
            if timestamp >= self.next_close_ms and key is not None and not (needs_value and value is None):
                self.stream_time_ms = max(self.stream_time_ms, timestamp)
                self.close_windows()
            process(key, value, timestamp)

        return close_then_process


class LiveAggregation(LiveWindows):
    """The state of an aggregation by session or by sliding window, whose updates are emitted one by one."""

    __slots__ = ("emit",)

    def __init__(self, context: OperatorContext, store: str, emit: Emit) -> None:
        super().__init__(context, store, lambda window: emit)
        self.emit = emit

    def closes_by_end(
        self, context: OperatorContext, emit_ended: Callable[[int, int], None], *, grace_ms: int, size_ms: int = 0
    ) -> None:
        """Emit final results when stream time has passed the end of a window and `grace_ms`.

        Parameters
        ----------
        context : OperatorContext
        emit_ended : callable
            `emit_ended(first_ms, last_ms)`: emits the windows that ended between two times, both included.
        grace_ms : int
            For how long (ms) after its end a window takes records.
        size_ms : int
            How far (ms) after a record the last of its windows ends; no window ends before this time.
        """

        def close() -> int:
            closed_until_ms = self.stream_time_ms - grace_ms
            if closed_until_ms > max(size_ms, self.closed_until_ms):
                emit_ended(self.closed_until_ms, closed_until_ms - 1)
                self.closed_until_ms = closed_until_ms  # the windows that ended before this time were emitted
            return self.stream_time_ms + 1

        self.closes_by(context, close, lambda stream_time_ms: stream_time_ms + size_ms + grace_ms + 1)
