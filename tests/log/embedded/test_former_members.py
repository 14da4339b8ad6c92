"""What a producer writes for a member of a group lands only while the member is in its group."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from time import monotonic, sleep

import pytest

from kstreams.errors import CommitFailedError, FencedError
from kstreams.kernel.batch import TopicPartition
from kstreams.log.api import GroupMetadata, OffsetAndMetadata
from kstreams.log.embedded.consumer import EmbeddedConsumer
from kstreams.log.embedded.disk import Disk
from kstreams.log.embedded.groups.coordinator import GroupCoordinator
from kstreams.log.embedded.groups.member_files import append_lock_file
from kstreams.log.embedded.log import EmbeddedLog
from kstreams.log.embedded.segments.partition import HEAD_SIZE
from kstreams.log.groups.transitions import Leave

GROUP = "app"


class HookedDisk(Disk):
    """Calls something before a partition's head is written: when an append is about to become visible."""

    def __init__(self) -> None:
        self.before_publish: Callable[[], None] = lambda: None

    def write_at(self, fd: int, parts: list, position: int) -> None:
        if position == 0 and len(parts) == 1 and len(parts[0]) == HEAD_SIZE:
            hook, self.before_publish = self.before_publish, lambda: None
            hook()
        super().write_at(fd, parts, position)


@pytest.fixture
def disk() -> HookedDisk:
    return HookedDisk()


@pytest.fixture
def log(tmp_path: Path, disk: HookedDisk) -> Iterator[EmbeddedLog]:
    with EmbeddedLog(tmp_path / "log", disk=disk) as log:
        log.admin().create_topic("counts")
        yield log


@pytest.fixture
def member(log: EmbeddedLog) -> Iterator[Callable[[], EmbeddedConsumer]]:
    """Makes members of the group, which are in it."""
    with ExitStack() as stack:

        def join() -> EmbeddedConsumer:
            settings = {"group.id": GROUP, "session.timeout.ms": 60_000}
            consumer = stack.enter_context(log.consumer(settings))
            consumer.subscribe(["counts"])
            consumer.poll(0.1)
            return consumer

        yield join


def values(log: EmbeddedLog) -> list[bytes]:
    with log.consumer() as reader:
        source = TopicPartition("counts", 0)
        reader.assign([source])
        return [row.value for batch in reader.poll() for row in batch.rows()]


def take_out(log: EmbeddedLog, who: GroupMetadata) -> None:
    GroupCoordinator(log._home, GROUP).apply(Leave(who.member, "no sign of life"))


def test_a_member_writes_as_anybody(log: EmbeddedLog, member: Callable[[], EmbeddedConsumer]) -> None:
    with log.producer() as producer:
        producer.write_for(member().group_metadata())
        producer.send("counts", b"k", b"1")
        producer.flush()
        producer.send("counts", b"k", b"2")
    assert values(log) == [b"1", b"2"]


def test_nothing_of_a_former_member_lands(log: EmbeddedLog, member: Callable[[], EmbeddedConsumer]) -> None:
    who = member().group_metadata()
    with log.producer() as producer:
        producer.write_for(who)
        producer.send("counts", b"k", b"1")
        producer.flush()
        producer.send("counts", b"k", b"old")
        take_out(log, who)
        with pytest.raises(FencedError, match=r"is no member of the group 'app' any more: .* not written"):
            producer.flush()
        producer.send("counts", b"k", b"older")  # left behind: closing says nothing of it
    assert values(log) == [b"1"]
    with log.producer() as other:
        other.send("counts", b"k", b"2")
    assert values(log) == [b"1", b"2"]


def test_who_was_out_before_the_first_record_writes_none(
    log: EmbeddedLog, member: Callable[[], EmbeddedConsumer]
) -> None:
    who = member().group_metadata()
    take_out(log, who)
    with log.producer() as producer:
        producer.write_for(who)
        producer.send("counts", b"k", b"old")
        with pytest.raises(FencedError):
            producer.flush()
    assert values(log) == []


def test_who_joins_again_writes_again(log: EmbeddedLog, member: Callable[[], EmbeddedConsumer]) -> None:
    first = member().group_metadata()
    take_out(log, first)
    with log.producer() as producer:
        producer.write_for(first)
        producer.send("counts", b"k", b"old")
        with pytest.raises(FencedError):
            producer.flush()
        producer.write_for(member().group_metadata())
        producer.send("counts", b"k", b"new")
    assert values(log) == [b"new"]


def test_nobody_is_taken_out_between_the_check_and_the_append(
    log: EmbeddedLog, disk: HookedDisk, member: Callable[[], EmbeddedConsumer]
) -> None:
    """A process that stands still there holds its place until the append is visible."""
    who = member().group_metadata()
    remover = threading.Thread(target=take_out, args=(log, who))
    seen: list[bool] = []

    def stand_still() -> None:
        remover.start()
        sleep(0.3)
        seen.append(who.member in GroupCoordinator(log._home, GROUP).group().members)

    with log.producer() as producer:
        producer.write_for(who)
        disk.before_publish = stand_still
        producer.send("counts", b"k", b"1")
        producer.flush()
        assert seen == [True]
        remover.join()
        assert who.member not in GroupCoordinator(log._home, GROUP).group().members
        assert values(log) == [b"1"]
        producer.send("counts", b"k", b"2")
        with pytest.raises(FencedError):
            producer.flush()
    assert values(log) == [b"1"]


def test_who_looks_after_others_waits_only_a_while_for_one_that_stands_still_in_an_append(
    log: EmbeddedLog, tmp_path: Path, member: Callable[[], EmbeddedConsumer]
) -> None:
    who = member().group_metadata()
    fd = os.open(append_lock_file(tmp_path / "log", who.member), os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_SH)
    begun = monotonic()
    with pytest.raises(Exception, match="is in the middle of an append"):
        take_out(log, who)
    assert monotonic() - begun < 10
    os.close(fd)
    take_out(log, who)


def test_a_transaction_is_checked_at_its_commit_alone(log: EmbeddedLog, member: Callable[[], EmbeddedConsumer]) -> None:
    who, source = member().group_metadata(), TopicPartition("counts", 0)
    with log.producer({"transactional.id": "t"}) as producer:
        producer.write_for(who)
        producer.begin_transaction()
        producer.send("counts", b"k", b"old")
        take_out(log, who)
        producer.flush()
        with pytest.raises(CommitFailedError):
            producer.commit_transaction({source: OffsetAndMetadata(1)}, who)
    assert values(log) == []
