"""`LiveAggregation`: what an aggregation by session or by sliding window holds while its task lives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kstreams.processor.context.operator_context import OperatorContext
from kstreams.processor.operators.aggregation.emission import Emit


class LiveAggregation:
    """The live parts of one operator; its stream time is kept with every commit and goes on while input is idle."""

    __slots__ = ("close", "closed_until_ms", "emit", "store", "stream_time_ms")

    def __init__(self, context: OperatorContext, store: str, emit: Emit) -> None:
        self.store: Any = context.state_store(store)
        self.emit = emit
        self.stream_time_ms = context.keep_in_metadata("stream-time", lambda: self.stream_time_ms)
        self.closed_until_ms = -1  # what ended before this was emitted
        self.close: Callable[[], bool] = _nothing_closes
        context.at_idle(self.pass_time)
        context.live = self

    def pass_time(self, elapsed_ms: int) -> bool:
        """Input is idle: stream time moves on without a record; whether anything may have been emitted."""
        if self.stream_time_ms < 0:
            return False
        self.stream_time_ms += elapsed_ms
        return self.close()


def _nothing_closes() -> bool:
    return False
