"""Runs of a batch that become one session each: pure logic, by which records and sessions follow each other.

A run is a stretch of a key's records, in the order they came, whose times rise by no more than the gap: with the
sessions that its first record touches it becomes one session, as it would record by record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from kstreams.expressions.exactness import Inexact
from kstreams.kernel.batch import Integers
from kstreams.record import Window, Windowed
from kstreams.windows.kinds import merged


class Session(NamedTuple):
    """A session of a key: what it holds, or the run of this batch that makes it."""

    window: Window
    state: Any
    run: SessionRun | None = None


@dataclass(slots=True, eq=False)
class SessionRun:
    """Records that become one session.

    `rows` are their places in the batch; `removals` say at which of them each touched session goes. `turn` is one more
    than that of the runs whose sessions it touches.
    """

    key: Any
    rows: Integers
    touched: list[Session]
    window: Window
    removals: list[int]
    turn: int
    state: Any = None

    @property
    def session(self) -> Windowed:
        return Windowed(self.key, self.window)


Find: TypeAlias = Callable[[Any, int, int], list[Session]]
"""`find(key, first_ms, last_ms)`: the sessions that reach into these times, by end and start."""


class Times(NamedTuple):
    """Of each record: its event time, and how far the store had come before it; both in ms."""

    events: Integers
    seen: Integers


def runs_of(keys: pa.Array, times: Times, gap_ms: int, retention_ms: int, find: Find, most: float) -> list[SessionRun]:
    """All runs of a batch, those of one key in order.

    Raises
    ------
    Inexact
        When a session would be touched that has expired by then: what comes of it, only the record path knows. And when
        there are more than `most` runs.
    """
    encoded = keys.dictionary_encode()
    codes = encoded.indices.to_numpy().astype(np.int64)
    order = np.argsort(codes, kind="stable")
    steps = np.diff(times.events[order])
    if 1 + np.count_nonzero((np.diff(codes[order]) != 0) | (steps < 0) | (steps > gap_ms)) > most:
        raise Inexact("the runs are too short to be worth it")
    makers = _makers(encoded.dictionary.to_pylist(), codes[order], order, times, gap_ms, retention_ms)
    return [run for maker in makers for run in maker.runs(find)]


def _makers(
    names: list[Any], codes: Integers, order: Integers, times: Times, gap_ms: int, retention_ms: int
) -> Iterator[_OfKey]:
    ends = np.flatnonzero(np.diff(codes)) + 1
    for rows, code in zip(np.split(order, ends), codes[np.concatenate(([0], ends))].tolist(), strict=True):
        yield _OfKey(names[code], rows, Times(times.events[rows], times.seen[rows]), gap_ms, retention_ms)


@dataclass(frozen=True, slots=True)
class _OfKey:
    """The records of one key."""

    key: Any
    rows: Integers
    times: Times
    gap_ms: int
    retention_ms: int

    def runs(self, find: Find) -> Iterator[SessionRun]:
        events = self.times.events
        gap_ms = self.gap_ms
        sessions = find(self.key, int(events.min()) - gap_ms, int(events.max()) + gap_ms)
        steps = np.diff(events)
        breaks = (np.flatnonzero((steps < 0) | (steps > gap_ms)) + 1).tolist()
        start = 0
        ends = [*breaks, len(events)]
        for limit in ends:
            while start < limit:
                run, start = self._run(sessions, start, limit)
                sessions = _with(sessions, run)
                yield run

    def _run(self, sessions: list[Session], start: int, end: int) -> tuple[SessionRun, int]:
        """The run from `start` on, and where it ends: before a record that touches what its first does not."""
        events = self.times.events[start:end]
        first = int(events[0])
        touched: list[Session] = []
        later: list[Session] = []
        for session in sessions:
            if session.window.end_ms >= first - self.gap_ms:
                (touched if session.window.start_ms <= first + self.gap_ms else later).append(session)
        if later:
            nearest = min(session.window.start_ms for session in later) - self.gap_ms
            events = events[: int(np.searchsorted(events, nearest))]
        end = start + len(events)
        self._check(touched, start, end)
        opened = merged(first, [session.window for session in touched])
        window = Window(opened.start_ms, max(opened.end_ms, int(events[-1])))
        removals = [start + _removed_at(session.window, opened, events) for session in touched]
        turn = max((1 + session.run.turn for session in touched if session.run is not None), default=0)
        rows = self.rows[start:end]
        return SessionRun(self.key, rows, touched, window, self.rows[removals].tolist(), turn), end

    def _check(self, touched: list[Session], start: int, end: int) -> None:
        reaches = [session.window.end_ms for session in touched]
        events = self.times.events[start:end]
        stream_time = self.times.seen[start:end]
        if reaches and min(reaches) <= int(stream_time[0]) - self.retention_ms:
            raise Inexact("touches a session that has expired")
        if (events[:-1] <= stream_time[1:] - self.retention_ms).any():
            raise Inexact("a session of the batch expires within it")


def _removed_at(window: Window, opened: Window, events: Integers) -> int:
    """At which record a touched session goes: at the first, unless the first leaves it as it is."""
    if window != opened:
        return 0
    return min(int(np.searchsorted(events, window.end_ms, side="right")), len(events) - 1)


def _with(sessions: list[Session], run: SessionRun) -> list[Session]:
    untouched = [session for session in sessions if session not in run.touched]
    return sorted([*untouched, Session(run.window, None, run)], key=lambda session: session.window[::-1])
