"""Windowed join of two streams: what each side keeps, and what each side does with a record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kstreams.processor.context.operator_context import ClosureOperator, OperatorContext
from kstreams.processor.topology.operator import Forward
from kstreams.state.api import OuterJoinStore


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

        def self_join(key: object, value: object, timestamp: int) -> None:
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


NULL_KEY_OR_VALUE = "null key or value"
ALL_TIME = 2**63 - 1


@dataclass(frozen=True, slots=True)
class JoinWindowOperator(ClosureOperator):
    """Keeps the records of one side for the other: forwards to the join first, so that none meets itself."""

    store: str

    def bind(self, context: OperatorContext, forward: Forward) -> Forward:
        put_row = context.state_store(self.store).put

        def keep(key: object, value: object, timestamp: int) -> None:
            forward(key, value, timestamp)
            if key is not None:
                put_row(key, value, timestamp)

        return keep


@dataclass(frozen=True, slots=True)
class StreamJoinSide:
    """One side of a join.

    Parameters
    ----------
    left : bool
        Which side it is.
    other_store : str
        Window store with the other side's records.
    before_ms, after_ms : int
        The window seen from this side: partners have timestamps in [timestamp - before, timestamp + after].
    joiner : callable
        `joiner(key, left, right)`.
    """

    left: bool
    other_store: str
    before_ms: int
    after_ms: int
    joiner: Callable[[Any, Any, Any], Any]

    def partners(self, timestamp: int) -> tuple[int, int]:
        """First and last timestamp of partners; there is no time before the epoch.

        Examples
        --------
        >>> StreamJoinSide(True, "right", before_ms=10, after_ms=5, joiner=max).partners(7)
        (0, 12)
        """
        first = timestamp - self.before_ms
        last = timestamp + self.after_ms
        return (first, last) if first >= 0 <= last else (max(0, first), max(0, last))

    def join(self) -> Callable[[Any, Any, Any], Any]:
        """The joiner as `join(key, this, other)`."""
        joiner = self.joiner
        return joiner if self.left else lambda key, this, other: joiner(key, other, this)


@dataclass(frozen=True, slots=True)
class InnerStreamJoinOperator(ClosureOperator):
    """Joins a record with those of the other side that came before it: each pair once, by whichever is processed last.

    A late record still meets what the other side's store holds.
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
    """One side of a left or outer join: rows of an outer side that found no partner wait until their window closes.

    Parameters
    ----------
    side : StreamJoinSide
    outer : bool
        Whether rows of this side are emitted without a partner (left join: those of the left side alone).
    outer_store : str
        Where rows wait; shared by both sides.
    grace_ms : int
        How long after the end of its window, in stream time, a row still waits.
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
        time = context.shared(self.outer_store, _JoinTime)
        time.remember(context)
        emit_expired = self._emitter(context, forward, time)
        if not time.passes:  # once for both sides
            time.passes = True
            context.at_idle(_passing_time(time, emit_expired))

        def outer_join(key: object, value: object, timestamp: int) -> None:
            time.latest = max(time.latest, timestamp)
            if key is None or value is None:
                if outer and value is not None:
                    forward(key, join(key, value, None), timestamp)
                else:
                    context.dropped(NULL_KEY_OR_VALUE)
                return
            if timestamp == time.latest:
                emit_expired(timestamp)
            first, last = partners(timestamp)
            alone = outer
            for other_time, other in fetch(key, first, last):
                alone = False
                outer_rows.remove(key, other_time, not side.left)
                forward(key, join(key, value, other), max(timestamp, other_time))
            if not alone:
                return
            if last < time.latest:
                # Its window is over already: the grace is not for records that come alone and late.
                forward(key, join(key, value, None), timestamp)
            else:
                outer_rows.put(key, value, timestamp, side.left)
                time.first_waiting = min(time.first_waiting, timestamp)

        return outer_join

    def _emitter(self, context: OperatorContext, forward: Forward, time: _JoinTime) -> Callable[[int], bool]:
        """Emits the rows of both sides whose window closed before a stream time, each at its own time."""
        side = self.side
        outer_rows = context.state_store(self.outer_store)
        joiner = self.side.joiner
        own_wait = side.after_ms + self.grace_ms
        other_wait = side.before_ms + self.grace_ms  # what is before seen from here is after seen from there
        left_wait, right_wait = (own_wait, other_wait) if side.left else (other_wait, own_wait)

        def emit_until(stream_time: int) -> int:
            last = -1
            due = outer_rows.pop_until(stream_time - left_wait, stream_time - right_wait)
            for key, value, timestamp, left in context.sending_meanwhile(due):
                forward(key, joiner(key, value, None) if left else joiner(key, None, value), timestamp)
                last = timestamp
            return last

        def emit_expired(stream_time: int) -> bool:
            is_due = time.first_waiting + own_wait < stream_time
            if is_due:
                read = last_row_read(outer_rows, emit_until(stream_time))
                time.first_waiting = read if read >= 0 else ALL_TIME
            return is_due

        def emit_all() -> None:
            emit_until(ALL_TIME)

        context.at_end_of_input(emit_all)
        return emit_expired


def _passing_time(time: _JoinTime, emit_expired: Callable[[int], bool]) -> Callable[[int], bool]:
    def pass_time(elapsed_ms: int) -> bool:
        if time.latest < 0:
            return False
        time.latest += elapsed_ms
        return emit_expired(time.latest)

    return pass_time


def last_row_read(outer_rows: OuterJoinStore, emitted: int) -> int:
    """The timestamp at which Kafka Streams stops to read waiting rows: it looks at them again only when that is over.

    It reads in order until it has met an open window on both sides and one row more, else to the end, and takes the
    timestamp it read last for the first that waits: so a row may come out later than its window would let it.

    Parameters
    ----------
    emitted : int
        Timestamp of the last row that was emitted; -1 when there was none.

    Returns
    -------
    int
        -1 when there was no row at all.
    """
    left = outer_rows.first_row(True)
    right = outer_rows.first_row(False)
    if left is None or right is None:
        last = outer_rows.last_row()
        return max(emitted, -1 if last is None else last.timestamp)
    both_met = max(left, right)
    if outer_rows.num_values(both_met) > 1:
        return both_met.timestamp  # each value is a row for Kafka Streams
    return (outer_rows.row_after(both_met) or both_met).timestamp


class _JoinTime:
    """What both sides of one join share: the stream time, and the first timestamp that is thought to wait."""

    __slots__ = ("first_waiting", "latest", "passes")

    def __init__(self) -> None:
        self.latest = -1
        self.first_waiting = ALL_TIME
        self.passes = False  # whether one of both sides is told when input is idle

    def remember(self, context: OperatorContext) -> None:
        """Keep both with every commit."""
        self.latest = max(self.latest, context.keep_in_metadata("stream_time", lambda: self.latest))
        first_waiting = context.keep_in_metadata("first_waiting", lambda: self.first_waiting)
        if first_waiting >= 0:
            self.first_waiting = first_waiting
