"""Runs: records of a batch that become one session each. Pure logic.

A run is a sequence of consecutive records of one key, each later than the one before by at most the gap. Together with
the sessions that its first record extends, it becomes one session, as it would record by record.
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
    """A session of a key: with its state in the store, or with the run of this batch that makes it."""

    window: Window
    state: Any
    run: SessionRun | None = None


@dataclass(slots=True, eq=False)
class SessionRun:
    """Records that become one session.

    Attributes
    ----------
    rows : array of int
        The indices of the records in the batch.
    merged_sessions : list of Session
        The sessions that the run extends.
    removals : list of int
        For each merged session, the row at which the record path would remove it.
    pass_index : int
        0, or one more than the pass of the runs whose sessions it extends.
    """

    key: Any
    rows: Integers
    merged_sessions: list[Session]
    window: Window
    removals: list[int]
    pass_index: int
    state: Any = None

    @property
    def session(self) -> Windowed:
        return Windowed(self.key, self.window)


FindSessions: TypeAlias = Callable[[Any, int, int], list[Session]]
"""`find(key, first_ms, last_ms)` returns the sessions that overlap these times, ordered by end and start."""


class Times(NamedTuple):
    """The event time of each record, and the store's time before the record; both in ms."""

    events: Integers
    store_times: Integers


def runs_of(
    keys: pa.Array, times: Times, gap_ms: int, retention_ms: int, find: FindSessions, max_runs: float
) -> list[SessionRun]:
    """Return all runs of a batch. Runs of one key are in order.

    Raises
    ------
    Inexact
        If a run would extend an expired session, which only the record path handles; or if there are more than
        `max_runs` runs.
    """
    encoded = keys.dictionary_encode()
    codes = encoded.indices.to_numpy().astype(np.int64)
    order = np.argsort(codes, kind="stable")
    steps = np.diff(times.events[order])
    if 1 + np.count_nonzero((np.diff(codes[order]) != 0) | (steps < 0) | (steps > gap_ms)) > max_runs:
        raise Inexact("the runs are too short to be worth it")
    keys_in_batch = _split_by_key(encoded.dictionary.to_pylist(), codes[order], order, times, gap_ms, retention_ms)
    return [run for key_in_batch in keys_in_batch for run in key_in_batch.runs(find)]


def _split_by_key(
    unique_keys: list[Any], codes: Integers, order: Integers, times: Times, gap_ms: int, retention_ms: int
) -> Iterator[_RecordsOfKey]:
    ends = np.flatnonzero(np.diff(codes)) + 1
    for rows, code in zip(np.split(order, ends), codes[np.concatenate(([0], ends))].tolist(), strict=True):
        yield _RecordsOfKey(
            unique_keys[code], rows, Times(times.events[rows], times.store_times[rows]), gap_ms, retention_ms
        )


@dataclass(frozen=True, slots=True)
class _RecordsOfKey:
    """The records of one key in a batch."""

    key: Any
    rows: Integers
    times: Times
    gap_ms: int
    retention_ms: int

    def runs(self, find: FindSessions) -> Iterator[SessionRun]:
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
                sessions = _with_session_of(sessions, run)
                yield run

    def _run(self, sessions: list[Session], start: int, end: int) -> tuple[SessionRun, int]:
        """Return the run from `start` on, and its end: before the first record that extends another session."""
        events = self.times.events[start:end]
        first = int(events[0])
        merged_sessions: list[Session] = []
        later: list[Session] = []
        for session in sessions:
            if session.window.end_ms >= first - self.gap_ms:
                (merged_sessions if session.window.start_ms <= first + self.gap_ms else later).append(session)
        if later:
            first_extending_ms = min(session.window.start_ms for session in later) - self.gap_ms
            events = events[: int(np.searchsorted(events, first_extending_ms))]
        end = start + len(events)
        self._check_expiry(merged_sessions, start, end)
        opened = merged(first, [session.window for session in merged_sessions])
        window = Window(opened.start_ms, max(opened.end_ms, int(events[-1])))
        removals = [start + _removal_index(session.window, opened, events) for session in merged_sessions]
        pass_index = max(
            (1 + session.run.pass_index for session in merged_sessions if session.run is not None), default=0
        )
        rows = self.rows[start:end]
        return SessionRun(self.key, rows, merged_sessions, window, self.rows[removals].tolist(), pass_index), end

    def _check_expiry(self, merged_sessions: list[Session], start: int, end: int) -> None:
        """Raise Inexact if a session has expired when its next record comes."""
        session_ends = [session.window.end_ms for session in merged_sessions]
        events = self.times.events[start:end]
        store_times = self.times.store_times[start:end]
        if session_ends and min(session_ends) <= int(store_times[0]) - self.retention_ms:
            raise Inexact("touches a session that has expired")
        if (events[:-1] <= store_times[1:] - self.retention_ms).any():
            raise Inexact("a session of the batch expires within it")


def _removal_index(window: Window, opened: Window, events: Integers) -> int:
    """Return the index of the record that removes a merged session: 0, unless the first record leaves it as it is."""
    if window != opened:
        return 0
    return min(int(np.searchsorted(events, window.end_ms, side="right")), len(events) - 1)


def _with_session_of(sessions: list[Session], run: SessionRun) -> list[Session]:
    other_sessions = [session for session in sessions if session not in run.merged_sessions]
    return sorted([*other_sessions, Session(run.window, None, run)], key=lambda session: session.window[::-1])
