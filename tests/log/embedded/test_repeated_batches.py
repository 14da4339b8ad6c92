"""What was written before an interrupt is not written again when it is repeated; what was not, is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from kstreams.errors import LogError
from kstreams.kernel.batch import TopicPartition
from kstreams.log import Delivery, Log, open_log, verify
from kstreams.log.embedded.disk import Disk
from tests.log.contract.reading import values_of

BEFORE_FRAMES, AFTER_FRAMES, AFTER_HEAD = "before the frames", "after the frames", "after the head"


class InterruptedDisk(Disk):
    """Ctrl-C comes in the midst of the next append."""

    def __init__(self) -> None:
        self.interrupt: str | None = None

    def write_at(self, fd: int, parts: Sequence[Any], position: int) -> None:
        is_head = len(parts) == 1
        at = AFTER_HEAD if is_head else AFTER_FRAMES
        if self.interrupt == BEFORE_FRAMES and not is_head:
            self._come()
        super().write_at(fd, parts, position)
        if self.interrupt == at:
            self._come()

    def _come(self) -> None:
        self.interrupt = None
        raise KeyboardInterrupt


@pytest.fixture
def disk() -> InterruptedDisk:
    return InterruptedDisk()


@pytest.mark.parametrize("when", [BEFORE_FRAMES, AFTER_FRAMES, AFTER_HEAD])
@pytest.mark.parametrize("others", [False, True])
@pytest.mark.parametrize("transactional", [False, True])
def test_an_interrupted_flush_is_repeated_without_a_second_copy(
    tmp_path: Path, disk: InterruptedDisk, when: str, others: bool, transactional: bool
) -> None:
    told: list[Delivery] = []
    with open_log(tmp_path, disk=disk) as log:
        log.admin().create_topic("words")
        settings = {"linger.ms": -1, "transactional.id": "t" if transactional else None}
        with log.producer(settings) as producer:
            if transactional:
                producer.begin_transaction()
            producer.send("words", b"k", b"0", timestamp=1)
            producer.flush()
            for value in (b"1", b"2"):
                producer.send("words", b"k", value, timestamp=1, on_delivery=told.append)
            disk.interrupt = when
            with pytest.raises(KeyboardInterrupt):
                producer.flush()
            if others:
                write_one(log, b"other")
            producer.send("words", b"k", b"3", timestamp=1, on_delivery=told.append)
            producer.flush()
            if transactional:
                producer.commit_transaction()
        values = values_of(log, "words")
        assert [value for value in values if value != b"other"] == [b"0", b"1", b"2", b"3"]
        assert values.count(b"other") == others
        assert [values[delivery.offset] for delivery in told] == [b"1", b"2", b"3"]
    assert verify(tmp_path) == []


def test_the_same_records_of_another_producer_are_not_taken_for_the_repeated_ones(
    tmp_path: Path, disk: InterruptedDisk
) -> None:
    with open_log(tmp_path, disk=disk) as log:
        log.admin().create_topic("words")
        with log.producer({"linger.ms": -1}) as producer:
            producer.send("words", b"k", b"1", timestamp=1)
            disk.interrupt = AFTER_FRAMES
            with pytest.raises(KeyboardInterrupt):
                producer.flush()
            write_one(log, b"1")
        assert values_of(log, "words") == [b"1", b"1"]


def test_a_producer_that_is_closed_after_an_interrupt_writes_what_is_left(
    tmp_path: Path, disk: InterruptedDisk
) -> None:
    for number, when in enumerate((BEFORE_FRAMES, AFTER_FRAMES, AFTER_HEAD)):
        with open_log(tmp_path / str(number), disk=disk) as log:
            log.admin().create_topic("words")
            producer = log.producer({"linger.ms": -1})
            producer.send("words", b"k", b"1", timestamp=1)
            disk.interrupt = when
            with pytest.raises(KeyboardInterrupt):
                producer.flush()
            producer.close()
            assert values_of(log, "words") == [b"1"]


def test_a_failed_append_is_not_repeated(tmp_path: Path, disk: InterruptedDisk) -> None:
    with open_log(tmp_path, disk=disk) as log:
        log.admin().create_topic("words", config={"max.message.bytes": "1024"})
        with log.producer({"linger.ms": -1}) as producer:
            producer.send_batch(_large())
            with pytest.raises(LogError, match="large"):
                producer.flush()
            producer.send("words", b"k", b"1", timestamp=1)
        assert values_of(log, "words") == [b"1"]


def write_one(log: Log, value: bytes) -> None:
    with log.producer() as another:
        another.send("words", b"k", value, timestamp=1)


def _large() -> Any:
    from kstreams.kernel.batch import Batch, Row

    return Batch.of_rows(TopicPartition("words", 0), [Row(b"k", b"x" * 5_000, 1, ())])
