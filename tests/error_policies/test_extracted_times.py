"""What a timestamp extractor may return: milliseconds or an aware datetime. All else is the fault of its record."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import pandas as pd
import pytest

import kstreams as ks
from kstreams.errors import ProcessingError
from tests.columns.both_paths import assert_same_if_columns
from tests.error_policies.engines import row
from tests.error_policies.test_times import CONTINUE, INVALID

Run = Any
NOON_MS = 1_767_268_800_000
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)

TIMES: dict[str, tuple[Any, int]] = {
    "milliseconds": (NOON_MS, NOON_MS),
    "an aware datetime": (NOON, NOON_MS),
    "an aware datetime of another zone": (NOON.astimezone(timezone(timedelta(hours=-5))), NOON_MS),
    "an aware datetime with microseconds": (NOON + timedelta(microseconds=1999), NOON_MS + 1),
    "an aware Timestamp of pandas": (pd.Timestamp(NOON), NOON_MS),
    "an int of NumPy": (np.int64(NOON_MS), NOON_MS),
}
NO_TIMES: dict[str, Any] = {
    "seconds": 1767268800.5,
    "milliseconds as float": float(NOON_MS),
    "a float of NumPy": np.float64(NOON_MS),
    "a text of digits": str(NOON_MS),
    "an ISO time": NOON.isoformat(),
    "a naive datetime": NOON.replace(tzinfo=None),
    "a date": date(2026, 1, 1),
    "a datetime64 of NumPy": np.datetime64("2026-01-01T12:00"),
    "NaT": pd.NaT,
    "a duration": timedelta(seconds=5),
    "true": True,
    "a truth value of NumPy": np.True_,
    "nothing": None,
    "NaN": float("nan"),
    "a list": [NOON_MS],
}


def timed(time: Any, *, by_default: bool = False, after: str = "odd", table: bool = False) -> Callable[[], ks.Topology]:
    """A copy of the input under the time that an extractor gives to the value "odd"."""

    def extractor(record: ks.Record[str, str], partition_time: int) -> Any:
        return time if record.value == after else 5

    def build() -> ks.Topology:
        builder = ks.StreamsBuilder({"default.timestamp.extractor": extractor} if by_default else {})
        own = {} if by_default else {"timestamp_extractor": extractor}
        if table:
            builder.table("in", key=str, value=str, **own).to_stream().to("out")
        else:
            builder.stream("in", key=str, value=str, **own).to("out")
        return builder.build()

    return build


@pytest.mark.parametrize(("time", "expected_ms"), TIMES.values(), ids=TIMES)
def test_a_time_is_taken(run: Run, time: Any, expected_ms: int) -> None:
    seen = run(timed(time), [row(b"even"), row(b"odd")])
    assert seen.error is None
    assert [each.timestamp for each in seen.rows["out"]] == [5, expected_ms]


@pytest.mark.parametrize("time", NO_TIMES.values(), ids=NO_TIMES)
def test_what_is_no_time_ends_the_run_with_what_to_return(run: Run, time: Any) -> None:
    seen = run(timed(time), [row(b"even"), row(b"odd"), row(b"even")])
    assert isinstance(seen.error, ProcessingError)
    text = str(seen.error)
    assert text.startswith("stream() at tests/error_policies/test_extracted_times.py:")
    assert f"in-0@1: InvalidTimestampError: its timestamp extractor returned {time!r}: return milliseconds" in text
    assert "or a datetime with a time zone" in text


@pytest.mark.parametrize("time", [1.5, None, NOON.replace(tzinfo=None)], ids=repr)
@pytest.mark.parametrize("shape", ["stream", "table", "by default"])
def test_a_handler_decides_about_that_record_alone(run: Run, time: Any, shape: str) -> None:
    build = timed(time, by_default=shape == "by default", table=shape == "table")
    rows = [row(b"even"), row(b"odd", timestamp=7), row(b"last"), row(b"odd", timestamp=9)]
    settings = {**CONTINUE, "errors_deadletterqueue_topic_name": "letters"}
    seen = run(build, rows, **settings)
    assert seen.error is None
    assert seen.values() == [b"even", b"last"]
    assert [(reason, count) for (_, reason), count in seen.dropped.items()] == [(INVALID, 2)]
    assert [letter.value for letter in seen.letters] == [b"odd", b"odd"]


def test_handlers_see_the_record_under_the_time_of_its_topic(run: Run) -> None:
    told = []

    def handler(context: Any, record: Any, error: Exception) -> Any:
        told.append((context.offset, record.value, record.timestamp, type(error).__name__))
        return ks.Response.resume()

    seen = run(timed(1.5), [row(b"even"), row(b"odd", timestamp=7)], deserialization_exception_handler=handler)
    assert (seen.values(), told) == ([b"even"], [(1, b"odd", 7, "InvalidTimestampError")])


def test_columns_see_the_same() -> None:
    def build() -> ks.Topology:
        builder = ks.StreamsBuilder()
        own = lambda record, _: NOON if record.value == "noon" else record.timestamp  # noqa: E731
        stream = builder.stream("in", key=str, value=str, timestamp_extractor=own)
        stream.filter(ks.value != "no").map_values(ks.value.str.upper()).to("out", value=str)
        return builder.build()

    seen = assert_same_if_columns(build, [[row(b"noon"), row(b"no"), row(b"late", timestamp=9)]])
    assert [timestamp for _, _, timestamp, _ in seen.outputs["out"]] == [NOON_MS, 9]


def test_an_extractor_that_raises_ends_the_run_as_in_kafka_streams(run: Run) -> None:
    def build() -> ks.Topology:
        builder = ks.StreamsBuilder()
        builder.stream("in", key=str, value=str, timestamp_extractor=lambda record, _: int(record.value)).to("out")
        return builder.build()

    seen = run(build, [row(b"5"), row(b"soon")], **CONTINUE)
    assert isinstance(seen.error, ProcessingError)
    assert "in-0@1: ValueError" in str(seen.error)
