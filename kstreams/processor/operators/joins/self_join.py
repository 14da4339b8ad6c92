"""Windowed join of a stream with itself: what one side keeps serves both."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kstreams.processor.context.operator_binding import ClosureOperator
from kstreams.processor.context.operator_context import OperatorContext
from kstreams.processor.operators.joins.stream_join import NULL_KEY_OR_VALUE, StreamJoinSide
from kstreams.processor.topology.operator import Forward


@dataclass(frozen=True, slots=True)
class SelfJoinOperator(ClosureOperator):
    """Joins a record as the left one, then as the right one, with those before it; and once with itself.

    A record that is older than what two sides would still keep does not meet itself.

    Parameters
    ----------
    left, right : StreamJoinSide
        Both read the one store.
    retention_ms : int
        How long the store keeps records.
    """

    left: StreamJoinSide
    right: StreamJoinSide
    retention_ms: int

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        fetch = context.state_store(self.left.other_store).fetch
        joiner = self.left.joiner
        left = self.left.partners
        right = self.right.partners
        retention_ms = self.retention_ms
        latest = -1
        latest = context.keep_in_metadata("stream_time", lambda: latest)

        def self_join(key: Any, value: Any, timestamp: int) -> None:
            nonlocal latest
            if key is None or value is None:
                context.dropped(NULL_KEY_OR_VALUE)
                return
            for other_time, other in fetch(key, *left(timestamp)):
                forward(key, joiner(key, value, other), max(timestamp, other_time))
            latest = max(latest, timestamp)
            # Its own pair comes before those of later times, where the join of two sides would have it.
            alone = timestamp > latest - retention_ms + 1
            for other_time, other in fetch(key, *right(timestamp)):
                if alone and other_time > timestamp:
                    alone = False
                    forward(key, joiner(key, value, value), timestamp)
                forward(key, joiner(key, other, value), max(timestamp, other_time))
            if alone:
                forward(key, joiner(key, value, value), timestamp)

        return self_join
