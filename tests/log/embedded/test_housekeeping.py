"""Retention, compaction and the pruning of transactions happen by themselves where nothing is appended."""

import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.clock import ManualClock
from kstreams.log import EmbeddedLog, open_log, verify
from kstreams.log.embedded.disk import Disk
from tests.log.contract.reading import rows_of, values_of
from tests.log.embedded.files import segments

START = 1_000_000
ROUND_MS = 300_000


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


def write(log: EmbeddedLog, topic: str, count: int, **settings: Any) -> None:
    with log.producer({"linger.ms": -1, **settings}) as producer:
        for i in range(count):
            producer.send(topic, b"k%d" % (i % 3), b"%d" % i)
            producer.flush()


def tend(log: EmbeddedLog) -> int:
    """Do all that is due; in how many pieces."""
    pieces = 0
    while log.do_housekeeping():
        pieces += 1
    return pieces


def test_old_records_go_although_nobody_appends(tmp_path: Path, clock: ManualClock) -> None:
    with open_log(tmp_path, clock=clock) as log:
        log.admin().create_topic("old", config={"retention.ms": "60000"})
        log.admin().create_topic("kept")
        for topic in ("old", "kept"):
            write(log, topic, 5)
        assert tend(log) == 0
        clock.advance(ROUND_MS - 1)
        assert tend(log) == 0
        clock.advance(1)
        assert tend(log) == 2
        assert values_of(log, "old") == []
        assert len(values_of(log, "kept")) == 5
        write(log, "old", 1)
        assert values_of(log, "old") == [b"0"]
    assert verify(tmp_path) == []


def test_complete_segments_are_compacted_although_nobody_appends(tmp_path: Path, clock: ManualClock) -> None:
    config = {"cleanup.policy": "compact", "segment.ms": "200000", "delete.retention.ms": "1000000"}
    with open_log(tmp_path, clock=clock) as log:
        log.admin().create_topic("table", config=config)
        write(log, "table", 9)
        with log.producer() as producer:
            producer.send("table", b"k0", None)
        tend(log)
        clock.advance(ROUND_MS)
        tend(log)
        assert values_of(log, "table") == [b"7", b"8", None]
        clock.advance(ROUND_MS)
        tend(log)
        assert len(values_of(log, "table")) == 3
        clock.advance(1_000_000)
        tend(log)
        assert values_of(log, "table") == [b"7", b"8"]


def test_settled_transactions_are_forgotten(tmp_path: Path, clock: ManualClock) -> None:
    with open_log(tmp_path, clock=clock) as log:
        log.admin().create_topic("words")
        with log.producer({"transactional.id": "app"}) as producer:
            for _ in range(20):
                producer.begin_transaction()
                producer.send("words", b"k", b"v")
                producer.commit_transaction()
        tend(log)
        clock.advance(ROUND_MS)
        tend(log)
        with sqlite3.connect(tmp_path / "catalogue.sqlite") as database:
            assert database.execute("SELECT count(*) FROM transactions").fetchone() == (0,)
        assert len(values_of(log, "words")) == 20


def test_the_processes_of_a_log_share_the_work(tmp_path: Path, clock: ManualClock) -> None:
    with open_log(tmp_path, clock=clock) as one, open_log(tmp_path, clock=clock) as other:
        one.admin().create_topic("words", partitions=4)
        assert tend(one) == tend(other) == 0
        for _ in range(3):
            clock.advance(ROUND_MS)
            assert tend(one) + tend(other) == 4


def test_a_topic_that_is_deleted_or_damaged_meanwhile_does_not_stop_it(tmp_path: Path, clock: ManualClock) -> None:
    with open_log(tmp_path, clock=clock) as log:
        config = {"cleanup.policy": "compact", "segment.ms": "1000"}
        for name in ("a", "b", "c", "d"):
            log.admin().create_topic(name, config=config)
            write(log, name, 9)
        tend(log)
        clock.advance(ROUND_MS)
        assert log.do_housekeeping()
        log.admin().delete_topic("b")
        segments(tmp_path, "c")[0].write_bytes(b"no frame")
        tend(log)
        assert [len(values_of(log, name)) for name in "ad"] == [3, 3]


def test_a_producer_that_has_nothing_to_write_does_it(tmp_path: Path, clock: ManualClock) -> None:
    with open_log(tmp_path, clock=clock) as log, log.producer({"linger.ms": 1}) as producer:
        log.admin().create_topic("old", config={"retention.ms": "60000"})
        tend(log)
        producer.send("old", b"k", b"v")
        producer.flush()
        clock.advance(ROUND_MS)
        for _ in range(600):
            if not values_of(log, "old"):
                break
            time.sleep(0.1)
        assert values_of(log, "old") == []


class Killed(BaseException):
    """The process is gone."""


class DiesAt(Disk):
    """A disk whose process is killed at one of its operations."""

    def __init__(self, operation: int) -> None:
        self._left = operation

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise Killed

    def write_at(self, fd: int, parts: Sequence[Any], position: int) -> None:
        raw = b"".join(bytes(part) for part in parts)
        if self._left == 0 and len(raw) > 90:  # the system writes a head as a whole
            super().write_at(fd, [raw[: len(raw) // 2]], position)
        self._count()
        super().write_at(fd, parts, position)

    def sync(self, fd: int) -> None:
        self._count()
        super().sync(fd)

    def replace(self, source: Path, target: Path) -> None:
        self._count()
        super().replace(source, target)

    def sync_folder(self, folder: Path) -> None:
        self._count()
        super().sync_folder(folder)


def test_a_kill_at_any_moment_of_a_compaction_leaves_a_sound_log(tmp_path: Path, clock: ManualClock) -> None:
    operation, deaths = 0, 0
    while operation == deaths:
        folder = tmp_path / str(operation)
        with open_log(folder, clock=clock) as log:
            log.admin().create_topic("table", config={"cleanup.policy": "compact", "min.compaction.lag.ms": "1"})
            for _ in range(3):
                write(log, "table", 9)
        log = open_log(folder, clock=clock, disk=DiesAt(operation))
        try:
            clock.advance(1000)
            log.compact("table")
        except Killed:
            deaths += 1
        log.close()
        assert verify(folder) == []
        with open_log(folder, clock=clock) as log:
            table = {row.key: row.value for row in rows_of(log, "table")}
            assert table == {b"k0": b"6", b"k1": b"7", b"k2": b"8"}
            log.compact("table")
            assert values_of(log, "table") == [b"6", b"7", b"8"]
            write(log, "table", 1)
            assert log.admin().end_offsets([TopicPartition("table", 0)]).popitem()[1] == 28
            assert not list(folder.glob("topics/*/*/*.cleaned"))
        assert verify(folder) == []
        operation += 1
    assert deaths >= 6
