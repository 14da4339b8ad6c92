"""`max.timestamp.ahead`: a record from the future does not close the windows of all others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import kstreams as ks
from kstreams.testing import TopologyTestDriver
from tests.error_policies.engines import LETTERS, row

FAR_MS = 2**60
REASON = "timestamp too far ahead of the clock"
ROWS = [row(b"1", timestamp=1), row(b"2", timestamp=FAR_MS), *(row(b"%d" % n, timestamp=n) for n in range(2, 300))]


def windowed() -> ks.Topology:
    builder = ks.StreamsBuilder({"default.dsl.store": "in_memory"})
    grouped = builder.stream("in", key=str, value=str).filter(ks.value != "x").group_by_key()
    counts = grouped.windowed_by(ks.TimeWindows(size=1_000, grace=0)).count()
    counts.to_stream(lambda key, _: key.key, key=str).to("out", value=int)
    return builder.build()


def copied(**options: Any) -> Callable[[], ks.Topology]:
    def build() -> ks.Topology:
        builder = ks.StreamsBuilder()
        builder.stream("in", key=str, value=str, **options).to("out")
        return builder.build()

    return build


@pytest.mark.parametrize("min_rows", [0, 10**6], ids=["columns", "records"])
def test_a_record_from_the_future_closes_no_window(run: Any, min_rows: int) -> None:
    settings = {"columns_min_rows": min_rows}
    without = run(windowed, ROWS, **settings)
    assert sum(without.dropped.values()) == 298, "all that follow come too late"
    seen = run(windowed, ROWS, max_timestamp_ahead=60_000, **settings)
    assert seen.error is None
    assert dict(seen.dropped) == {("KSTREAM-SOURCE-0000000000", REASON): 1}
    assert int.from_bytes(seen.values()[-1]) == 299


def test_it_goes_to_the_dead_letters_with_the_reason(run: Any) -> None:
    letters = {"errors_dead_letter_queue_topic_name": LETTERS, "errors_dead_letter_queue_dropped_records": True}
    seen = run(copied(), ROWS[:3], max_timestamp_ahead=60_000, **letters)
    assert seen.values() == [b"1", b"2"]
    (letter,) = seen.letters
    assert dict(letter.headers)["__streams.errors.reason"] == REASON.encode()
    assert (letter.value, dict(letter.headers)["__streams.errors.offset"]) == (b"2", b"1")


def test_what_an_extractor_tells_counts_too(run: Any) -> None:
    told = lambda record, _: FAR_MS if record.value == "1" else record.timestamp  # noqa: E731
    seen = run(copied(timestamp_extractor=told), [row(b"1"), row(b"2")], max_timestamp_ahead=60_000)
    assert seen.values() == [b"2"]


def test_a_time_that_none_may_have_stays_a_failure(run: Any) -> None:
    seen = run(copied(), [row(b"1", timestamp=2**62)], max_timestamp_ahead=60_000)
    assert "after the last valid one" in str(seen.error)


def test_the_clock_decides_to_the_millisecond() -> None:
    with TopologyTestDriver(copied()(), {"max.timestamp.ahead": 100}, start_ms=1_000) as driver:
        topic = driver.create_input_topic("in", key=str, value=str)
        for time_ms in (1_100, 1_101):
            topic.pipe_input("k", str(time_ms), timestamp=time_ms)
        driver.advance_wall_clock_time(1)
        topic.pipe_input("k", "later", timestamp=1_101)
        assert driver.create_output_topic("out", key=str, value=str).read_values() == ["1100", "later"]
        assert list(driver.dropped.values()) == [1]


def test_what_the_application_writes_itself_is_not_held_off(run: Any) -> None:
    def build() -> ks.Topology:
        builder = ks.StreamsBuilder()
        shifted = builder.stream("in", key=str, value=str).process(Shifted, key=str, value=str)
        shifted.repartition().to("out")
        return builder.build()

    assert run(build, [row(b"1")], max_timestamp_ahead=60_000).values() == [b"1"]


class Shifted(ks.Processor[str, str, str, str]):
    """Forwards under a time far ahead, such as that of a reminder."""

    def init(self, context: Any) -> None:
        self.context = context

    def process(self, record: Any) -> None:
        self.context.forward(record.with_timestamp(FAR_MS))
