"""Indexes are a convenience: lost, garbled or stale, what is read is the same."""

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kstreams.kernel.batch import TopicPartition
from kstreams.log import EmbeddedLog, open_log
from kstreams.log.embedded.segments.index import INTERVAL
from tests.log.embedded.files import indexes, segments

SOURCE = TopicPartition("words", 0)
TIMES = [random.Random(3).randrange(1_000) + 5 * i for i in range(800)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log with 800 frames of about 1 KB, timestamps in some disorder, in a few segments."""
    folder = tmp_path_factory.mktemp("log")
    with open_log(folder) as log:
        log.admin().create_topic("words", config={"segment.bytes": "300000"})
        with log.producer({"linger.ms": -1}) as producer:
            for i, time in enumerate(TIMES):
                producer.send("words", b"%d" % i, b"x" * 700, timestamp=time)
                producer.flush()
    assert len(segments(folder)) > 2
    assert segments(folder)[0].stat().st_size > 3 * INTERVAL
    return folder


def first_keys(log: EmbeddedLog, offsets: list[int], times: list[int]) -> list[int | None]:
    found: list[int | None] = []
    with log.consumer() as consumer:
        consumer.assign([SOURCE])
        for offset in offsets:
            consumer.seek(SOURCE, offset)
            found += [int(row.key) for row in consumer.poll(max_records=1)[0].rows()]
        for time in times:
            consumer.seek_to_time(SOURCE, time)
            found.append(consumer.position(SOURCE))
    return found


def expected(offsets: list[int], times: list[int]) -> list[int]:
    at = [next((i for i, time in enumerate(TIMES) if time >= wanted), len(TIMES)) for wanted in times]
    return offsets + at


@given(
    st.lists(st.integers(0, len(TIMES) - 1), max_size=5),
    st.lists(st.integers(-10, max(TIMES) + 10), max_size=5),
    st.sampled_from(["keep", "delete", "garble", "shorten", "swap"]),
    st.integers(
        0, 2**32
    ),  # not `randoms`: what is chosen here depends on the files, which live from example to example
)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_happens_to_indexes_reads_find_their_place(
    folder: Path, offsets: list[int], times: list[int], what: str, seed: int
) -> None:
    chance = random.Random(seed)
    with open_log(folder) as log:
        for path in indexes(folder):
            raw = bytearray(path.read_bytes())
            if what == "delete":
                path.unlink()
            elif what == "garble" and raw:
                for _ in range(4):
                    raw[chance.randrange(len(raw))] ^= 1 << chance.randrange(8)
                path.write_bytes(raw)
            elif what == "shorten":
                path.write_bytes(raw[: chance.randrange(len(raw) + 1)])
            elif what == "swap":
                path.write_bytes(raw[32:] + raw[:32])
        assert first_keys(log, offsets, times) == expected(offsets, times)


def test_lost_indexes_come_back(folder: Path) -> None:
    with open_log(folder) as log:
        for path in indexes(folder):
            path.unlink()
        first_keys(log, list(range(0, 800, 40)), [])
        assert len(indexes(folder)) >= len(segments(folder)) - 1
