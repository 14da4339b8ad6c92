"""Waiting and parked records with topics in Apache Kafka, exactly once."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.cli import main
from tests.native.world import World, until
from tests.support.kafka_topics import delete_everything

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


@pytest.fixture
def world(kafka: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    delete_everything(kafka.bootstrap_servers)
    monkeypatch.setenv("KSTREAMS_BOOTSTRAP_SERVERS", kafka.bootstrap_servers)
    monkeypatch.chdir(tmp_path)
    settings = {"bootstrap.servers": kafka.bootstrap_servers, "processing.guarantee": "exactly_once_v2"}
    world = World(tmp_path, **settings, **{"poll.ms": 10, "commit.interval.ms": 50})
    for topic in ("in", "copies", "out", "parked"):
        world.create(topic, 2)
    return world


def values(world: World, topic: str) -> list[str]:
    return [row.value for row in world.rows(topic)]


def test_records_wait_survive_the_loss_of_the_state_are_parked_and_sent_back(world: World) -> None:
    is_down = True

    def call(value: str) -> str:
        if is_down:
            raise TimeoutError(value)
        return value.upper()

    def application(attempts: int) -> ks.Topology:
        builder = ks.StreamsBuilder()
        stream = builder.stream("in", key=str, value=str)
        stream.to("copies")
        retry = ks.Retry(backoff="2s", factor=1, attempts=attempts, on=TimeoutError)
        stream.map_values(call, value=str, retry=retry, park="parked", name="ask").to("out")
        return builder.build()

    world.write("in", [("k", "first", 1), ("k", "second", 2)])
    with world.streams(application(attempts=100)) as streams:
        streams.start()
        until(lambda: streams.progress().records_in == 2 and len(values(world, "copies")) == 2)
    shutil.rmtree(world.settings["state.dir"])
    with world.streams(application(attempts=1)) as streams:
        streams.start()
        until(lambda: values(world, "parked") == ["first", "second"])
    is_down = False
    assert main(["parked", "retry", "parked", "--all"]) == 0
    with world.streams(application(attempts=1)) as streams:
        streams.start()
        until(lambda: len(values(world, "out")) == 2)
    assert values(world, "out") == ["FIRST", "SECOND"]
    assert values(world, "copies") == ["first", "second"]
