"""Waiting records on the native engine survive a crash and the loss of the local state, and metrics tell of them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.kernel.clock import ManualClock
from kstreams.metrics import catalogue
from tests.native.stepped import stepped
from tests.native.world import World, tasks_of, until

GUARANTEES = pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])


class Service:
    """A service that fails while it is down, and notes its calls."""

    def __init__(self) -> None:
        self.is_down = True
        self.calls: list[str] = []

    def __call__(self, value: str) -> str:
        self.calls.append(value)
        if self.is_down and "bad" in value:
            raise TimeoutError(value)
        return value.upper()


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    for topic in ("in", "out", "parked"):
        world.create(topic, 2)
    return world


def asking(service: Service, **retry: Any) -> ks.Topology:
    builder = ks.StreamsBuilder()
    stream = builder.stream("in", key=str, value=str)
    settings = ks.Retry(**{"backoff": "10s", "attempts": 3, "on": TimeoutError, **retry})
    stream.map_values(service, value=str, retry=settings, park="parked", name="ask").to("out")
    return builder.build()


def values(world: World, topic: str = "out") -> list[str]:
    return [row.value for row in world.rows(topic)]


@GUARANTEES
@pytest.mark.parametrize("loses_state", [False, True])
def test_a_waiting_record_survives_a_crash_with_its_time_and_those_behind_it(
    world: World, guarantee: str, loses_state: bool
) -> None:
    service = Service()
    clock = ManualClock(1_000_000)
    topology = asking(service, backoff="1h", max_delay="1h")  # threads that sleep move the clock by seconds
    world.write("in", [("k", "bad", 1), ("k", "second", 2), ("k", "third", 3)])
    with stepped(world, topology, clock, processing_guarantee=guarantee) as app:
        app.work()
    assert service.calls == ["bad"]
    if loses_state:
        shutil.rmtree(world.settings["state.dir"])
    with stepped(world, topology, clock, processing_guarantee=guarantee) as app:
        app.wait(60_000)
        assert service.calls == ["bad"]
        service.is_down = False
        app.wait(3_600_000)
        assert values(world) == ["BAD", "SECOND", "THIRD"]
    with stepped(world, topology, clock, processing_guarantee=guarantee) as app:
        app.wait(100_000)
        assert values(world) == ["BAD", "SECOND", "THIRD"]


@GUARANTEES
def test_attempts_are_counted_across_crashes(world: World, guarantee: str) -> None:
    service = Service()
    clock = ManualClock(1_000_000)
    world.write("in", [("k", "bad", 1)])
    for _ in range(5):
        with stepped(world, asking(service, factor=1), clock, processing_guarantee=guarantee) as app:
            app.wait(10_000)
    assert service.calls == ["bad"] * 3
    assert values(world, "parked") == ["bad"]


@GUARANTEES
def test_what_is_not_committed_is_done_again_once(world: World, guarantee: str) -> None:
    """The crash comes after the second attempt has succeeded, before the commit."""
    service = Service()
    clock = ManualClock(1_000_000)
    world.write("in", [("k", "bad", 1)])
    with stepped(world, asking(service), clock, processing_guarantee=guarantee) as app:
        app.work()
        service.is_down = False
        clock.advance(10_000)
        app.thread.round()
        assert service.calls == ["bad", "bad"]
    with stepped(world, asking(service), clock, processing_guarantee=guarantee) as app:
        app.wait(1)
    assert service.calls == ["bad", "bad", "bad"]
    if guarantee == "exactly_once_v2":
        assert values(world) == ["BAD"]


BUILDERS: dict[str, Callable[[Any], Any]] = {
    "delay": lambda stream: stream.delay(for_="10s"),
    "throttle": lambda stream: stream.throttle(1, per="10s"),
    "schedule": lambda stream: stream.schedule(every="10s"),
}


@GUARANTEES
@pytest.mark.parametrize("operator", BUILDERS)
def test_delays_throttles_and_schedules_go_on_after_a_crash(world: World, operator: str, guarantee: str) -> None:
    builder = ks.StreamsBuilder()
    BUILDERS[operator](builder.stream("in", key=str, value=str)).to("out")
    topology = builder.build()
    clock = ManualClock(1_000_000)
    world.write("in", [("a", "one", 1_000_000), ("a", "two", 1_000_000)], partition=0)
    with stepped(world, topology, clock, processing_guarantee=guarantee) as app:
        app.work()
        before = values(world)
    shutil.rmtree(world.settings["state.dir"])
    with stepped(world, topology, clock, processing_guarantee=guarantee) as app:
        app.wait(8_000)
        assert values(world) == before
        app.wait(2_000)
        assert values(world) == {"delay": ["one", "two"], "throttle": ["one", "two"], "schedule": ["two"]}[operator]
        app.wait(10_000)
        assert len(values(world)) == 2


def test_a_schedule_makes_up_for_the_time_in_which_it_was_stopped_once(world: World) -> None:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).schedule(every="10s").to("out")
    topology = builder.build()
    clock = ManualClock(1_000_000)
    world.write("in", [("a", "x", 1)])
    with stepped(world, topology, clock) as app:
        app.work()
    clock.advance(35_000)
    with stepped(world, topology, clock) as app:
        app.work()
        app.wait(5_000)
    assert [row.timestamp for row in world.rows("out")] == [1_010_000, 1_040_000]


def test_metrics_tell_how_many_records_wait_and_since_when(world: World) -> None:
    service = Service()
    world.write("in", [("k", "bad", 1), ("k", "second", 2), ("k", "third", 3), ("l", "fine", 4)])
    with world.streams(asking(service), poll_ms=5) as streams:
        streams.start()
        until(lambda: streams.progress().records_in == 4)

        def metric(template: Any) -> float:
            found = [value for name, value in streams.metrics().items() if name.name == template.name]
            assert found, template.name
            return max(float(value) for value in found)

        until(lambda: metric(catalogue.WAITING_RECORDS) == 3)
        until(lambda: metric(catalogue.OLDEST_WAIT) > 50)
        assert metric(catalogue.PARKED_RECORDS) == 0


def test_a_bounded_run_leaves_what_waits_to_the_next_one_with_a_warning(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    service = Service()
    world.write("in", [("k", "bad", 1), ("k", "second", 2)])
    world.run(asking(service, backoff="300ms"))
    assert "2 records wait in ask at the end of the input: a later run goes on with them" in caplog.text
    assert values(world) == []
    service.is_down = False
    with world.streams(asking(service)) as streams:
        streams.start()
        until(lambda: values(world) == ["BAD", "SECOND"])


def test_a_reset_application_does_not_take_back_what_an_earlier_run_was_sent(world: World) -> None:
    service = Service()
    clock = ManualClock(1_000_000)
    topology = asking(service, attempts=1)
    world.write("in", [("k", "bad", 1)])
    with stepped(world, topology, clock) as app:
        app.work()
    (parked,) = (number for number, rows in enumerate(world.partitions("parked")) if rows)
    mark = (("__streams.errors.application", b"app"), ("__streams.errors.operator", b"ask"))
    with world.log() as log, log.producer() as producer:
        headers = (*mark, ("__streams.parked.retried", b"%d@0" % parked))
        producer.send("parked", b"k", b"bad", timestamp=1, headers=headers, partition=parked)
    service.is_down = False
    with stepped(world, topology, clock) as app:
        app.work()
    assert values(world) == ["BAD"]
    world.settings["application.id"] = "app"
    with world.log() as log, log.admin() as admin:
        admin.delete_group("app")
    shutil.rmtree(world.settings["state.dir"])
    with stepped(world, topology, clock) as app:
        app.work()
    assert values(world) == ["BAD", "BAD"], "the input record is processed again, and the mark is not"


def test_waiting_records_move_with_their_partition_to_another_process(world: World, tmp_path: Path) -> None:
    service = Service()
    rows = [(f"k{number}", f"bad {number}", number) for number in range(20)]
    world.write("in", rows)
    topology = asking(service, backoff="200ms", factor=1, attempts=1_000)
    common: dict[str, Any] = {"processing_guarantee": "exactly_once_v2", "poll_ms": 5, "commit_interval_ms": 20}
    with world.streams(topology, **common) as first:
        first.start()
        until(lambda: len(set(service.calls)) == len(rows))
        with world.streams(topology, state_dir=tmp_path / "second", **common) as second:
            second.start()
            until(lambda: len(tasks_of(first)) == len(tasks_of(second)) == 1)
            service.is_down = False
            until(lambda: len(values(world)) == len(rows))
    assert sorted(values(world)) == sorted(value.upper() for _, value, _ in rows)


def test_the_parking_topic_must_exist_with_the_partitions_of_the_input(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.create("in", 2)
    world.create("out", 2)
    with pytest.raises(ks.KStreamsError, match="parked"):
        world.run(asking(Service()))
    world.create("parked", 3)
    with pytest.raises(ks.KStreamsError, match=r"in.*2.*parked.*3|parked.*3.*in.*2"):
        world.run(asking(Service()))
