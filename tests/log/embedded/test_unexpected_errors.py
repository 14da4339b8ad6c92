"""What nobody thought of goes wrong while records are written: they fail, others do not, and `flush` says so."""

import errno
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kstreams.errors import LogError
from kstreams.kernel.batch import TopicPartition
from kstreams.log import Delivery, open_log, verify
from kstreams.log.embedded.disk import Disk
from tests.log.contract.reading import values_of
from tests.log.embedded.files import segments


class Unlucky(Disk):
    """A disk on which writing frames raises what it is told to, once."""

    def __init__(self) -> None:
        self.error: BaseException | None = None
        self.raised = threading.Event()

    def write_at(self, fd: int, parts: Sequence[Any], position: int) -> None:
        if self.error is not None and sum(len(memoryview(part)) for part in parts) > 96:
            error, self.error = self.error, None
            self.raised.set()
            raise error
        super().write_at(fd, parts, position)


ERRORS = {
    "no memory": MemoryError("no room"),
    "a bug": ZeroDivisionError("what?"),
    "a bad disk": OSError(errno.EIO, "EIO"),
}


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
@pytest.mark.parametrize("by_linger", [False, True], ids=["flush", "linger"])
def test_the_records_that_were_being_written_fail_and_no_others(
    tmp_path: Path, error: Exception, by_linger: bool
) -> None:
    disk = Unlucky()
    told: list[Delivery] = []
    with open_log(tmp_path, disk=disk) as log:
        log.admin().create_topic("words", partitions=2)
        with log.producer({"linger.ms": 1 if by_linger else -1, "batch.size": 1 << 20}) as producer:
            disk.error = error
            producer.send("words", b"k", b"lost", partition=0, on_delivery=told.append)
            if by_linger:
                assert disk.raised.wait(60)
            producer.send("words", b"k", b"kept", partition=1, on_delivery=told.append)
            with pytest.raises(LogError):
                producer.flush()
            producer.send("words", b"k", b"later", partition=0, on_delivery=told.append)
            producer.flush()
        assert [(delivery.source.partition, delivery.offset) for delivery in told] == [(0, -1), (1, 0), (0, 0)]
        assert isinstance(told[0].error, LogError)
        assert values_of(log, "words", 2) == [b"later", b"kept"]
    assert verify(tmp_path) == []


def test_close_raises_what_nobody_flushed(tmp_path: Path) -> None:
    disk = Unlucky()
    with open_log(tmp_path, disk=disk) as log:
        log.admin().create_topic("words")
        producer = log.producer({"linger.ms": 1})
        disk.error = MemoryError("no room")
        producer.send("words", b"k", b"lost")
        assert disk.raised.wait(60)
        with pytest.raises(LogError, match="no room"):
            producer.close()


def test_a_transaction_in_which_something_went_wrong_can_only_be_aborted(tmp_path: Path) -> None:
    disk = Unlucky()
    with open_log(tmp_path, disk=disk) as log:
        log.admin().create_topic("words")
        with log.producer({"transactional.id": "app", "linger.ms": 1}) as producer:
            producer.begin_transaction()
            disk.error = MemoryError("no room")
            producer.send("words", b"k", b"lost")
            assert disk.raised.wait(60)
            producer.send("words", b"k", b"and this")
            with pytest.raises(LogError, match="no room"):
                producer.commit_transaction()
            producer.abort_transaction()
            producer.begin_transaction()
            producer.send("words", b"k", b"again")
            producer.commit_transaction()
        assert values_of(log, "words") == [b"again"]


class Unswappable(Disk):
    """A disk on which no compacted segment comes into its place."""

    def replace(self, source: Path, target: Path) -> None:
        if source.suffix == ".cleaned":
            raise ZeroDivisionError("what?")
        super().replace(source, target)


@pytest.mark.parametrize("disk", [Disk(), Unswappable()], ids=["damaged segment", "failing disk"])
def test_cleaning_that_fails_costs_no_record(tmp_path: Path, disk: Disk) -> None:
    """What is appended is appended: a segment that cannot be compacted afterwards makes no write fail."""
    with open_log(tmp_path, disk=disk) as log:
        settings = {"cleanup.policy": "compact", "segment.bytes": "1024"}
        log.admin().create_topic("words", config=settings)
        told: list[Delivery] = []
        with log.producer({"linger.ms": -1}) as producer:
            for i in range(100):
                producer.send("words", b"k", b"%d" % i, on_delivery=told.append)
                producer.flush()
                if i == 2:
                    first = segments(tmp_path)[0]
                    first.write_bytes(b"\0" * first.stat().st_size)
        assert [delivery.offset for delivery in told] == list(range(100))
        with log.consumer() as consumer:
            consumer.assign([TopicPartition("words", 0)])
            with pytest.raises(LogError):
                consumer.poll()
