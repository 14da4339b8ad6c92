"""What groups of the embedded log do beyond the contract: `sticky`, generations that stay, no files left behind."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kstreams.errors import LogError
from kstreams.kernel.clock import ManualClock
from kstreams.log import EmbeddedLog, open_log
from kstreams.log.embedded.consumer import EmbeddedConsumer
from tests.log.contract.members import fill, numbers, settle, share


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    """A log with ten words in each of four partitions."""
    with open_log(tmp_path) as opened:
        fill(opened, "words")
        yield opened


@pytest.fixture
def member(log: EmbeddedLog) -> Iterator[Callable[..., EmbeddedConsumer]]:
    """Starts a member of the group `readers`."""
    with ExitStack() as stack:

        def start(**settings: str) -> EmbeddedConsumer:
            given = {key.replace("_", "."): value for key, value in settings.items()}
            consumer = stack.enter_context(log.consumer({"group.id": "readers", **given}))
            consumer.subscribe(["words"])
            return consumer

        yield start


def test_the_first_poll_joins_and_reads(member: Callable[..., EmbeddedConsumer]) -> None:
    assert sum(map(len, member().poll())) == 40


def test_members_that_know_sticky_share(member: Callable[..., EmbeddedConsumer], log: EmbeddedLog) -> None:
    a = member(partition_assignment_strategy="sticky,range")
    share(a)
    share(a, member(partition_assignment_strategy="sticky"))
    assert log.admin().describe_group("readers").strategy == "sticky"


def test_sticky_members_keep_of_what_they_had(member: Callable[..., EmbeddedConsumer], log: EmbeddedLog) -> None:
    members = [member(partition_assignment_strategy="sticky") for _ in range(2)]
    share(*members)
    had = [set(numbers(each)) for each in members]
    members.append(member(partition_assignment_strategy="sticky"))
    share(*members)
    assert all(set(numbers(each)) <= before for each, before in zip(members, had, strict=False))
    members.pop().close()
    share(*members)
    assert [set(numbers(each)) for each in members] == had


def test_a_static_member_comes_back_within_the_generation(member: Callable[..., EmbeddedConsumer]) -> None:
    old, other = member(group_instance_id="x"), member()
    share(old)
    share(old, other)
    had, generation = numbers(old), other.group_metadata().generation
    new = member(group_instance_id="x")
    settle(new, until=lambda: numbers(new) == had)
    assert new.group_metadata().generation == other.group_metadata().generation == generation


def test_by_duration_counts_back_from_the_clock_of_the_log(tmp_path: Path) -> None:
    with open_log(tmp_path, clock=ManualClock(12_000)) as log:
        log.admin().create_topic("words")
        with log.producer() as producer:
            for row in range(10):
                producer.send("words", None, b"", timestamp=row * 1_000)
        with log.consumer({"group.id": "readers", "auto.offset.reset": "by_duration:PT5S"}) as consumer:
            begins = []
            consumer.subscribe(["words"], on_assigned=lambda sources: begins.append(consumer.position(sources[0])))
            consumer.poll()
            assert begins == [7]


def test_only_a_consumer_of_a_group_subscribes(log: EmbeddedLog) -> None:
    with log.consumer() as alone, pytest.raises(LogError, match=r"give it a `group\.id`"):
        alone.subscribe(["words"])


def test_members_that_are_gone_leave_no_files(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        fill(log, "words", 8, 20)

        def work() -> None:
            with log.consumer({"group.id": "readers"}) as consumer:
                consumer.subscribe(["words"])
                consumer.poll(timeout=0.1)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert list((tmp_path / "members").iterdir()) == []
