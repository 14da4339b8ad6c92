"""The driver takes builders and datetimes, and nothing after its end."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import kstreams as ks
from kstreams.errors import StateError
from kstreams.testing import TopologyTestDriver

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NOON_MS = int(NOON.timestamp() * 1000)


def passing() -> ks.StreamsBuilder:
    builder = ks.StreamsBuilder()
    words = builder.stream("in", key=str, value=str)
    words.group_by_key().count("counts")
    words.to("out")
    return builder


def times(driver):
    return [record.timestamp for record in driver.create_output_topic("out", key=str, value=str).read_records()]


@pytest.mark.parametrize("topology", [passing(), passing().build(), passing], ids=["builder", "topology", "function"])
def test_what_an_application_calls_topology_can_be_driven(topology):
    with TopologyTestDriver(topology) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_input("k", "v", timestamp=5)
        assert times(driver) == [5]


def test_a_builder_is_built_with_the_settings_of_the_driver():
    builder = ks.StreamsBuilder()
    builder.stream("in").to("out")
    with TopologyTestDriver(builder, {"default.key.serde": str, "default.value.serde": str}) as driver:
        driver.create_input_topic("in", key=str, value=str).pipe_input("k", "v")


def test_something_else_is_refused():
    with pytest.raises(TypeError, match="a function that returns one, not a KStream"):
        TopologyTestDriver(ks.StreamsBuilder().stream("in", key=str, value=str))


def test_times_may_be_datetimes_and_durations_timedeltas():
    with TopologyTestDriver(passing, start_ms=NOON) as driver:
        own = driver.create_input_topic("in", key=str, value=str, start_ms=NOON, auto_advance=timedelta(seconds=1))
        own.pipe_input("k", "v")
        own.advance_time(timedelta(seconds=10))
        own.pipe_value("v")
        own.pipe_input("k", "v", timestamp=NOON + timedelta(minutes=1))
        own.pipe_record(ks.Record(key="k", value="v", timestamp=NOON))
        own.pipe_key_values([("k", "v"), ("k", "w")], start=NOON, advance=timedelta(milliseconds=7))
        own.pipe_values(["v"], start=NOON_MS)
        driver.create_input_topic("in", key=str, value=str).pipe_value("v")
        after = [0, 11_000, 60_000, 0, 0, 7, 0, 0]
        assert times(driver) == [NOON_MS + ms for ms in after]


@pytest.mark.parametrize(
    ("time", "error", "said"),
    [
        (datetime(2026, 1, 1), ValueError, "has no time zone: give it one, for example tzinfo=UTC"),
        (NOON + timedelta(microseconds=1), ValueError, "finer than a millisecond"),
        (1.5, TypeError, "1.5 is not a time: pass a datetime with a time zone, or an int of milliseconds"),
        ("noon", TypeError, "'noon' is not a time"),
        (True, TypeError, "True is not a time"),
    ],
    ids=repr,
)
def test_what_is_no_time_is_told(time, error, said):
    with TopologyTestDriver(passing) as driver, pytest.raises(error, match=said):
        driver.create_input_topic("in", key=str, value=str).pipe_input("k", "v", timestamp=time)


AFTER = {
    "pipe": lambda driver, topic: topic.pipe_input("k", "v"),
    "pipe_batch": lambda driver, topic: driver.pipe_batch([(topic, ks.Record(key="k", value="v"))]),
    "advance_wall_clock_time": lambda driver, topic: driver.advance_wall_clock_time(5),
    "end_of_input": lambda driver, topic: driver.end_of_input(),
    "store": lambda driver, topic: driver.get_key_value_store("counts"),
}


@pytest.mark.parametrize("call", AFTER.values(), ids=AFTER)
def test_nothing_comes_after_close(call):
    driver = TopologyTestDriver(passing)
    topic = driver.create_input_topic("in", key=str, value=str)
    topic.pipe_input("k", "v", timestamp=1)
    driver.close()
    driver.close()
    assert times(driver) == [1]
    with pytest.raises(StateError, match=r"comes after the driver's close\(\): call it before"):
        call(driver, topic)
