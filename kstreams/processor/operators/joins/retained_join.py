"""Join of two streams by retention: each side stores its records, and joins a record with all of the other side.

Each pair is joined once, when its later record is processed. Both sides have one stream time. A record may be behind it
by the retention at most: later records are neither joined nor stored, and stored records that are further behind are no
longer joined. So the time of a record says whether it takes part, and the order in which stores delete rows does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kstreams.processor.context.operator_context import ClosureOperator, OperatorContext
from kstreams.processor.operators.joins.join_side import JoinProgress, JoinSide
from kstreams.processor.operators.joins.lookup_join import NULL_KEY_OR_VALUE
from kstreams.processor.topology.operator import Forward
from kstreams.state.api import OuterJoinStore
from kstreams.windows import END_OF_TIME_MS

NOT_RETAINED = "behind stream time by more than the retention of the join"


@dataclass(frozen=True, slots=True)
class RetainedSide(JoinSide):
    """One side of a join.

    Parameters
    ----------
    store : str
        The window store with the records of this side.
    retain_ms : int
        How far a record may be behind stream time.
    """

    store: str
    retain_ms: int

    def progress(self, context: OperatorContext) -> JoinProgress:
        """Return the progress that both sides share; its stream time is part of every commit."""
        first_store = self.store if self.left else self.other_store
        progress = context.shared(f"{first_store}-progress", _new_progress)
        committed_ms = context.keep_in_metadata("stream_time", lambda: progress.stream_time)
        progress.stream_time = max(progress.stream_time, committed_ms)
        return progress


def _new_progress() -> JoinProgress:
    return JoinProgress(first_waiting=-1)  # the store may hold records of an earlier run


@dataclass(frozen=True, slots=True)
class InnerRetainedJoinOperator(ClosureOperator):
    """Joins a record with the retained records of the other side, and stores it for those that follow."""

    side: RetainedSide

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        side = self.side
        put_row = context.state_store(side.store).put
        fetch = context.state_store(side.other_store).fetch
        join = side.join()
        retain_ms = side.retain_ms
        progress = side.progress(context)

        def join_and_store(key: object, value: object, timestamp: int) -> None:
            if key is None or value is None:
                context.dropped(NULL_KEY_OR_VALUE)
                return
            latest = progress.stream_time
            if timestamp > latest:
                latest = progress.stream_time = timestamp
            first = latest - retain_ms
            if timestamp < first:
                context.dropped(NOT_RETAINED)
                return
            for other_time, other in fetch(key, first, latest):
                forward(key, join(key, value, other), timestamp if timestamp > other_time else other_time)
            put_row(key, value, timestamp)

        return join_and_store


@dataclass(frozen=True, slots=True)
class OuterRetainedJoinOperator(ClosureOperator):
    """One side of a left or outer join. Unmatched records of an outer side are emitted when their retention is over.

    Each record of an outer side has a result: its pairs, or one without a partner.

    Parameters
    ----------
    side : RetainedSide
    outer : bool
        True if unmatched records of this side are emitted: of the left side in a left join, of both in an outer join.
    outer_store : str
        The store of unmatched records of both sides.
    """

    side: RetainedSide
    outer: bool
    outer_store: str

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        side = self.side
        outer = self.outer
        put_row = context.state_store(side.store).put
        fetch = context.state_store(side.other_store).fetch
        outer_rows = context.state_store(self.outer_store)
        join = side.join()
        retain_ms = side.retain_ms
        progress = side.progress(context)
        emit_expired = self._emitter(context, forward, progress)
        progress.advance_when_idle(context, emit_expired)

        def emit_unmatched(key: object, value: object, timestamp: int, reason: str) -> None:
            if outer and value is not None:
                forward(key, join(key, value, None), timestamp)
            else:
                context.dropped(reason)

        def join_and_store(key: object, value: object, timestamp: int) -> None:
            if key is None or value is None:
                emit_unmatched(key, value, timestamp, NULL_KEY_OR_VALUE)
                return
            if timestamp > progress.stream_time:
                progress.stream_time = timestamp
                emit_expired()
            latest = progress.stream_time
            first = latest - retain_ms
            if timestamp < first:
                emit_unmatched(key, value, timestamp, NOT_RETAINED)
                return
            is_unmatched = outer
            for other_time, other in fetch(key, first, latest):
                is_unmatched = False
                outer_rows.remove(key, other_time, not side.left)
                forward(key, join(key, value, other), max(timestamp, other_time))
            put_row(key, value, timestamp)
            if is_unmatched:
                outer_rows.put(key, value, timestamp, side.left)
                progress.first_waiting = min(progress.first_waiting, timestamp)

        return join_and_store

    def _emitter(self, context: OperatorContext, forward: Forward, progress: JoinProgress) -> Callable[[], bool]:
        """Return a function that emits the unmatched records of both sides whose retention is over.

        Each one is emitted with its own timestamp. The function returns False if there was nothing to emit.
        """
        outer_rows = context.state_store(self.outer_store)
        side = self.side
        retain_ms = side.retain_ms

        def emit_before(first_retained: int) -> None:
            side.forward_unmatched(context, forward, outer_rows.pop_until(first_retained, first_retained))

        def emit_expired() -> bool:
            first_retained = progress.stream_time - retain_ms
            is_due = progress.first_waiting < first_retained
            if is_due:
                emit_before(first_retained)
                progress.first_waiting = _first_waiting(outer_rows)
            return is_due

        def emit_all() -> None:
            emit_before(END_OF_TIME_MS)

        context.at_end_of_input(emit_all)
        return emit_expired


def _first_waiting(outer_rows: OuterJoinStore) -> int:
    first_rows = [row for row in map(outer_rows.first_row, (True, False)) if row is not None]
    return min((row.timestamp for row in first_rows), default=END_OF_TIME_MS)
