"""The scene of the flips: an exactly-once application over every kind of file, killed half-way; its true results."""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kstreams as ks
from tests.native.world import World

PARTITIONS = 2
SETTINGS: dict[str, Any] = {
    "processing.guarantee": "exactly_once_v2",
    "statestore.cache.max.bytes": 0,
    "commit.interval.ms": 20,
    "max.poll.records": 200,
    "buffered.records.per.partition": 200,
}
OUTPUTS = {"counts": (str, int), "windows": (str, int), "sessions": (str, int), "words": (str, int)}

Row = tuple[str, str, int]
Results = Counter[tuple[str, Any, Any]]


@dataclass(frozen=True)
class Story:
    """What happens before a bit is flipped.

    Parameters
    ----------
    rows : list of (key, value, timestamp)
        All input.
    closed : list of int
        Numbers of rows after which the application was stopped cleanly.
    killed : int
        Number of rows that an application saw when it was killed, counted from the last clean stop.
    """

    rows: list[Row]
    closed: list[int]
    killed: int


def story(seed: int, events: int = 1_500) -> Story:
    """A story for a seed: skewed keys, jittered times, two clean stops, one kill."""
    chance = random.Random(seed)
    rows = [
        (f"k{int(chance.paretovariate(0.7)) % 300}", f"w{chance.randrange(50)}", i * 10 + chance.randrange(2_000))
        for i in range(events)
    ]
    return Story(rows, [events // 4, events // 2], chance.randrange(events // 20, events // 4))


def topology(kill_after: int | None = None) -> ks.StreamsBuilder:
    """Key-value, window and session stores, directly and behind a repartition topic."""
    builder = ks.StreamsBuilder()
    events = builder.stream("events", key=str, value=str).peek(_Killer(kill_after))
    by_key = events.group_by_key()
    by_key.count(materialized="counts").to_stream().to("counts", key=str, value=int)
    windows = by_key.windowed_by(ks.TimeWindows(size=1_000, grace=10_000)).count(materialized="windows")
    windows.to_stream(_named, key=str).to("windows", key=str, value=int)
    sessions = by_key.windowed_by(ks.SessionWindows(gap=500, grace=10_000)).count(materialized="sessions")
    sessions.to_stream(_named, key=str).to("sessions", key=str, value=int)
    events.group_by(lambda _, word: word, key=str).count(materialized="words").to_stream().to("words")
    return builder


def stage(folder: Path, told: Story) -> None:
    """Let the story happen, up to the kill of this process: `log` and `state` stay as it leaves them."""
    world = World(folder, **SETTINGS)
    for topic in ("events", *OUTPUTS):
        world.create(topic, PARTITIONS, segment_bytes="65536")
    before = 0
    for stop in told.closed:
        world.write("events", told.rows[before:stop])
        world.run(topology(), once=True).close()
        before = stop
    world.write("events", told.rows[before:])
    world.run(topology(told.killed), once=True)
    raise AssertionError("the application of the scene was not killed")


def finish(folder: Path) -> Results:
    """Run the application over all input that is left, and return all that a reader of its topics sees."""
    world = World(folder, **SETTINGS)
    world.run(topology(), once=True).close()
    return results(world)


def results(world: World) -> Results:
    """Every record of the output topics, as a multiset."""
    return Counter(
        (topic, row.key, row.value) for topic, (key, value) in OUTPUTS.items() for row in world.rows(topic, key, value)
    )


def truth(folder: Path, told: Story) -> Results:
    """What the same input gives without any stop."""
    world = World(folder, **SETTINGS)
    for topic in ("events", *OUTPUTS):
        world.create(topic, PARTITIONS)
    world.write("events", told.rows)
    world.run(topology(), once=True).close()
    return results(world)


def _named(key: Any, _: Any) -> str:
    return f"{key.key}@{key.window.start_ms}/{key.window.end_ms}"


class _Killer:
    """Lets so many records pass, then kills the process as a power cut would: no handler runs."""

    def __init__(self, after: int | None) -> None:
        self._left = -1 if after is None else after

    def __call__(self, key: Any, value: Any) -> None:
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= 1
