"""Every kind of store is asked while tasks move and a thread dies: each answer is that of a prefix of the input."""

from __future__ import annotations

import random
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import sleep
from typing import Any, NamedTuple

import pytest

import kstreams as ks
from kstreams.errors import StoreNotAvailableError
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.murmur2 import partition_of
from kstreams.runtime.native.streams import KafkaStreams
from tests.native.world import World, until
from tests.support.examples import examples

PARTITIONS, KEYS = 3, [f"k{number}" for number in range(12)]
HOME = {key: partition_of(key.encode(), PARTITIONS) for key in KEYS}
NOT_NOW = {ks.FailureReason.NOT_PRESENT, ks.FailureReason.NOT_ACTIVE}


class StoreQueryArguments(NamedTuple):
    """A query of a key, and how many records of the key its answer stands for."""

    store: str
    query: Callable[[str], Any]
    count: Callable[[str, Any], int]
    isolations: tuple[Any, ...] = ("read_committed", "read_uncommitted")


def of_rows(key: str, rows: Any) -> int:
    return sum(row.value for _, row in rows)


EVERY = [
    StoreQueryArguments("counts", ks.KeyQuery, lambda key, value: value or 0),
    StoreQueryArguments("counts", lambda key: ks.RangeQuery(), lambda key, rows: dict(rows).get(key, 0)),
    StoreQueryArguments("memory", ks.KeyQuery, lambda key, value: value or 0, ("read_uncommitted",)),
    StoreQueryArguments("windows", ks.WindowKeyQuery, of_rows),
    StoreQueryArguments(
        "windows",
        lambda key: ks.WindowRangeQuery(),
        lambda key, rows: of_rows(key, [r for r in rows if r[0].key == key]),
    ),
    StoreQueryArguments("sessions", ks.SessionKeyQuery, lambda key, rows: sum(value for _, value in rows)),
    StoreQueryArguments("versions", ks.VersionedKeyQuery, lambda key, row: 0 if row is None else row.value),
    StoreQueryArguments("versions", ks.MultiVersionedKeyQuery, lambda key, rows: rows[-1].value if rows else 0),
]


@dataclass
class Input:
    """What is written: of each key the offsets of its records, of which each says how many there are by then."""

    world: World
    offsets: dict[str, list[int]] = field(default_factory=lambda: {key: [] for key in KEYS})
    ends: list[int] = field(default_factory=lambda: [0] * PARTITIONS)
    time: int = 0

    def write(self, draw: random.Random, count: int) -> None:
        rows = list[tuple[str, bytes, int]]()
        for key in draw.choices(KEYS, k=count):
            self.time += 7
            self.offsets[key].append(self.ends[HOME[key]])
            self.ends[HOME[key]] += 1
            rows.append((key, len(self.offsets[key]).to_bytes(8, "big"), self.time))
        self.world.write("in", rows)

    def up_to(self, key: str, offset: int) -> int:
        return bisect_right(self.offsets[key], offset)


def topology(dies: threading.Event, *, by_record: bool, caching: bool) -> ks.Topology:
    def passes(key: str, value: int) -> bool:
        if dies.is_set():
            dies.clear()
            raise RuntimeError("killed")
        return True

    builder, kept = ks.StreamsBuilder(), {"caching": caching}
    numbers = builder.stream("in", key=str, value=int)
    grouped = (numbers.filter(passes) if by_record else numbers).group_by_key()
    grouped.count(ks.Materialized("counts", **kept))
    grouped.count(ks.Materialized("memory", store="memory", **kept))
    grouped.windowed_by(ks.TimeWindows(size=1_000)).count(ks.Materialized("windows", retention=10**9, **kept))
    grouped.windowed_by(ks.SessionWindows(gap=50)).count(ks.Materialized("sessions", retention=10**9, **kept))
    numbers.to_table(materialized=ks.Materialized("versions", history_retention=10**9))
    return builder.build()


class Askers:
    """Threads that ask whichever instances are there."""

    def __init__(self, written: Input, instances: list[KafkaStreams]) -> None:
        self.written, self.instances = written, instances
        self.wrong, self.answers, self.stopping = list[Any](), list[str](), threading.Event()
        self._seen: dict[int, int] = dict.fromkeys(range(PARTITIONS), -1)

    @contextmanager
    def asking(self, draw: random.Random) -> Iterator[None]:
        threads = [threading.Thread(target=self._ask, args=(random.Random(draw.random()),)) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self.stopping.set()
            for thread in threads:
                thread.join()

    def _ask(self, draw: random.Random) -> None:
        while not self.stopping.is_set():
            asked, key, streams = draw.choice(EVERY), draw.choice(KEYS), draw.choice(self.instances)
            try:
                self._compare(asked, key, streams, draw.choice(asked.isolations))
            except StoreNotAvailableError:
                sleep(0.002)
            except BaseException as error:
                self.wrong.append((asked.store, error))

    def _compare(self, asked: StoreQueryArguments, key: str, streams: KafkaStreams, isolation: Any) -> None:
        home, before = HOME[key], self._seen[HOME[key]]
        found = streams.query(
            asked.store, asked.query(key), partitions=[home], isolation=isolation, require_active=True
        ).partitions[home]
        if found.failure in NOT_NOW:
            return
        position = found.position.get(TopicPartition("in", home), -1)
        expected = self.written.up_to(key, position)
        if found.failure is not None or asked.count(key, found.value) != expected:
            self.wrong.append((asked.store, isolation, key, found, expected))
        if isolation == "read_committed":
            if position < before:
                self.wrong.append((asked.store, key, position, before))
            self._seen[home] = max(position, self._seen[home])
        self.answers.append(asked.store)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", range(examples(4)))
def test_no_answer_is_wrong_while_tasks_move_and_a_thread_dies(tmp_path: Path, seed: int) -> None:
    draw, dies = random.Random(seed), threading.Event()
    guarantee = "at_least_once" if seed % 2 else "exactly_once_v2"
    world = World(tmp_path, **{"commit.interval.ms": draw.choice([5, 50]), "processing.guarantee": guarantee})
    world.create("in", PARTITIONS)
    written, kills = Input(world), guarantee == "exactly_once_v2"
    built = topology(dies, by_record=draw.random() < 0.5 or kills, caching=draw.random() < 0.5)

    def started() -> KafkaStreams:
        streams = world.streams(built, num_stream_threads=draw.choice([1, 2]))
        streams.set_uncaught_exception_handler(lambda error: ks.StreamThreadExceptionResponse.REPLACE_THREAD)
        streams.start()
        return streams

    instances = [started()]
    askers = Askers(written, instances)
    with askers.asking(draw):
        for turn in range(6):
            written.write(draw, draw.choice([20, 200]))
            sleep(draw.choice([0.1, 0.4]))
            if turn % 3 == 1:
                instances.append(started())
            if turn % 3 == 2:
                instances.pop().close()
            if turn == 3 and kills:
                dies.set()
        until(lambda: total(instances[0]) == sum(written.ends))
    instances[0].close()
    assert askers.wrong == []
    assert set(askers.answers) == {asked.store for asked in EVERY}


def total(streams: KafkaStreams) -> int:
    with suppress(StoreNotAvailableError):
        return sum(row.value for _, row in streams.store("counts", isolation="read_committed").all())
    return -1
