"""`ProgressLine`: the progress of a running application on standard error, in one line on a terminal."""

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
    """The estimated size of a store."""

    @property
    def rows(self) -> int: ...
    @property
    def bytes(self) -> int: ...


class Counts(Protocol):
    """The counters of a run since its start, which an engine reports."""

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
    """Shows the records read and written, the rate, and the lag.

    Parameters
    ----------
    stream : text file
        Default: standard error. A terminal has one line that changes; other streams get a line every five seconds, if
        a counter has changed.
    clock : Clock
    """

    def __init__(self, stream: TextIO | None = None, clock: Clock | None = None) -> None:
        self.stream = stream or sys.stderr
        self.clock = clock or SystemClock()
        self.start_ms = self.clock.uptime_ms()
        self.shown_ms = self.start_ms
        self.shown_in = 0
        self.in_place = self.stream.isatty()
        self.latest: Counts | None = None
        self.printed: tuple[str, int] | None = None

    def show(self, progress: Counts) -> None:
        """Show the counters. The caller may call it every second."""
        self.latest = progress
        now_ms = self.clock.uptime_ms()
        if not self.in_place and now_ms - self.shown_ms < LINE_EVERY_MS:
            return
        rate = (progress.records_in - self.shown_in) * 1000 / max(now_ms - self.shown_ms, 1)
        self.shown_ms = now_ms
        self.shown_in = progress.records_in
        state = _counts(progress), progress.lag
        if self.in_place or state != self.printed:
            self._write(f"{state[0]}, {rate:,.0f}/s, lag {state[1]:,}{_stream_time(progress)}")
        self.printed = state

    def finish(self) -> None:
        """Write the last line, and lines for dropped records and stores, if counters were shown."""
        if self.latest is None:
            return
        seconds = (self.clock.uptime_ms() - self.start_ms) / 1000
        self._write(f"done: {_counts(self.latest)}, {seconds:.1f} s" + ("\n" if self.in_place else ""))
        self.in_place = False
        for (operator, reason), count in sorted(self.latest.dropped.items()):
            self._write(f"  {count:,} dropped by {operator}: {reason}")
        for store, extent in sorted(self.latest.stores.items()):
            self._write(f"  {store} holds about {counted(extent.rows, 'row')}, {size(extent.bytes)}")

    def _write(self, text: str) -> None:
        try:
            self.stream.write(f"\r\x1b[2K{text}" if self.in_place else f"{text}\n")
            self.stream.flush()
        except OSError:  # the reader has ended: the application goes on
            self.in_place = False
            self.stream = io.StringIO()


def _stream_time(progress: Counts) -> str:
    """Return the stream time of the slowest task as text."""
    if progress.stream_time < 0:
        return ""
    return f", at {datetime.fromtimestamp(progress.stream_time / 1000, UTC):%Y-%m-%d %H:%M:%S}"


def _counts(progress: Counts) -> str:
    dropped = sum(progress.dropped.values())
    skipped = f", {dropped:,} dropped" if dropped else ""
    return f"{progress.records_in:,} records in, {sum(progress.records_out.values()):,} out{skipped}"
