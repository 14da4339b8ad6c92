"""A folder with a log and states in which tests run whole applications, and look at what they left."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NamedTuple

import kstreams as ks
from kstreams.kernel.batch import TopicPartition
from kstreams.log import home_of
from kstreams.runtime.native.streams import KafkaStreams
from kstreams.serdes import serde_of

WAIT_S = 60.0


class Output(NamedTuple):
    """A record of a topic, decoded."""

    key: Any
    value: Any
    timestamp: int


class World:
    """Topics and applications under one folder.

    Parameters
    ----------
    folder : Path
    **settings
        Of every application, unless it says otherwise.
    """

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.folder = folder
        self.settings = {"application.id": "app", "log.dir": folder / "log", "state.dir": folder / "state", **settings}

    def create(self, topic: str, partitions: int = 1, **config: str) -> None:
        with self.log() as log, log.admin() as admin:
            admin.create_topic(topic, partitions, {key.replace("_", "."): value for key, value in config.items()})

    def write(self, topic: str, rows: Iterable[tuple[Any, Any, int]], partition: int | None = None) -> None:
        """Append (key, value, timestamp) rows; keys and values go by their own types."""
        with self.log() as log, log.producer() as producer:
            for key, value, timestamp in rows:
                producer.send(topic, _bytes(key), _bytes(value), timestamp=timestamp, partition=partition)

    def partitions(self, topic: str, key: Any = str, value: Any = str) -> list[list[Output]]:
        """What every partition of a topic holds, in order."""
        keys, values = serde_of(key), serde_of(value)
        with self.log() as log, log.admin() as admin, log.consumer() as consumer:
            sources = [TopicPartition(topic, n) for n in range(admin.describe_topic(topic).partitions)]
            consumer.assign(sources)
            found: dict[TopicPartition, list[Output]] = {source: [] for source in sources}
            ends = consumer.end_offsets(sources)
            while any(consumer.position(source) < ends[source] for source in sources):
                for batch in consumer.poll(0.1, 100_000):
                    columns = keys.decode_rows(batch.keys), values.decode_rows(batch.values)
                    found[batch.source] += map(Output, *columns, batch.timestamps.to_pylist())
        return [found[source] for source in sources]

    def rows(self, topic: str, key: Any = str, value: Any = str) -> list[Output]:
        """What a topic holds, partition after partition."""
        return [row for partition in self.partitions(topic, key, value) for row in partition]

    def table(self, topic: str, key: Any = str, value: Any = str) -> dict[Any, Any]:
        """The last value of every key, as the fold of the topic."""
        last = {row.key: row.value for row in self.rows(topic, key, value)}
        return {key: value for key, value in last.items() if value is not None}

    def topics(self) -> list[str]:
        with self.log() as log, log.admin() as admin:
            return sorted(admin.topics())

    def streams(self, topology: Any, **settings: Any) -> KafkaStreams:
        given = {key.replace("_", "."): value for key, value in settings.items()}
        return KafkaStreams(topology, {**self.settings, **given})

    def run(self, topology: Any, *, once: bool = False, **settings: Any) -> KafkaStreams:
        """Run until the input ends (or once)."""
        streams = self.streams(topology, **settings)
        streams.start(once=once, until_end=not once)
        assert streams.wait(WAIT_S)
        return streams

    def log(self) -> Any:
        return home_of(self.settings).open()


def until(condition: Callable[[], bool]) -> None:
    """Wait until something is so."""
    end = monotonic() + WAIT_S
    while not condition():
        assert monotonic() < end
        sleep(0.02)


def tasks_of(streams: KafkaStreams) -> set[str]:
    """The tasks that a process runs."""
    return {task.task_id for thread in streams.metadata_for_local_threads() for task in thread.tasks}


@cache  # instances in one process share the tasks of one topology
def word_count(topic: str = "lines") -> ks.Topology:
    """Lines to words to counts, with a repartition between: two sub-topologies."""
    builder = ks.StreamsBuilder()
    words = builder.stream(topic, key=str, value=str).flat_map_values(lambda line: line.split(), value=str)
    counts = words.group_by(lambda _, word: word, key=str).count(materialized="counts")
    counts.to_stream().to("counts", key=str, value=int)
    return builder.build()


def lines(count: int, start: int = 0) -> Iterator[tuple[str, str, int]]:
    """Lines of words, with the counts that `counted` gives."""
    for i in range(start, start + count):
        yield str(i), f"all w{i % 7} x{i % 13}", i


def counted(count: int) -> dict[str, int]:
    """What `word_count` says of so many lines."""
    found: dict[str, int] = {}
    for _, line, _ in lines(count):
        for word in line.split():
            found[word] = found.get(word, 0) + 1
    return found


def _bytes(value: Any) -> bytes | None:
    return None if value is None else serde_of(type(value)).serialize(value)
