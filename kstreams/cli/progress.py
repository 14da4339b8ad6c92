"""The progress line of a running application, on standard error: replaced in place on a terminal, else now and then."""

from __future__ import annotations

import io
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Protocol, TextIO

from kstreams.cli.output import counted, size
from kstreams.kernel.clock import Clock, SystemClock

LINE_EVERY_MS = 5_000


class Extent(Protocol):
    """How much a store holds, roughly."""

    @property
    def rows(self) -> int: ...
    @property
    def bytes(self) -> int: ...


class Counts(Protocol):
    """The counters that an engine reports of a run, since its start."""

    @property
    def records_in(self) -> int: ...
    @property
    def records_out(self) -> Mapping[str, int]: ...
    @property
    def dropped(self) -> Mapping[tuple[str, str], int]: ...
    @property
    def lag(self) -> int: ...
    @property
    def stores(self) -> Mapping[str, Extent]: ...
    @property
    def stream_time(self) -> int: ...


class ProgressLine:
    """Shows how many records went in and out, how fast, and how many are still to come.

    Parameters
    ----------
    stream : text file
        Standard error; a terminal gets one line that changes, anything else a line each five seconds, unless nothing
        has changed.
    clock : Clock
        Where the rate's time comes from.
    """

    def __init__(self, stream: TextIO | None = None, clock: Clock | None = None) -> None:
        self.stream = stream or sys.stderr
        self.clock = clock or SystemClock()
        self.start_ms = self.shown_ms = self.clock.uptime_ms()
        self.shown_in = 0
        self.in_place = self.stream.isatty()
        self.seen: Counts | None = None
        self.printed: tuple[str, int] | None = None

    def show(self, progress: Counts) -> None:
        """Tell where the application stands; cheap enough for every second."""
        self.seen = progress
        now_ms = self.clock.uptime_ms()
        if not self.in_place and now_ms - self.shown_ms < LINE_EVERY_MS:
            return
        rate = (progress.records_in - self.shown_in) * 1000 / max(now_ms - self.shown_ms, 1)
        self.shown_ms = now_ms
        self.shown_in = progress.records_in
        state = _counts(progress), progress.lag
        if self.in_place or state != self.printed:
            self._write(f"{state[0]}, {rate:,.0f}/s, lag {state[1]:,}{_reached(progress)}")
        self.printed = state

    def finish(self) -> None:
        """The closing line, and one for each reason that dropped records and each store; nothing if none was shown."""
        if self.seen is None:
            return
        seconds = (self.clock.uptime_ms() - self.start_ms) / 1000
        self._write(f"done: {_counts(self.seen)}, {seconds:.1f} s" + ("\n" if self.in_place else ""))
        self.in_place = False
        for (operator, reason), count in sorted(self.seen.dropped.items()):
            self._write(f"  {count:,} dropped by {operator}: {reason}")
        for store, extent in sorted(self.seen.stores.items()):
            self._write(f"  {store} holds about {counted(extent.rows, 'row')}, {size(extent.bytes)}")

    def _write(self, text: str) -> None:
        try:
            self.stream.write(f"\r\x1b[2K{text}" if self.in_place else f"{text}\n")
            self.stream.flush()
        except OSError:  # nobody reads it any more: no reason to stop the application
            self.in_place = False
            self.stream = io.StringIO()


def _reached(progress: Counts) -> str:
    """How far the slowest task is in time."""
    if progress.stream_time < 0:
        return ""
    return f", at {datetime.fromtimestamp(progress.stream_time / 1000, UTC):%Y-%m-%d %H:%M:%S}"


def _counts(progress: Counts) -> str:
    dropped = sum(progress.dropped.values())
    skipped = f", {dropped:,} dropped" if dropped else ""
    return f"{progress.records_in:,} records in, {sum(progress.records_out.values()):,} out{skipped}"
