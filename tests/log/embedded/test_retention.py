"""Old segments go by time and by size; the active one stays."""

from pathlib import Path

import pytest

from kstreams.errors import LogError
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.clock import ManualClock
from kstreams.log import EmbeddedLog, open_log, verify
from tests.log.contract.reading import values_of
from tests.log.embedded.files import indexes, segments

SOURCE = TopicPartition("words", 0)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_000_000)


@pytest.fixture
def log(tmp_path: Path, clock: ManualClock) -> EmbeddedLog:
    return open_log(tmp_path, clock=clock)


def write(log: EmbeddedLog, clock: ManualClock, count: int, step_ms: int = 0) -> None:
    with log.producer({"linger.ms": -1}) as producer:
        for i in range(count):
            producer.send("words", b"k", b"%d" % i)
            producer.flush()
            clock.advance(step_ms)


def start(log: EmbeddedLog) -> int:
    return log.admin().beginning_offsets([SOURCE])[SOURCE]


def test_nothing_goes_unless_it_is_asked_for(log: EmbeddedLog, clock: ManualClock) -> None:
    log.admin().create_topic("words", config={"segment.bytes": "1024"})
    write(log, clock, 100)
    clock.advance(10**12)
    log.clean()
    assert len(values_of(log, "words")) == 100


def test_segments_whose_records_are_too_old_go(log: EmbeddedLog, clock: ManualClock, tmp_path: Path) -> None:
    log.admin().create_topic("words", config={"segment.ms": "1000", "retention.ms": "5000"})
    write(log, clock, 100, step_ms=100)
    log.clean("words")
    assert 40 <= start(log) <= 50
    assert values_of(log, "words") == [b"%d" % i for i in range(start(log), 100)]
    assert int(segments(tmp_path)[0].stem) == start(log)
    assert verify(tmp_path) == []


def test_age_may_count_from_the_newest_record_so_that_an_old_year_can_be_replayed(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        config = {"segment.bytes": "1024", "retention.ms": "5000", "retention.clock": "record"}
        log.admin().create_topic("words", config=config)
        with log.producer({"linger.ms": -1}) as producer:
            for i in range(100):
                producer.send("words", b"k", b"%d" % i, timestamp=100 * i)
                producer.flush()
        log.clean()
        assert 35 <= start(log) <= 50
        assert values_of(log, "words") == [b"%d" % i for i in range(start(log), 100)]


def test_all_may_be_too_old(log: EmbeddedLog, clock: ManualClock) -> None:
    log.admin().create_topic("words", config={"segment.ms": "1000", "retention.ms": "5000"})
    write(log, clock, 10)
    clock.advance(6_000)
    log.clean()
    assert (start(log), values_of(log, "words")) == (10, [])
    write(log, clock, 1)
    assert values_of(log, "words") == [b"0"]


def test_the_oldest_segments_go_when_there_is_too_much(log: EmbeddedLog, clock: ManualClock, tmp_path: Path) -> None:
    log.admin().create_topic("words", config={"segment.bytes": "2000", "retention.bytes": "10000"})
    write(log, clock, 200)
    size = sum(path.stat().st_size for path in segments(tmp_path))
    assert 8_000 < size < 14_000
    assert values_of(log, "words") == [b"%d" % i for i in range(start(log), 200)]
    assert len(indexes(tmp_path)) <= len(segments(tmp_path))


def test_a_reader_whose_records_went_goes_on_where_it_is_told(log: EmbeddedLog, clock: ManualClock) -> None:
    log.admin().create_topic("words", config={"segment.bytes": "1024"})
    write(log, clock, 100)
    consumers = {reset: log.consumer({"auto.offset.reset": reset}) for reset in ("earliest", "latest", "none")}
    for consumer in consumers.values():
        consumer.assign([SOURCE])
        consumer.poll(max_records=5)
    log.admin().delete_records({SOURCE: 90})
    assert consumers["earliest"].poll(max_records=1)[0].offsets.tolist() == [90]
    assert consumers["latest"].poll() == []
    assert consumers["latest"].position(SOURCE) == 100
    with pytest.raises(LogError, match="5 to 90"):
        consumers["none"].poll()


def test_segments_roll_by_time(log: EmbeddedLog, clock: ManualClock, tmp_path: Path) -> None:
    log.admin().create_topic("words", config={"segment.ms": "1000"})
    write(log, clock, 10, step_ms=500)
    assert [int(path.stem) for path in segments(tmp_path)] == [0, 2, 4, 6, 8]


def test_segments_roll_by_size(log: EmbeddedLog, clock: ManualClock, tmp_path: Path) -> None:
    log.admin().create_topic("words", config={"segment.bytes": "4000"})
    write(log, clock, 100)
    assert len(segments(tmp_path)) > 3
    assert all(path.stat().st_size <= 4000 for path in segments(tmp_path))
