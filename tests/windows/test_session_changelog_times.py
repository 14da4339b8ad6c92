"""Records in the changelog of sessions have the time of the record that changed the session, as in Kafka Streams."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

import kstreams as ks
from tests.native.world import World


@pytest.mark.parametrize("at_once", [False, True])
def test_it_is_the_time_of_the_last_record_not_the_end(tmp_path: Path, at_once: bool) -> None:
    world = World(tmp_path)
    world.create("in")
    world.create("out")
    rows = [("a", "x", 9_000), ("a", "y", 7_000), ("b", "z", 20_000), ("b", "z", 23_000)]
    for part in [rows] if at_once else [[row] for row in rows]:
        world.write("in", part)
        builder = ks.StreamsBuilder()
        sessions = ks.SessionWindows(gap=timedelta(seconds=5), grace=timedelta(minutes=5))
        grouped = builder.stream("in", key=str, value=str).group_by_key().windowed_by(sessions)
        grouped.count(materialized="counts").to_stream().to("out")
        with world.streams(builder.build()) as streams:
            streams.start(until_end=True)
            streams.wait()
    kept = {row.key[:1]: row for row in world.rows("app-counts-changelog", key=bytes, value=int) if row.value}
    assert {key: (row.value, row.timestamp) for key, row in kept.items()} == {b"a": (2, 7_000), b"b": (2, 23_000)}
