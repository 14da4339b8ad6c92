"""Applications that are measured, and what they are asked for."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from time import sleep
from typing import Any

import kstreams as ks
from kstreams.metrics.catalogue import THREAD
from kstreams.runtime.native.lifecycle import State
from kstreams.runtime.native.streams import KafkaStreams
from tests.native.world import World, until

TEXTS = {"key": str, "value": str}
ROWS = [("k", "a b", 1_000), (None, "c", 2_000), ("l", "a", 3_000)]


class Ticking(ks.FixedKeyProcessor[str, str, str]):
    """Counts words in a sensor of its own, and is called by the wall clock."""

    def init(self, context: ks.FixedKeyProcessorContext[str, str]) -> None:
        self.context = context
        self.words = context.metrics.add_sensor("words")
        context.schedule(timedelta(milliseconds=5), ks.PunctuationType.WALL_CLOCK_TIME, lambda now: None)

    def process(self, record: ks.FixedKeyRecord[str, str]) -> None:
        self.words.record(len(record.value.split()))
        self.context.forward(record)


def slowly(key: str, value: str) -> bool:
    sleep(0.2)
    return True


def counts() -> ks.Topology:
    builder = ks.StreamsBuilder()
    builder.stream("in", **TEXTS).group_by_key().count("counts")
    return builder.build()


@contextmanager
def restored(world: World, built: ks.Topology) -> Iterator[KafkaStreams]:
    """Runs over a changelog whose stores are lost, and has processed all there is."""
    world.create("in")
    world.write("in", ROWS)
    settings: dict[str, Any] = {"commit_interval_ms": 20, "poll_ms": 5, "metrics_recording_level": "DEBUG"}
    settings["metrics_sample_window_ms"] = 3_600_000  # so that nothing of it is over before a test looks
    with world.streams(built, **settings) as first:
        first.start(once=True)
        first.wait(60)
    shutil.rmtree(world.settings["state.dir"])
    world.write("in", ROWS)
    with world.streams(built, **settings) as running:
        running.start()
        until(lambda: running.progress().records_in == 3 and running.state is State.RUNNING)
        until(lambda: one(running, THREAD, "commit-total") > 0)
        yield running


def one(streams: KafkaStreams, group: str, name: str, **tags: str) -> Any:
    wanted = {key.replace("_", "-"): value for key, value in tags.items()}
    found = {
        metric: value
        for metric, value in streams.metrics().items()
        if metric[:2] == (group, name) and wanted.items() <= dict(metric.tags).items()
    }
    assert len(found) == 1, found
    return next(iter(found.values()))
