"""Whether the process lives and is ready, and its metrics for Prometheus."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

import kstreams as ks
from kstreams.runtime.native.lifecycle import State
from tests.native.world import World, until
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


def test_metrics_are_those_of_kafka_streams_for_prometheus(client: Client) -> None:
    answer = client.ask("/metrics")
    assert answer.status == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = {family.name: family for family in text_string_to_metric_families(answer.body.decode())}
    processed = families["kafka_streams_stream_thread_metrics_process"]
    assert sum(sample.value for sample in processed.samples if sample.name.endswith("_total")) >= 100
    assert families["kafka_streams_stream_metrics_state_info"].samples[0].labels["state"] == "RUNNING"
