"""Readers while files change under them: what is read stays readable, what is gone or damaged is said by its name."""

import shutil
from pathlib import Path

import pytest

from kstreams.errors import CorruptLogError, UnknownTopicError
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.clock import ManualClock
from kstreams.log import EmbeddedLog, open_log
from tests.log.contract.reading import drain, sources, values_of
from tests.log.embedded.files import flip, segments

SOURCE = TopicPartition("words", 0)


def filled(folder: Path, frames: int = 9, **config: str) -> EmbeddedLog:
    """A log with three records to a segment, one to a frame."""
    log = open_log(folder, clock=ManualClock(1_000_000))
    settings = {key.replace("_", "."): value for key, value in config.items()}
    log.admin().create_topic("words", config={"segment.bytes": "2200", **settings})
    with log.producer({"linger.ms": -1}) as producer:
        for i in range(frames):
            producer.send("words", b"k%d" % (i % 2), b"%d " % i + b"x" * 200)
            producer.flush()
    assert len(segments(folder)) == frames / 3
    return log


def numbers(consumer: object) -> list[int]:
    return [int((row.value or b"").split()[0]) for row in drain(consumer)]  # type: ignore[arg-type]


def test_damage_in_the_next_segment_is_told_after_the_records_before_it(tmp_path: Path) -> None:
    log = filled(tmp_path)
    flip(segments(tmp_path)[1], 3)
    with log.consumer() as consumer:
        consumer.assign([SOURCE])
        assert sum(map(len, consumer.poll())) == 3
        for _ in range(2):
            with pytest.raises(CorruptLogError, match=r"00003\.log is damaged at byte 0"):
                consumer.poll()
        consumer.seek(SOURCE, 6)
        assert numbers(consumer) == [6, 7, 8]


def test_a_segment_that_is_missing_is_told_after_the_records_before_it(tmp_path: Path) -> None:
    log = filled(tmp_path)
    segments(tmp_path)[1].unlink()
    with log.consumer() as consumer:
        consumer.assign([SOURCE])
        assert sum(map(len, consumer.poll())) == 3
        for _ in range(2):
            with pytest.raises(CorruptLogError, match="offset 3"):
                consumer.poll()


def test_records_that_were_read_stay_what_they_were_when_the_files_go(tmp_path: Path) -> None:
    log = filled(tmp_path)
    with log.consumer() as consumer:
        consumer.assign([SOURCE])
        batches = consumer.poll()
        before = [batch.values.to_pylist() for batch in batches]
        shutil.rmtree(segments(tmp_path)[0].parent)
        assert [batch.values.to_pylist() for batch in batches] == before


def test_a_reader_goes_on_where_compaction_put_another_file_in_place_of_the_one_it_reads(tmp_path: Path) -> None:
    log = filled(tmp_path, cleanup_policy="compact", min_compaction_lag_ms="1000000")
    with log.consumer() as consumer, log.consumer() as at_the_end:
        for each in (consumer, at_the_end):
            each.assign([SOURCE])
        assert sum(map(len, consumer.poll(max_records=2))) == 2
        at_the_end.poll()
        log._home.clock.advance(604_800_000)  # type: ignore[attr-defined]  # segment.ms: the last segment is complete
        before = [path.stat().st_ino for path in segments(tmp_path)]
        log.clean()
        assert before[0] not in [path.stat().st_ino for path in segments(tmp_path)]
        assert numbers(consumer)[-2:] == [7, 8]
        with log.producer() as producer:
            producer.send("words", b"k0", b"9")
        assert numbers(consumer) == numbers(at_the_end) == [9]


def test_a_topic_that_is_deleted_under_its_reader_is_said_to_be(tmp_path: Path) -> None:
    log = filled(tmp_path)
    with log.consumer() as consumer:
        consumer.assign([SOURCE])
        consumer.poll(max_records=1)
        log.admin().delete_topic("words")
        with pytest.raises(UnknownTopicError, match="'words' was deleted"):
            list(iter(consumer.poll, []))


def test_after_that_it_may_read_the_new_topic_of_the_same_name(tmp_path: Path) -> None:
    log = filled(tmp_path)
    with log.consumer() as consumer:
        consumer.assign([SOURCE])
        drain(consumer)
        log.admin().delete_topic("words")
        log.admin().create_topic("words")
        with pytest.raises(UnknownTopicError, match="deleted"):
            consumer.poll()
        with log.producer() as producer:
            producer.send("words", b"k", b"1")
        consumer.assign(sources("words"))
        assert numbers(consumer) == [1]
    assert values_of(log, "words") == [b"1"]
