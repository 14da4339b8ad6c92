"""An application with a store of each kind, whose server is asked over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.runtime.native.lifecycle import State
from kstreams.server import Limits
from tests.native.world import World, until
from tests.server.served import Client, served

TEXTS: dict[str, Any] = {"key": str, "value": str}
LONG = 10**9


@cache  # instances in one process share the tasks of one topology
def every_kind() -> ks.Topology:
    builder = ks.StreamsBuilder()
    grouped = builder.stream("in", **TEXTS).group_by_key()
    grouped.count(ks.Materialized("counts", queryable=True))
    grouped.reduce(lambda old, new: new, materialized="private")
    grouped.windowed_by(ks.TimeWindows(size=10_000)).count(ks.Materialized("windows", retention=LONG, queryable=True))
    grouped.windowed_by(ks.SessionWindows(gap=20_000)).count(
        ks.Materialized("sessions", retention=LONG, queryable=True)
    )
    builder.table("table", **TEXTS, materialized=ks.Materialized("versions", history_retention=LONG, queryable=True))
    builder.global_table("names", **TEXTS, materialized=ks.Materialized("names", queryable=True))
    return builder.build()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """Keys k0 to k9, ten records each, ten seconds between two of a key."""
    folder: Path = tmp_path_factory.mktemp("server")
    made = World(folder, **{"commit.interval.ms": 20})
    for topic, partitions in (("in", 4), ("table", 1), ("names", 2)):
        made.create(topic, partitions)
    made.write("in", [(f"k{i % 10}", str(i), 1_000 * i) for i in range(100)])
    made.write("table", [("a", "x", 10), ("b", "1", 10), ("b", "2", 15), ("a", "y", 20), ("c", "1", 30)])
    made.write("names", [("a/b c", "slash", 1)])
    return made


@pytest.fixture(scope="module")
def client(world: World) -> Iterator[Client]:
    """Asks it, once all records are committed."""
    with served(world, every_kind(), Limits(page_rows=50)) as (client, streams):
        until(lambda: streams.state is State.RUNNING)
        until(lambda: len(client.rows("/v1/stores/windows/rows?limit=50")) == 50)
        until(lambda: sum(row["value"] for row in client.rows("/v1/stores/counts/rows")) == 100)
        until(lambda: sum(row["value"] for row in client.rows("/v1/stores/sessions/rows")) == 100)
        until(lambda: client.rows("/v1/stores/versions/keys/c?as_of=30") != [])
        yield client
