"""Processes of one log whose wall clocks differ, or jump: what waits for time to pass waits for nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kstreams.errors import FencedError
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.clock import ManualClock
from kstreams.log.embedded import log as log_module
from kstreams.log.embedded.catalogue import transactions
from kstreams.log.embedded.groups import member_files
from kstreams.log.embedded.groups.coordinator import GroupCoordinator
from kstreams.log.embedded.groups.member_files import MemberFile, SessionMonitor
from kstreams.log.embedded.log import EmbeddedLog
from kstreams.log.groups.group import Member
from kstreams.log.groups.subscription import MemberSubscription
from kstreams.log.groups.transitions import Join
from tests.log.contract.reading import values_of

SOURCE = TopicPartition("words", 0)
HOUR_MS = 3_600_000
JUMPS = [-24 * HOUR_MS, -HOUR_MS, HOUR_MS, 10 * 365 * 24 * HOUR_MS]
NOW_MS = 1_700_000_000_000


class Process:
    """A log as one process opens it.

    Parameters
    ----------
    folder : Path
    shift_ms : int
        How far its time of day is off.
    """

    def __init__(self, folder: Path, shift_ms: int = 0) -> None:
        self.clock = ManualClock(NOW_MS)
        self.clock.jump(shift_ms)
        self.log = EmbeddedLog(folder, clock=self.clock)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.mark.parametrize("shift_ms", JUMPS)
def test_a_reader_aborts_no_transaction_of_others_before_its_time(
    tmp_path: Path, stack: ExitStack, shift_ms: int
) -> None:
    writer, reader = Process(tmp_path), Process(tmp_path, shift_ms)
    stack.callback(writer.log.close)
    stack.callback(reader.log.close)
    writer.log.admin().create_topic("words")
    with writer.log.producer({"transactional.id": "app"}) as producer:
        producer.begin_transaction()
        producer.send("words", b"k", b"v")
        producer.flush()
        assert reader.log.admin().end_offsets([SOURCE]) == {SOURCE: 0}
        producer.commit_transaction()
    assert values_of(reader.log, "words") == [b"v"]


@pytest.mark.parametrize("shift_ms", JUMPS)
def test_a_transaction_ends_when_its_time_has_passed_whatever_the_time_of_day(
    tmp_path: Path, stack: ExitStack, shift_ms: int
) -> None:
    writer, reader = Process(tmp_path, shift_ms), Process(tmp_path)
    stack.callback(writer.log.close)
    stack.callback(reader.log.close)
    writer.log.admin().create_topic("words")
    producer = writer.log.producer({"transactional.id": "app", "transaction.timeout.ms": 500})
    stack.callback(producer.close)
    producer.begin_transaction()
    producer.send("words", b"k", b"v")
    producer.flush()
    reader.clock.advance(499)
    assert reader.log.admin().end_offsets([SOURCE]) == {SOURCE: 0}
    reader.clock.advance(1)
    assert reader.log.admin().end_offsets([SOURCE]) == {SOURCE: 1}
    with pytest.raises(FencedError):
        producer.commit_transaction()


@pytest.mark.parametrize("shift_ms", JUMPS)
def test_a_rebalance_waits_for_those_who_join_late(tmp_path: Path, stack: ExitStack, shift_ms: int) -> None:
    one, other = Process(tmp_path), Process(tmp_path, shift_ms)
    stack.callback(one.log.close)
    stack.callback(other.log.close)
    for name, process in (("a", one), ("b", other)):
        stack.callback(MemberFile(tmp_path, name, process.clock.uptime_ms()).close, leaves=True)
        member = Member(name, ("range",), MemberSubscription(("words",)), 45_000, 300_000)
        GroupCoordinator(process.log._home, "g").apply(Join(member))
    GroupCoordinator(other.log._home, "g").remove_dead(observer="b")
    assert set(GroupCoordinator(one.log._home, "g").group().members) == {"a", "b"}
    other.clock.advance(300_000)
    GroupCoordinator(other.log._home, "g").remove_dead(observer="b")
    assert set(GroupCoordinator(one.log._home, "g").group().members) == {"b"}


def static_member(folder: Path, uptime_ms: int) -> Member:
    MemberFile(folder, "m", uptime_ms).close(leaves=False)
    return Member("m", ("range",), MemberSubscription(("words",), instance="i"), 1_000, 300_000)


def test_a_static_member_without_a_process_is_waited_for(tmp_path: Path) -> None:
    member = static_member(tmp_path, uptime_ms=5_000)
    assert SessionMonitor(tmp_path).dead([member], 5_999) == []
    assert [name for name, _ in SessionMonitor(tmp_path).dead([member], 6_000)] == ["m"]


def test_a_static_member_of_an_earlier_boot_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    member = static_member(tmp_path, uptime_ms=5_000)
    monkeypatch.setattr(member_files, "boot_id", lambda: b"another boot....")
    assert [name for name, _ in SessionMonitor(tmp_path).dead([member], 100)] == ["m"]


def test_transactions_of_an_earlier_boot_are_aborted(
    tmp_path: Path, stack: ExitStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Process(tmp_path)
    before.log.admin().create_topic("words")
    producer = before.log.producer({"transactional.id": "app"})
    producer.begin_transaction()
    producer.send("words", b"k", b"v")
    producer.flush()
    monkeypatch.setattr(log_module, "boot_id", lambda: b"another boot....")
    after = stack.enter_context(EmbeddedLog(tmp_path, clock=ManualClock(100)))
    assert after.admin().end_offsets([SOURCE]) == {SOURCE: 1}
    assert values_of(after, "words") == []
    with after.producer({"transactional.id": "new"}) as new:
        new.begin_transaction()
        new.send("words", b"k", b"w")
        new.flush()
        with EmbeddedLog(tmp_path, clock=ManualClock(200)) as third:  # of the same boot: it aborts nothing
            assert third.admin().end_offsets([SOURCE]) == {SOURCE: 1}
        new.commit_transaction()
    assert values_of(after, "words") == [b"w"]


def test_ids_of_transactions_grow_although_the_time_of_day_goes_back(tmp_path: Path, stack: ExitStack) -> None:
    clock = ManualClock(NOW_MS)
    log = stack.enter_context(EmbeddedLog(tmp_path, clock=clock))
    producer = transactions.open_producer(log._home.catalogue, "app")
    first = transactions.begin(log._home.catalogue, producer, clock, 1_000)
    clock.jump(-HOUR_MS)
    assert transactions.begin(log._home.catalogue, producer, clock, 1_000) == first + 1
