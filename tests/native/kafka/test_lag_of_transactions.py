"""Input that ends with the mark of a transaction: a lag comes to 0 when every record is processed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kstreams.kernel.batch import TopicPartition
from kstreams.log import Log
from kstreams.log.api import OffsetAndMetadata
from tests.native.world import World, counted, lines, until, word_count
from tests.support.kafka_topics import delete_everything

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

LINES = [TopicPartition("lines", number) for number in range(2)]


@pytest.fixture
def world(kafka: Any, tmp_path: Path) -> World:
    delete_everything(kafka.bootstrap_servers)
    return World(tmp_path, **{"bootstrap.servers": kafka.bootstrap_servers})


def write(log: Log, start: int, count: int) -> None:
    """Write lines in one transaction."""
    with log.producer({"transactional.id": "writer"}) as producer:
        producer.begin_transaction()
        for key, line, time in lines(count, start):
            producer.send("lines", key.encode(), line.encode(), timestamp=time + 1)
        producer.commit_transaction()


def group_lags(world: World) -> dict[str, int]:
    """What `kstreams groups` says."""
    command = [sys.executable, "-m", "kstreams", "groups", "list", "--json"]
    environment = os.environ | {"KSTREAMS_BOOTSTRAP_SERVERS": world.settings["bootstrap.servers"]}
    found = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    return {row["group"]: row["lag"] for row in map(json.loads, found.splitlines())}


def has_committed_the_end(log: Log) -> bool:
    committed, ends = log.admin().committed("app", LINES), log.admin().end_offsets(LINES)
    return all(source in committed and committed[source].offset == end for source, end in ends.items())


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_a_running_application_comes_to_the_end(world: World, guarantee: str) -> None:
    world.create("lines", 2)
    world.create("counts", 1)
    settings = {"processing_guarantee": guarantee, "commit_interval_ms": 10}
    with world.log() as log, world.streams(word_count(), **settings) as streams:
        streams.start()
        for number in range(8):
            write(log, number * 10, 10)
            until(lambda number=number: world.table("counts", value=int) == counted(number * 10 + 10))
            until(lambda: streams.progress().lag == 0)
            until(lambda: has_committed_the_end(log))
        lags = streams.all_local_store_partition_lags()
        assert {info.lag for of_store in lags.values() for info in of_store.values()} == {0}
    assert group_lags(world)["app"] == 0


def test_a_group_that_commits_behind_its_last_record_does_not_lag(world: World) -> None:
    """As other clients do: the mark of the transaction has the next offset."""
    world.create("lines", 2)
    with world.log() as log:
        write(log, 0, 20)
        until(lambda: sum(log.admin().end_offsets(LINES).values()) == 22)
        marks = log.admin().end_offsets(LINES)
        log.admin().commit("done", {source: OffsetAndMetadata(end - 1) for source, end in marks.items()})
        log.admin().commit("behind", {source: OffsetAndMetadata(end - 2) for source, end in marks.items()})
    assert group_lags(world) == {"done": 0, "behind": 2}
