"""Windowed join of two streams: each side stores its records, and joins a record with stored ones of the other side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kstreams.processor.context.operator_context import ClosureOperator, OperatorContext
from kstreams.processor.operators.joins.join_side import JoinProgress, JoinSide
from kstreams.processor.operators.joins.lookup_join import NULL_KEY_OR_VALUE
from kstreams.processor.topology.operator import Forward
from kstreams.state.api import OuterJoinStore
from kstreams.windows import END_OF_TIME_MS


@dataclass(frozen=True, slots=True)
class SelfJoinOperator(ClosureOperator):
    """Joins a record with earlier records, first as the left side, then as the right side, and once with itself.

    A record is not joined with itself if it is older than the retention: a join with two stores would have dropped it.

    Parameters
    ----------
    left, right : StreamJoinSide
        Both sides read the same store.
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

        def self_join(key: object, value: object, timestamp: int) -> None:
            nonlocal latest
            if key is None or value is None:
                context.dropped(NULL_KEY_OR_VALUE)
                return
            for other_time, other in fetch(key, *left(timestamp)):
                forward(key, joiner(key, value, other), max(timestamp, other_time))
            latest = max(latest, timestamp)
            # The pair of the record with itself precedes the pairs with later records, as in a join of two streams.
            is_self_pair_due = timestamp > latest - retention_ms + 1
            for other_time, other in fetch(key, *right(timestamp)):
                if is_self_pair_due and other_time > timestamp:
                    is_self_pair_due = False
                    forward(key, joiner(key, value, value), timestamp)
                forward(key, joiner(key, other, value), max(timestamp, other_time))
            if is_self_pair_due:
                forward(key, joiner(key, value, value), timestamp)

        return self_join


@dataclass(frozen=True, slots=True)
class JoinWindowOperator(ClosureOperator):
    """Stores the records of one side for the other, after forwarding them, so that no record is joined with itself."""

    store: str

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        put_row = context.state_store(self.store).put

        def forward_and_store(key: object, value: object, timestamp: int) -> None:
            forward(key, value, timestamp)
            if key is not None:
                put_row(key, value, timestamp)

        return forward_and_store


@dataclass(frozen=True, slots=True)
class StreamJoinSide(JoinSide):
    """One side of a join.

    Parameters
    ----------
    before_ms, after_ms : int
        The join window of this side: partners have timestamps in [timestamp - before, timestamp + after].
    """

    before_ms: int
    after_ms: int

    def partners(self, timestamp: int) -> tuple[int, int]:
        """Return the first and the last timestamp of partners; timestamps before the epoch are cut off.

        Examples
        --------
        >>> StreamJoinSide(True, "right", max, before_ms=10, after_ms=5).partners(7)
        (0, 12)
        """
        first = timestamp - self.before_ms
        last = timestamp + self.after_ms
        return (first, last) if first >= 0 <= last else (max(0, first), max(0, last))


@dataclass(frozen=True, slots=True)
class InnerStreamJoinOperator(ClosureOperator):
    """Joins a record with the stored records of the other side. So each pair is joined once, by its later record.

    A late record is joined too, as long as the other side's store has its partners.
    """

    side: StreamJoinSide

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        fetch = context.state_store(self.side.other_store).fetch
        join = self.side.join()
        partners = self.side.partners

        def inner_join(key: object, value: object, timestamp: int) -> None:
            if key is None or value is None:
                context.dropped(NULL_KEY_OR_VALUE)
                return
            first, last = partners(timestamp)
            for other_time, other in fetch(key, first, last):
                forward(key, join(key, value, other), timestamp if timestamp > other_time else other_time)

        return inner_join


@dataclass(frozen=True, slots=True)
class OuterStreamJoinOperator(ClosureOperator):
    """One side of a left or outer join. Unmatched rows of an outer side are held back until their window closes.

    Parameters
    ----------
    side : StreamJoinSide
    outer : bool
        True if unmatched rows of this side are emitted: of the left side in a left join, of both in an outer join.
    outer_store : str
        The store of unmatched rows of both sides.
    grace_ms : int
        How long after the end of its window, in stream time, a row is still held back.
    """

    side: StreamJoinSide
    outer: bool
    outer_store: str
    grace_ms: int

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        side = self.side
        outer = self.outer
        fetch = context.state_store(side.other_store).fetch
        outer_rows = context.state_store(self.outer_store)
        join = side.join()
        partners = side.partners
        progress = context.shared(self.outer_store, _new_progress)
        _keep_in_metadata(progress, context)
        emit_expired = self._emitter(context, forward, progress)
        progress.advance_when_idle(context, emit_expired)

        def outer_join(key: object, value: object, timestamp: int) -> None:
            progress.stream_time = max(progress.stream_time, timestamp)
            if key is None or value is None:
                if outer and value is not None:
                    forward(key, join(key, value, None), timestamp)
                else:
                    context.dropped(NULL_KEY_OR_VALUE)
                return
            if timestamp == progress.stream_time:
                emit_expired()
            first, last = partners(timestamp)
            is_unmatched = outer
            for other_time, other in fetch(key, first, last):
                is_unmatched = False
                outer_rows.remove(key, other_time, not side.left)
                forward(key, join(key, value, other), max(timestamp, other_time))
            if not is_unmatched:
                return
            if last < progress.stream_time:
                # The window has ended: Kafka Streams gives late unmatched records no grace period.
                forward(key, join(key, value, None), timestamp)
            else:
                outer_rows.put(key, value, timestamp, side.left)
                progress.first_waiting = min(progress.first_waiting, timestamp)

        return outer_join

    def _emitter(self, context: OperatorContext, forward: Forward, progress: JoinProgress) -> Callable[[], bool]:
        """Return a function that emits the rows of both sides whose window closed before the stream time.

        Each row is emitted with its own timestamp. The function returns False if there was nothing to emit.
        """
        side = self.side
        outer_rows = context.state_store(self.outer_store)
        own_wait = side.after_ms + self.grace_ms
        other_wait = side.before_ms + self.grace_ms  # the other side's window is the mirror image of this side's
        left_wait, right_wait = (own_wait, other_wait) if side.left else (other_wait, own_wait)

        def emit_until(stream_time: int) -> int:
            expired_rows = outer_rows.pop_until(stream_time - left_wait, stream_time - right_wait)
            return side.forward_unmatched(context, forward, expired_rows)

        def emit_expired() -> bool:
            stream_time = progress.stream_time
            is_due = progress.first_waiting + own_wait < stream_time
            if is_due:
                last_read = last_row_read(outer_rows, emit_until(stream_time))
                progress.first_waiting = last_read if last_read >= 0 else END_OF_TIME_MS
            return is_due

        def emit_all() -> None:
            emit_until(END_OF_TIME_MS)

        context.at_end_of_input(emit_all)
        return emit_expired


def last_row_read(outer_rows: OuterJoinStore, last_emitted: int) -> int:
    """Return the timestamp of the held row at which Kafka Streams stops reading when it emits expired rows.

    Kafka Streams reads held rows in order until it has seen an open window on both sides and one more row, or else all
    rows. It takes the timestamp of the last row it read for that of the first held row, and reads the rows again only
    when that timestamp expires. So it may emit a row later than the end of its window.

    Parameters
    ----------
    last_emitted : int
        Timestamp of the last emitted row; -1 if no row was emitted.

    Returns
    -------
    int
        The timestamp, or -1 if there was no row.
    """
    left = outer_rows.first_row(True)
    right = outer_rows.first_row(False)
    if left is None or right is None:
        last = outer_rows.last_row()
        return max(last_emitted, -1 if last is None else last.timestamp)
    later_row = max(left, right)
    if outer_rows.num_values(later_row) > 1:
        return later_row.timestamp  # each value is a row of its own in Kafka Streams
    return (outer_rows.row_after(later_row) or later_row).timestamp


def _new_progress() -> JoinProgress:
    """Return a progress whose first waiting record is that of Kafka Streams: see `last_row_read`."""
    return JoinProgress(first_waiting=END_OF_TIME_MS)


def _keep_in_metadata(progress: JoinProgress, context: OperatorContext) -> None:
    """Read both times from the metadata of the last commit, and write them with every commit."""
    committed_ms = context.keep_in_metadata("stream_time", lambda: progress.stream_time)
    progress.stream_time = max(progress.stream_time, committed_ms)
    first_waiting = context.keep_in_metadata("first_waiting", lambda: progress.first_waiting)
    if first_waiting >= 0:
        progress.first_waiting = first_waiting
