"""Whether the process lives and is ready, and its metrics for Prometheus."""

from __future__ import annotations

import shutil
from pathlib import Path
from threading import Event

import pytest
from prometheus_client.parser import text_string_to_metric_families

import kstreams as ks
from kstreams.runtime.native.lifecycle import State
from kstreams.runtime.native.state.restore import RestoreProgress
from tests.native.world import WAIT_S, World, until
from tests.server.served import Client, served


def test_an_application_that_runs_is_live_and_ready(client: Client) -> None:
    for word in ("live", "ready"):
        answer = client.ask(f"/health/{word}", Authorization="")
        assert (answer.status, answer.json()) == (200, {"status": word})


def test_one_that_an_error_has_ended_is_neither(world: World) -> None:
    def fail(key: str, value: str) -> str:
        raise ValueError("no")

    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).map_values(fail, with_key=True, value=str).to("names")
    with served(world, builder.build(), application_id="failing") as (client, streams):
        until(lambda: streams.state is State.ERROR)
        for word in ("live", "ready"):
            answer = client.ask(f"/health/{word}", Authorization="")
            assert (answer.status, answer.json()) == (503, {"status": f"not {word}"})


LIVE, READY = {State.CREATED, State.REBALANCING, State.RUNNING}, {State.RUNNING}


@pytest.fixture
def own(tmp_path: Path) -> World:
    world = World(tmp_path, **{"commit.interval.ms": 20, "poll.ms": 5})
    world.create("in")
    world.create("names")
    return world


@pytest.mark.parametrize("state", State)
def test_health_goes_by_the_state(own: World, state: State) -> None:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).to("names")
    with served(own, builder.build(), application_id="healthy") as (client, streams):
        until(lambda: streams.state is State.RUNNING)
        streams._application.lifecycle._state = state
        found = [client.ask(f"/health/{word}", Authorization="").status for word in ("live", "ready")]
        streams._application.lifecycle._state = State.RUNNING
    assert found == [200 if state in LIVE else 503, 200 if state in READY else 503]


def test_a_process_whose_tasks_are_restored_is_live_and_not_ready(own: World) -> None:
    begun, go_on = Event(), Event()

    def hold(progress: RestoreProgress) -> None:
        begun.set()
        go_on.wait(WAIT_S)

    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).group_by_key().count("counts")
    own.write("in", [("k", "v", 1)])
    with own.streams(builder.build(), application_id="restoring") as first:
        first.start(once=True)
        first.wait(WAIT_S)
    shutil.rmtree(own.settings["state.dir"])
    with served(own, builder.build(), application_id="restoring", on_restore=hold) as (client, _):
        assert begun.wait(WAIT_S)
        found = [client.ask(f"/health/{word}", Authorization="").status for word in ("live", "ready")]
        told = client.ask("/metrics").body.decode()
        go_on.set()
        until(lambda: client.ask("/health/ready", Authorization="").status == 200)
    assert found == [200, 503]
    assert 'restore_remaining_records_total{client_id="restoring",store="counts",task_id="0_0"} 1.0' in told


def test_a_thread_that_is_replaced_leaves_it_live(own: World) -> None:
    failed = Event()

    def fail_once(key: str, value: str) -> bool:
        if not failed.is_set():
            failed.set()
            raise ValueError("no")
        return True

    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).filter(fail_once).to("names")
    with served(own, builder.build(), application_id="mending") as (client, streams):
        streams._application.exception_handler = lambda error: ks.StreamThreadExceptionResponse.REPLACE_THREAD
        own.write("in", [("k", "v", 1)])
        until(lambda: failed.is_set() and streams.state is State.RUNNING)
        until(lambda: streams.progress().records_in >= 1)
        found = [client.ask(f"/health/{word}", Authorization="").status for word in ("live", "ready")]
    assert found == [200, 200]


def test_metrics_are_those_of_kafka_streams_for_prometheus(client: Client) -> None:
    answer = client.ask("/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = {family.name: family for family in text_string_to_metric_families(answer.body.decode())}
    processed = families["kafka_streams_stream_thread_metrics_process"]
    assert sum(sample.value for sample in processed.samples if sample.name.endswith("_total")) >= 100
    assert families["kafka_streams_stream_metrics_state_info"].samples[0].labels["state"] == "RUNNING"
