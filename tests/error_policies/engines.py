"""The same topology under the same settings on the test driver and on the native runtime, and what came out."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import kstreams as ks
from kstreams.kernel.batch import Row, TopicPartition
from kstreams.log import open_log
from kstreams.testing import TopologyTestDriver

INPUT, OUTPUT, LETTERS = "in", "out", "letters"
WAIT_S = 60.0

Build = Callable[[], ks.Topology]


@dataclass
class Seen:
    """What a run left."""

    rows: dict[str, list[Row]] = field(default_factory=dict)
    dropped: Counter[tuple[str, str]] = field(default_factory=Counter)
    error: BaseException | None = None

    def values(self, topic: str = OUTPUT) -> list[bytes | None]:
        return [row.value for row in self.rows.get(topic, [])]

    @property
    def letters(self) -> list[Row]:
        return self.rows.get(LETTERS, [])


def row(value: bytes | None, key: bytes | None = b"k", timestamp: int = 0) -> Row:
    return Row(key, value, timestamp, ())


def on_driver(build: Build, rows: Sequence[Row], **settings: Any) -> Seen:
    seen = Seen()
    with TopologyTestDriver(build(), _config(settings), start_ms=0) as driver:
        try:
            driver._pipe(INPUT, rows)
        except Exception as error:
            seen.error = error
        seen.dropped = driver.dropped
        seen.rows = {topic: list(queue) for topic, queue in driver._driver_topics.queues.items()}
    return seen


def on_native(build: Build, rows: Sequence[Row], **settings: Any) -> Seen:
    seen = Seen()
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        config = {**_config(settings), "log.dir": home / "log", "state.dir": home / "state"}
        with open_log(home / "log") as log:
            _fill(log, rows)
        streams = ks.KafkaStreams(build(), {"application.id": "test", **config})
        try:
            streams.start(until_end=True)
            assert streams.wait(WAIT_S)
        except Exception as error:
            seen.error = error
        seen.dropped = streams.progress().dropped
        with open_log(home / "log") as log:
            seen.rows = {topic: _rows(log, topic) for topic in log.admin().topics()}
    return seen


ENGINES = {"driver": on_driver, "native": on_native}


def _config(settings: dict[str, Any]) -> dict[str, Any]:
    return {"statestore.cache.max.bytes": 0, **{name.replace("_", "."): value for name, value in settings.items()}}


def _fill(log: Any, rows: Sequence[Row]) -> None:
    with log.admin() as admin, log.producer() as producer:
        for topic in (INPUT, LETTERS):
            admin.create_topic(topic)
        for key, value, timestamp, headers in rows:
            producer.send(INPUT, key, value, timestamp=timestamp, headers=headers)


def _rows(log: Any, topic: str) -> list[Row]:
    with log.consumer() as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        found: list[Row] = []
        while batches := consumer.poll(0.0, 100_000):
            found += [row for batch in batches for row in batch.rows()]
    return found
