"""The progress line of a running application, on standard error: replaced in place on a terminal, else now and then."""

from __future__ import annotations

import sys
from typing import TextIO

from kstreams.clock import Clock, SystemClock

LINE_EVERY_MS = 5_000


class ProgressLine:
    """Shows how many records went in and out, how fast, and how many are still to come.

    Parameters
    ----------
    stream : text file
        Standard error; a terminal gets one line that changes, anything else a line each five seconds.
    clock : Clock
        Where the rate's time comes from.
    """

    def __init__(self, stream: TextIO | None = None, clock: Clock | None = None) -> None:
        self.stream, self.clock = stream or sys.stderr, clock or SystemClock()
        self.start_ms = self.shown_ms = self.clock.now_ms()
        self.in_place = self.stream.isatty()
        self.last: tuple[int, int] = (self.start_ms, 0)

    def show(self, state: str, records_in: int, records_out: int, lag: int) -> None:
        """Tell where the application stands; cheap enough for every second."""
        now_ms = self.clock.now_ms()
        if not self.in_place and now_ms - self.shown_ms < LINE_EVERY_MS:
            return
        since_ms, before = self.last
        rate = (records_in - before) * 1000 / max(now_ms - since_ms, 1)
        self.last, self.shown_ms = (now_ms, records_in), now_ms
        self._write(f"{state}: {records_in:,} records in ({rate:,.0f}/s), {records_out:,} out, lag {lag:,}")

    def finish(self, records_in: int, records_out: int) -> None:
        """The closing line."""
        seconds = (self.clock.now_ms() - self.start_ms) / 1000
        self._write(f"done: {records_in:,} records in, {records_out:,} out, {seconds:.1f} s")
        if self.in_place:
            self.stream.write("\n")

    def _write(self, text: str) -> None:
        self.stream.write(f"\r\x1b[2K{text}" if self.in_place else f"{text}\n")
        self.stream.flush()
