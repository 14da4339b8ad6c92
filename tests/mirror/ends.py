"""What tests of mirrors do with the two homes: write, read, mirror, and wait."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace

from kstreams.kernel.batch import Row, TopicPartition
from kstreams.log import Log, OffsetAndMetadata, TopicHome
from kstreams.mirror import Mirror, MirrorSettings, ReplicationPolicy

EAST_TO_WEST = MirrorSettings(
    ReplicationPolicy("east", "west"), refresh_interval_ms=200, sync_interval_ms=200, heartbeat_interval_ms=100
)
WEST_TO_EAST = replace(EAST_TO_WEST, policy=ReplicationPolicy("west", "east"))


@dataclass
class End:
    """One home, open."""

    home: TopicHome
    log: Log

    @property
    def is_kafka(self) -> bool:
        return self.home.address.startswith("kafka:")

    def create(self, topic: str, partitions: int = 1, **config: str) -> None:
        self.log.admin().create_topic(topic, partitions, {key.replace("_", "."): at for key, at in config.items()})

    def write(self, topic: str, *rows: Row, partition: int = 0) -> None:
        with self.log.producer() as producer:
            for row in rows:
                producer.send(
                    topic, row.key, row.value, timestamp=row.timestamp, headers=row.headers, partition=partition
                )

    def rows(self, topic: str) -> dict[int, list[Row]]:
        """The committed records of each partition, in their order."""
        return {number: [row for _, row in placed] for number, placed in self.placed(topic).items()}

    def placed(self, topic: str) -> dict[int, list[tuple[int, Row]]]:
        """The committed records of each partition, with their offsets."""
        partitions = self.log.admin().describe_topic(topic).partitions
        sources = [TopicPartition(topic, number) for number in range(partitions)]
        placed: dict[int, list[tuple[int, Row]]] = {number: [] for number in range(partitions)}
        with self.log.consumer() as consumer:
            consumer.assign(sources)
            ends = consumer.end_offsets(sources)
            while any(consumer.position(source) < end for source, end in ends.items()):
                for batch in consumer.poll(0.1):
                    placed[batch.source.partition] += zip(batch.offsets.tolist(), batch.rows(), strict=True)
        return placed

    def topics(self) -> set[str]:
        return set(self.log.admin().topics())

    def config(self, topic: str) -> Mapping[str, str]:
        return self.log.admin().describe_topic(topic).config

    def commit(self, group: str, topic: str, offset: int, partition: int = 0) -> None:
        self.log.admin().commit(group, {TopicPartition(topic, partition): OffsetAndMetadata(offset)})

    def committed(self, group: str, topic: str, partition: int = 0) -> int | None:
        source = TopicPartition(topic, partition)
        committed = self.log.admin().committed(group, [source])
        return committed[source].offset if source in committed else None


@dataclass
class Ends:
    """The source `east` and the target `west`."""

    east: End
    west: End

    def copy(self, settings: MirrorSettings = EAST_TO_WEST) -> None:
        """Copy what is there."""
        Mirror(self.east.home, self.west.home, settings).run(until_end=True)

    def copy_back(self, settings: MirrorSettings = WEST_TO_EAST) -> None:
        """Copy what is there in the other direction."""
        Mirror(self.west.home, self.east.home, settings).run(until_end=True)

    @contextmanager
    def mirrored(self, settings: MirrorSettings = EAST_TO_WEST) -> Iterator[Mirror]:
        """A mirror that runs in a thread."""
        mirror = Mirror(self.east.home, self.west.home, settings)
        stop = threading.Event()
        errors: list[BaseException] = []

        def run() -> None:
            try:
                mirror.run(stop=stop)
            except BaseException as error:
                errors.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield mirror
        finally:
            stop.set()
            thread.join(60)
        assert not errors, errors

    def start_process(self, *options: str) -> subprocess.Popen[bytes]:
        """`kstreams mirror` in another process."""
        command = [sys.executable, "-m", "kstreams", "mirror", "--from", self.east.home.address]
        command += ["--to", self.west.home.address, "--source-alias", "east", "--target-alias", "west", *options]
        return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))})


def row(value: bytes | None, key: bytes | None = b"k", timestamp: int = 1_000, headers: object = ()) -> Row:
    return Row(key, value, timestamp, tuple(headers))  # type: ignore[call-overload]


def numbered(count: int, start: int = 0) -> list[Row]:
    """Records whose values are numbers."""
    return [row(str(number).encode(), timestamp=1_000 + number) for number in range(start, start + count)]


def wait_until(holds: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it never came there"
        time.sleep(0.02)
