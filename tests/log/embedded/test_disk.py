"""Disks that are full or fail to sync: a clear error, nothing acknowledged is lost, writing goes on afterwards."""

import errno
import resource
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kstreams.errors import LogError
from kstreams.kernel.batch import TopicPartition
from kstreams.log import Delivery, open_log, verify
from kstreams.log.embedded.disk import Disk
from tests.log.contract.reading import values_of
from tests.log.embedded.files import run, segments


class FailingDisk(Disk):
    """A disk that takes only so many bytes more, and may refuse to sync."""

    def __init__(self) -> None:
        self.room: int | None = None
        self.fails_to_sync = False
        self.syncs = 0

    def write_at(self, fd: int, parts: Sequence[Any], position: int) -> None:
        raw = b"".join(bytes(part) for part in parts)
        if self.room is not None and len(raw) > 90:  # the head is rewritten in place and needs no room
            if len(raw) > self.room:
                super().write_at(fd, [raw[: self.room]], position)
                self.room = 0
                raise OSError(errno.ENOSPC, "No space left on device")
            self.room -= len(raw)
        super().write_at(fd, [raw], position)

    def sync(self, fd: int) -> None:
        self.syncs += Path(f"/dev/fd/{fd}").resolve().suffix == ".log"
        if self.fails_to_sync:
            raise OSError(errno.EIO, "Input/output error")
        super().sync(fd)


def test_a_full_disk_is_told_and_costs_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    disk = FailingDisk()
    told: list[Delivery] = []
    with open_log(tmp_path, disk=disk) as log:
        log.admin().create_topic("words")
        with log.producer() as producer:
            for room in (None, 900, 5, 0):
                disk.room = room
                producer.send("words", b"k", b"kept" if room is None else b"x" * 1000, on_delivery=told.append)
                if room is None:
                    producer.flush()
                    continue
                with pytest.raises(LogError, match="disk is full"):
                    producer.flush()
                assert values_of(log, "words") == [b"kept"]
                assert verify(tmp_path) == []
            disk.room = None
            producer.send("words", b"k", b"later", on_delivery=told.append)
        assert values_of(log, "words") == [b"kept", b"later"]
    assert [delivery.offset for delivery in told] == [0, -1, -1, -1, 1]


def test_after_a_failed_sync_nothing_of_the_write_stays_and_the_file_is_opened_anew(tmp_path: Path) -> None:
    disk = FailingDisk()
    with open_log(tmp_path, durability="fsync", disk=disk) as log:
        log.admin().create_topic("words")
        with log.producer() as producer:
            producer.send("words", b"k", b"1")
            producer.flush()
            disk.fails_to_sync, disk.syncs = True, 0
            producer.send("words", b"k", b"2")
            with pytest.raises(LogError, match="Could not append"):
                producer.flush()
            assert disk.syncs == 1
            assert values_of(log, "words") == [b"1"]
            disk.fails_to_sync = False
            producer.send("words", b"k", b"3")
        assert values_of(log, "words") == [b"1", b"3"]
    assert verify(tmp_path) == []


def test_a_transaction_that_cannot_be_synced_is_not_committed(tmp_path: Path) -> None:
    disk = FailingDisk()
    with open_log(tmp_path, durability="fsync", disk=disk) as log:
        log.admin().create_topic("words")
        with log.producer({"transactional.id": "app"}) as producer:
            producer.begin_transaction()
            producer.send("words", b"k", b"1")
            disk.fails_to_sync = True
            with pytest.raises(LogError):
                producer.commit_transaction()
            disk.fails_to_sync = False
            producer.abort_transaction()
            producer.begin_transaction()
            producer.send("words", b"k", b"2")
            producer.commit_transaction()
        assert values_of(log, "words") == [b"2"]


@pytest.mark.parametrize(("durability", "synced"), [("none", False), ("os", False), ("fsync", True)])
def test_only_fsync_syncs_before_it_acknowledges(tmp_path: Path, durability: str, synced: bool) -> None:
    disk = FailingDisk()
    with open_log(tmp_path, durability=durability, disk=disk) as log:
        log.admin().create_topic("words")
        with log.producer() as producer:
            producer.send("words", b"k", b"1")
            producer.flush()
            assert (disk.syncs > 0) == synced


def test_a_transaction_is_synced_once_for_each_partition(tmp_path: Path) -> None:
    disk = FailingDisk()
    with open_log(tmp_path, durability="fsync", disk=disk) as log:
        log.admin().create_topic("words", partitions=2)
        with log.producer({"transactional.id": "app"}) as producer:
            producer.begin_transaction()
            for i in range(10):
                producer.send("words", b"k", b"1", partition=i % 2)
                producer.flush()
            assert disk.syncs == 0
            producer.commit_transaction()
    assert disk.syncs == 2


LIMITED = """
import resource, sys
from kstreams.errors import LogError
from kstreams.log import open_log
with open_log(sys.argv[1]) as log, log.producer() as producer:
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
    sent = 0
    try:
        while True:
            producer.send("words", b"k", b"x" * 10_000)
            producer.flush()
            sent += 1
    except LogError as error:
        print(sent)
        assert "full" in str(error), error
"""


def test_a_real_limit_on_the_size_of_files(tmp_path: Path) -> None:
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] < 0
    with open_log(tmp_path) as log:
        log.admin().create_topic("words")
        sent = int(run(LIMITED, tmp_path))
        assert sent > 10
        assert len(values_of(log, "words")) == sent
        assert verify(tmp_path) == []
        with log.producer() as producer:
            producer.send("words", b"k", b"later")
        assert len(values_of(log, "words")) == sent + 1


def test_a_reader_on_a_full_disk_needs_no_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_log(tmp_path) as log:
        log.admin().create_topic("words")
        with log.producer() as producer:
            for i in range(100):
                producer.send("words", b"k", b"%d" % i + b"x" * 2000)
                producer.flush()
        for index in segments(tmp_path)[0].parent.glob("*.index"):
            index.unlink()
        monkeypatch.setattr("kstreams.log.embedded.segments.index.create_file", _no_space)
        with log.consumer() as consumer:
            consumer.assign([TopicPartition("words", 0)])
            consumer.seek(TopicPartition("words", 0), 77)
            assert consumer.poll()[0].offsets[0] == 77


def _no_space(*_: object) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")
