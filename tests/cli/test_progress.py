"""The progress of a run, into a pipe."""

from __future__ import annotations

import io
from typing import Any, NamedTuple

import pytest

from kstreams.cli.progress import LINE_EVERY_MS, ProgressLine


class Extent(NamedTuple):
    rows: int
    bytes: int


class Counts(NamedTuple):
    records_in: int
    lag: int = 0
    records_out: dict[str, int] = {}
    dropped: dict[tuple[str, str], int] = {}
    stores: dict[str, Extent] = {}
    stream_time: int = -1


class HandClock:
    """A clock that a test turns."""

    now = 0

    def uptime_ms(self) -> int:
        return self.now


@pytest.fixture
def line() -> Any:
    clock, stream = HandClock(), io.StringIO()
    progress = ProgressLine(stream, clock)  # type: ignore[arg-type]

    def show(*counts: Counts) -> list[str]:
        for each in counts:
            clock.now += LINE_EVERY_MS
            progress.show(each)
        return stream.getvalue().splitlines()

    show.progress = progress
    return show


def test_into_a_pipe_only_changes_are_shown(line):
    shown = line(Counts(1), Counts(1), Counts(1), Counts(2), Counts(2))
    assert [text.split(",")[0] for text in shown] == ["1 records in", "2 records in"]


def test_the_rate_is_that_of_the_last_seconds_not_of_the_silence_before(line):
    assert "1,000/s" in line(Counts(1), Counts(1), Counts(1), Counts(5_001))[-1]


def test_a_pipe_that_nobody_reads_stops_nothing():
    class Closed(io.StringIO):
        def flush(self) -> None:
            raise BrokenPipeError

    clock = HandClock()
    progress = ProgressLine(Closed(), clock)  # type: ignore[arg-type]
    clock.now = LINE_EVERY_MS
    progress.show(Counts(1))
    progress.finish()


def test_it_says_how_far_time_is(line):
    assert line(Counts(1, stream_time=1_700_000_000_000))[-1].endswith(", lag 0, at 2023-11-14 22:13:20")


def test_the_last_lines_say_what_was_dropped_and_what_stores_hold(line):
    line(Counts(3, dropped={("COUNT", "late"): 1}, stores={"counts": Extent(1_000, 2_500), "none": Extent(1, 0)}))
    line.progress.finish()
    assert line()[-3:] == [
        "  1 dropped by COUNT: late",
        "  counts holds about 1,000 rows, 2.4 KiB",
        "  none holds about 1 row, 0 B",
    ]
