"""Delays, throttles and schedules: records that are forwarded when the wall clock reaches a time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kstreams as ks
from kstreams.errors import ProcessingError, TopologyError
from kstreams.testing import TopologyTestDriver
from tests.support.examples import examples


class Driven:
    """An application from topic "in" to topic "out"; each output is a key and a timestamp."""

    def __init__(self, driver: TopologyTestDriver, value: Any) -> None:
        self.driver = driver
        self._in = driver.create_input_topic("in", key=str, value=value)
        self._out = driver.create_output_topic("out", key=str, value=value)

    def pipe(self, key: str | None, value: Any, timestamp: int, headers: Any = ()) -> None:
        self._in.pipe_input(key, value, timestamp, headers=headers)

    def after(self, milliseconds: int) -> list[tuple[Any, int]]:
        self.driver.advance_wall_clock_time(timedelta(milliseconds=milliseconds))
        return self.now()

    def now(self) -> list[tuple[Any, int]]:
        return [(record.key, record.timestamp) for record in self._out.read_records()]

    def records(self) -> list[ks.Record]:
        return self._out.read_records()


@contextmanager
def driven(build: Any, value: Any = str, start_ms: int = 0, **config: Any) -> Iterator[Driven]:
    builder = ks.StreamsBuilder()
    build(builder.stream("in", key=str, value=value)).to("out")
    settings = {key.replace("_", "."): setting for key, setting in config.items()}
    with TopologyTestDriver(builder.build(), settings, start_ms=start_ms) as driver:
        yield Driven(driver, value)


# --- delay ------------------------------------------------------------------------------------------------------------


def test_a_delay_forwards_a_record_so_long_after_its_timestamp() -> None:
    with driven(lambda stream: stream.delay(for_="1s"), start_ms=500) as app:
        app.pipe("a", "x", 200, headers=[("trace", b"7")])
        assert app.after(699) == []
        app.driver.advance_wall_clock_time(1)
        (record,) = app.records()
        assert (record.key, record.value, record.timestamp, record.headers) == ("a", "x", 200, (("trace", b"7"),))


def test_a_record_whose_time_is_past_is_forwarded_at_once() -> None:
    with driven(lambda stream: stream.delay(for_=1_000), start_ms=5_000) as app:
        app.pipe("a", "x", 4_000)
        assert app.now() == [("a", 4_000)]


def test_records_are_forwarded_in_the_order_of_their_times_and_of_arrival() -> None:
    with driven(lambda stream: stream.delay(until=ks.col("at")), value=dict[str, int]) as app:
        for key, at in [("late", 300), ("first", 100), ("second", 100), ("soon", 200)]:
            app.pipe(key, {"at": at}, 7)
        assert [key for key, _ in app.after(1_000)] == ["first", "second", "soon", "late"]


def test_the_time_may_come_from_a_function_and_be_a_datetime_or_none() -> None:
    def send_at(key: str, value: str) -> datetime | None:
        return None if value == "now" else datetime.fromisoformat(value)

    start = datetime(2026, 3, 1, tzinfo=UTC)
    start_ms = int(start.timestamp() * 1000)
    with driven(lambda stream: stream.delay(until=send_at), start_ms=start_ms) as app:
        app.pipe("a", "2026-03-01T01:00:00+01:00", 1)
        app.pipe("b", "now", 2)
        app.pipe("c", "2026-03-01T00:00:01+00:00", 3)
        assert app.now() == [("a", 1), ("b", 2)]
        assert app.after(1_000) == [("c", 3)]


def test_a_time_that_is_none_names_the_operator_and_the_record() -> None:
    with (
        driven(lambda stream: stream.delay(until=lambda key, value: value)) as app,
        pytest.raises(ProcessingError, match=r"KSTREAM-DELAY-0000000001\) .*in-0@0: .*'soon' is not a time"),
    ):
        app.pipe("a", "soon", 1)


def test_the_expression_may_read_the_record() -> None:
    with driven(lambda stream: stream.delay(until=ks.timestamp + 50)) as app:
        app.pipe("a", "x", 10)
        assert (app.after(59), app.after(1)) == ([], [("a", 10)])


delays = st.lists(st.one_of(st.tuples(st.integers(0, 500)), st.integers(1, 200)), max_size=40)


@settings(max_examples=examples(150), deadline=None)
@given(delays)
def test_every_delayed_record_comes_once_at_its_time(script: list[Any]) -> None:
    """A tuple is a record with its time, a number is a time that passes."""
    now_ms = 0
    waiting: list[tuple[int, int]] = []
    with driven(lambda stream: stream.delay(until=ks.value), value=int) as app:
        for number, step in enumerate([*script, 1_000]):
            if isinstance(step, tuple):
                app.pipe(str(number), step[0], number)
                waiting.append((step[0], number))
            else:
                app.driver.advance_wall_clock_time(step)
                now_ms += step
            due = sorted(entry for entry in waiting if entry[0] <= now_ms)
            waiting = [entry for entry in waiting if entry[0] > now_ms]
            assert [timestamp for _, timestamp in app.now()] == [at for _, at in due]
    assert not waiting


@pytest.mark.parametrize("arguments", [{}, {"for_": "1s", "until": ks.value}])
def test_a_delay_takes_one_time(arguments: Any) -> None:
    stream = ks.StreamsBuilder().stream("in", key=str, value=int)
    with pytest.raises(TopologyError, match=r"delay\(\) at .*test_delays.py:\d+ takes either until="):
        stream.delay(**arguments)


def test_a_delay_that_is_no_time_is_refused() -> None:
    stream = ks.StreamsBuilder().stream("in", key=str, value=int)
    with pytest.raises(TopologyError, match=r"for_='a while': 'a while' is not a duration"):
        stream.delay(for_="a while")


# --- throttle ---------------------------------------------------------------------------------------------------------


def test_a_throttle_spreads_records_evenly_and_keeps_their_order() -> None:
    with driven(lambda stream: stream.throttle(4)) as app:
        for number in range(6):
            app.pipe(str(number), "x", number)
        assert app.now() == [("0", 0)]
        assert app.after(249) == []
        assert app.after(1) == [("1", 1)]
        assert app.after(500) == [("2", 2), ("3", 3)]
        assert app.after(500) == [("4", 4), ("5", 5)]


def test_a_throttle_delays_nothing_that_comes_slowly_enough() -> None:
    with driven(lambda stream: stream.throttle(2, per="1s")) as app:
        for number in range(4):
            app.pipe("a", "x", number)
            assert app.now() == [("a", number)]
            app.driver.advance_wall_clock_time(500)


def test_more_records_than_milliseconds_are_spread_without_a_loss() -> None:
    with driven(lambda stream: stream.throttle(3_000, per="1s"), statestore_cache_max_bytes=0) as app:
        topic = app.driver.create_input_topic("in", key=str, value=str)
        app.driver.pipe_batch([(topic, ks.Record(key="a", value="x", timestamp=at)) for at in range(9_000)])
        counts = [len(app.now()), *(len(app.after(1_000)) for _ in range(3))]
        assert counts == [1, 3_000, 3_000, 2_999]


@pytest.mark.parametrize(("records", "per"), [(0, "1s"), (1.5, "1s"), (1, "0s")])
def test_a_throttle_that_lets_nothing_through_is_refused(records: Any, per: str) -> None:
    stream = ks.StreamsBuilder().stream("in", key=str, value=int)
    with pytest.raises(TopologyError, match=r"throttle\(\) at .*give 1 "):
        stream.throttle(records, per=per)


# --- schedule ---------------------------------------------------------------------------------------------------------


def test_a_schedule_forwards_the_latest_record_of_each_key_at_every_time() -> None:
    with driven(lambda stream: stream.schedule(every="10s"), start_ms=3_000) as app:
        app.pipe("a", "old", 1)
        app.pipe("b", "only", 2)
        app.pipe("a", "new", 3, headers=[("trace", b"7")])
        assert app.after(6_999) == []
        app.driver.advance_wall_clock_time(1)
        assert [(r.key, r.value, r.timestamp, r.headers) for r in app.records()] == [
            ("a", "new", 10_000, (("trace", b"7"),)),
            ("b", "only", 10_000, ()),
        ]
        assert app.after(10_000) == [("a", 20_000), ("b", 20_000)]


def test_a_record_without_a_value_ends_the_schedule_of_its_key() -> None:
    with driven(lambda stream: stream.schedule(every="10s")) as app:
        app.pipe("a", "x", 1)
        app.pipe("b", "x", 1)
        app.pipe("a", None, 2)
        assert app.after(10_000) == [("b", 10_000)]
        app.pipe("b", None, 3)
        assert app.after(20_000) == []
        app.pipe("c", "x", 4)
        assert app.after(10_000) == [("c", 40_000)]


def test_times_that_passed_at_once_are_made_up_by_one_record() -> None:
    with driven(lambda stream: stream.schedule(every="10s")) as app:
        app.pipe("a", "x", 1)
        assert app.after(35_000) == [("a", 10_000)]
        assert app.after(5_000) == [("a", 40_000)]


def test_a_record_without_a_key_is_dropped_and_counted() -> None:
    with driven(lambda stream: stream.schedule(every="10s")) as app:
        app.pipe(None, "x", 1)
        assert app.driver.dropped == {("KSTREAM-SCHEDULE-0000000001", "null key"): 1}


def test_a_cron_expression_is_read_in_its_time_zone() -> None:
    berlin = datetime(2026, 3, 28, 12, tzinfo=UTC)
    expected = [datetime(2026, 3, 29, 4, tzinfo=UTC), datetime(2026, 3, 30, 4, tzinfo=UTC)]
    build = lambda stream: stream.schedule(at="0 6 * * *", zone="Europe/Berlin")  # noqa: E731
    with driven(build, start_ms=int(berlin.timestamp() * 1000)) as app:
        app.pipe("a", "x", 1)
        found = [timestamp for _ in range(48) for _, timestamp in app.after(3_600_000)]
    assert found == [int(time.timestamp() * 1000) for time in expected], "summer time has begun in between"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "takes either every="),
        ({"every": "1m", "at": "* * * * *"}, "takes either every="),
        ({"at": "61 * * * *"}, "at='61 \\* \\* \\* \\*', which is no cron expression"),
        ({"at": "0 0 30 2 *"}, "at='0 0 30 2 \\*'"),
        ({"at": "* * * * *", "zone": "Mars/Olympus"}, "zone='Mars/Olympus', which is no time zone"),
        ({"every": 0}, "every=0: give 1 ms or more"),
    ],
)
def test_a_schedule_without_times_is_refused(arguments: Any, message: str) -> None:
    stream = ks.StreamsBuilder().stream("in", key=str, value=int)
    with pytest.raises(TopologyError, match=message):
        stream.schedule(**arguments)


def test_without_cronsim_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cronsim", None)
    stream = ks.StreamsBuilder().stream("in", key=str, value=int)
    with pytest.raises(ImportError, match=r"needs cronsim: pip install 'kstreams-dsl\[schedule\]'"):
        stream.schedule(at="* * * * *")
