"""Members of a group in one process: who reads what, who may commit, and what listeners hear."""

import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from kstreams.batch import Batch, TopicPartition
from kstreams.clock import ManualClock
from kstreams.errors import CommitFailedError, ConfigError, FencedError, LogError
from kstreams.log import EmbeddedLog, OffsetAndMetadata, open_log
from kstreams.log.embedded.consumer import EmbeddedConsumer
from tests.log.contract.reading import values_of

EAGER = "range"
COOPERATIVE = "cooperative-sticky"
TURNS = 6_000  # of polls of 10 ms: far more than any of these tests needs


class Started:
    """Members of the group `readers`, and what their listeners heard."""

    def __init__(self, log: EmbeddedLog, stack: ExitStack) -> None:
        self.log, self._stack = log, stack
        self.heard: list[tuple[str, str, list[int]]] = []

    def member(self, name: str, topics: Any = ("words",), **settings: Any) -> EmbeddedConsumer:
        given = {key.replace("_", "."): value for key, value in settings.items()}
        consumer = self.log.consumer({"group.id": "readers", "client.id": name, **given})
        self._stack.callback(consumer.close)

        def hear(what: str) -> Callable[[list[TopicPartition]], None]:
            return lambda sources: self.heard.append((name, what, [source.partition for source in sources]))

        consumer.subscribe(topics, on_assigned=hear("+"), on_revoked=hear("-"), on_lost=hear("!"))
        return consumer


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    """A log with ten words in each of four partitions."""
    with open_log(tmp_path) as opened:
        fill(opened, "words")
        yield opened


@pytest.fixture
def started(log: EmbeddedLog) -> Iterator[Started]:
    with ExitStack() as stack:
        yield Started(log, stack)


def fill(log: EmbeddedLog, topic: str, partitions: int = 4, rows: int = 10) -> None:
    log.admin().create_topic(topic, partitions)
    with log.producer() as producer:
        for row in range(rows):
            for partition in range(partitions):
                producer.send(topic, None, f"{partition} {row}".encode(), partition=partition, timestamp=row)


def numbers(consumer: EmbeddedConsumer) -> list[int]:
    return sorted(source.partition for source in consumer.assignment())


def settle(*consumers: EmbeddedConsumer, until: Callable[[], bool]) -> list[Batch]:
    """Poll in turn until something holds; what was read."""
    read = []
    for _ in range(TURNS):
        for consumer in consumers:
            read += consumer.poll(timeout=0.01)
        if until():
            return read
    raise AssertionError("the group did not come there")


def share(*consumers: EmbeddedConsumer, partitions: int = 4) -> list[Batch]:
    """Poll until all partitions are read, each by one of these, in equal shares."""

    def shared() -> bool:
        owned = [numbers(consumer) for consumer in consumers]
        fair = max(map(len, owned)) - min(map(len, owned)) <= 1
        return fair and sorted(chain.from_iterable(owned)) == list(range(partitions))

    return settle(*consumers, until=shared)


def may_commit(consumer: EmbeddedConsumer) -> bool:
    try:
        consumer.commit()
    except CommitFailedError:
        return False
    return True


def test_a_group_reads_on_where_it_has_committed(started: Started) -> None:
    first = started.member("a")
    assert sum(map(len, first.poll(timeout=60, max_records=25))) == 25
    first.commit()
    first.poll(timeout=60)
    first.close()
    second = started.member("b")
    assert sum(map(len, second.poll(timeout=60))) == 15
    other = started.log.consumer({"group.id": "others"})
    other.subscribe(["words"])
    assert sum(map(len, other.poll(timeout=60))) == 40
    other.close()


def test_cooperative_members_keep_what_they_may_keep(started: Started) -> None:
    a, b = started.member("a"), started.member("b")
    share(a)
    share(a, b)
    assert started.heard == [("a", "+", [0, 1, 2, 3]), ("a", "-", [2, 3]), ("b", "+", [2, 3])]
    b.close()
    share(a)
    assert started.heard[3:] == [("b", "-", [2, 3]), ("a", "+", [2, 3])]


def test_eager_members_give_up_everything_first(started: Started) -> None:
    settings = {"partition_assignment_strategy": EAGER}
    a, b = started.member("a", **settings), started.member("b", **settings)
    share(a)
    share(a, b)
    assert started.heard[:2] == [("a", "+", [0, 1, 2, 3]), ("a", "-", [0, 1, 2, 3])]
    assert sorted(started.heard[2:]) == [("a", "+", [0, 1]), ("b", "+", [2, 3])]


@pytest.mark.parametrize("strategy", [EAGER, COOPERATIVE, "roundrobin", "sticky,range"])
def test_what_is_committed_when_partitions_go_is_not_read_again(log: EmbeddedLog, strategy: str) -> None:
    settings = {"group.id": "readers", "partition.assignment.strategy": strategy}
    a, b = log.consumer(settings), log.consumer(settings)
    a.subscribe(["words"], on_revoked=lambda _: a.commit())
    b.subscribe(["words"], on_revoked=lambda _: b.commit())
    read = settle(a, until=lambda: len(a.assignment()) == 4)
    read += a.poll(max_records=13)
    read += share(a, b)
    b.close()
    read += share(a)
    read += settle(a, until=lambda: all(a.position(source) == 10 for source in a.assignment()))
    a.close()
    values = Counter(row.value for batch in read for row in batch.rows())
    assert values == Counter(f"{partition} {row}".encode() for partition in range(4) for row in range(10))


def test_a_member_that_does_not_poll_is_out_and_can_commit_nothing(started: Started) -> None:
    started.log.admin().create_topic("out")
    slow = started.member("slow", max_poll_interval_ms=300)
    share(slow)
    late = slow.group_metadata()
    other = started.member("other")
    share(other)
    with pytest.raises(CommitFailedError, match="no member of the group 'readers' any more"):
        slow.commit()
    offsets = {TopicPartition("words", 0): OffsetAndMetadata(10)}
    with started.log.producer({"transactional.id": "slow"}) as producer:
        producer.begin_transaction()
        producer.send("out", None, b"late")
        with pytest.raises(CommitFailedError):
            producer.commit_transaction(offsets, late)
        producer.abort_transaction()
        assert values_of(started.log, "out") == []
        producer.begin_transaction()
        producer.send("out", None, b"in time")
        producer.commit_transaction({TopicPartition("words", 0): OffsetAndMetadata(7)}, other.group_metadata())
    assert values_of(started.log, "out") == [b"in time"]
    assert other.committed([TopicPartition("words", 0)]) == {TopicPartition("words", 0): OffsetAndMetadata(7)}
    share(slow, other)
    assert ("slow", "!", [0, 1, 2, 3]) in started.heard
    settle(slow, other, until=lambda: may_commit(slow))


def test_a_commit_of_an_earlier_generation_is_refused(started: Started) -> None:
    a, b = started.member("a"), started.member("b")
    share(a)
    before = a.group_metadata()
    share(a, b)
    with started.log.producer({"transactional.id": "a"}) as producer:
        producer.begin_transaction()
        with pytest.raises(CommitFailedError, match=rf"the commit is of generation {before.generation}"):
            producer.commit_transaction({TopicPartition("words", 0): OffsetAndMetadata(1)}, before)
        producer.abort_transaction()
    assert a.committed([TopicPartition("words", 0)]) == {}


def test_who_is_no_member_commits_only_while_the_group_has_none(started: Started) -> None:
    zero, admin = TopicPartition("words", 0), started.log.admin()
    admin.commit("readers", {zero: OffsetAndMetadata(3)})
    a = started.member("a")
    share(a)
    assert a.position(zero) == 10 or a.committed([zero]) == {zero: OffsetAndMetadata(3)}
    stranger = started.log.consumer({"group.id": "readers"})
    for commit in (lambda: admin.commit("readers", {zero: OffsetAndMetadata(5)}), stranger.commit):
        with pytest.raises(CommitFailedError, match="stop them first"):
            commit()
    with pytest.raises(LogError, match="has 1 members: stop them"):
        admin.delete_group("readers")
    a.close()
    assert admin.describe_group("readers").state == "Empty"
    stranger.assign([zero])
    stranger.poll()
    stranger.commit()
    assert admin.committed("readers", [zero]) == {zero: OffsetAndMetadata(10)}
    admin.delete_group("readers")
    assert admin.describe_group("readers").state == "Dead"
    assert admin.groups() == []


def test_a_static_member_comes_back_to_its_partitions_and_fences_its_former_self(started: Started) -> None:
    old = started.member("old", group_instance_id="x")
    other = started.member("other")
    share(old)
    share(old, other)
    had, generation = numbers(old), other.group_metadata().generation
    new = started.member("new", group_instance_id="x")
    settle(new, until=lambda: numbers(new) == had)
    assert new.group_metadata().generation == other.group_metadata().generation == generation
    with pytest.raises(FencedError, match=r"`group\.instance\.id` 'x'"):
        old.commit()
    for _ in range(2):
        with pytest.raises(FencedError, match="close this one"):
            old.poll()
    assert (numbers(old), numbers(new)) == ([], had)
    new.close()
    assert len(started.log.admin().describe_group("readers").members) == 2, "a static member does not leave"


def test_a_static_member_that_stays_away_is_missed_after_its_session_time_out(started: Started) -> None:
    gone = started.member("gone", group_instance_id="x", session_timeout_ms=300, heartbeat_interval_ms=50)
    other = started.member("other")
    share(gone)
    share(gone, other)
    gone.close()
    share(other)


@pytest.mark.parametrize(
    ("reset", "expected"), [("earliest", 0), ("latest", 10), ("by_duration:PT5S", 7), ("by_duration:PT1H", 0)]
)
def test_where_a_group_begins_without_a_commit(tmp_path: Path, reset: str, expected: int) -> None:
    with open_log(tmp_path, clock=ManualClock(12_000)) as log:
        log.admin().create_topic("words")
        with log.producer() as producer:
            for row in range(10):
                producer.send("words", None, b"", timestamp=row * 1_000)
        with log.consumer({"group.id": "readers", "auto.offset.reset": reset}) as consumer:
            begins = []
            consumer.subscribe(["words"], on_assigned=lambda sources: begins.append(consumer.position(sources[0])))
            consumer.poll()
            assert begins == [expected]


def test_a_group_may_insist_on_committed_offsets(started: Started) -> None:
    consumer = started.member("a", auto_offset_reset="none")
    for _ in range(2):
        with pytest.raises(LogError, match=r"committed nothing for words-0, .* by_duration:PT1H"):
            consumer.poll()
    consumer.commit({TopicPartition("words", number): OffsetAndMetadata(8) for number in range(4)})
    assert sum(map(len, consumer.poll(timeout=60))) == 8
    with pytest.raises(ConfigError, match="by_duration:PT1H"):
        started.log.consumer({"auto.offset.reset": "yesterday"})


def test_a_pattern_takes_topics_that_come_later(started: Started) -> None:
    settings = {"metadata_max_age_ms": 0}
    a = started.member("a", re.compile("w.*"), **settings)
    b = started.member("b", re.compile("w.*"), **settings)
    share(a, b)
    fill(started.log, "other", 1)
    fill(started.log, "worlds", 2)
    settle(a, b, until=lambda: len(a.assignment() | b.assignment()) == 6)
    assert {source.topic for source in a.assignment() | b.assignment()} == {"words", "worlds"}


def test_a_topic_that_is_not_there_yet_is_told_of_and_read_when_it_comes(
    started: Started, caplog: pytest.LogCaptureFixture
) -> None:
    consumer = started.member("a", ("words", "later"), metadata_max_age_ms=0)
    share(consumer)
    assert [line for line in caplog.messages if "'later'" in line] == [
        "There is no topic 'later' yet: it is read when it is created."
    ]
    fill(started.log, "later", 1)
    settle(consumer, until=lambda: len(consumer.assignment()) == 5)


def test_members_that_want_other_topics_get_those_alone(started: Started) -> None:
    fill(started.log, "lines", 3)
    a, b = started.member("a", ("words",)), started.member("b", ("lines",))
    settle(a, b, until=lambda: (len(a.assignment()), len(b.assignment())) == (4, 3))
    assert {source.topic for source in a.assignment()} == {"words"}


def test_async_commits_tell_at_the_next_poll_and_keep_their_order(started: Started) -> None:
    consumer = started.member("a")
    share(consumer)
    zero, told = TopicPartition("words", 0), []
    consumer.commit_async({zero: OffsetAndMetadata(4)}, lambda offsets, error: told.append((offsets, error)))
    consumer.commit({zero: OffsetAndMetadata(6)})
    assert told == []
    consumer.poll()
    assert told == [({zero: OffsetAndMetadata(4)}, None)]
    assert consumer.committed([zero]) == {zero: OffsetAndMetadata(6)}


def test_what_a_listener_raises_comes_out_of_poll_and_the_group_goes_on(log: EmbeddedLog) -> None:
    with log.consumer({"group.id": "readers"}) as consumer:

        def fail(_: list[TopicPartition]) -> None:
            raise ValueError("no room")

        consumer.subscribe(["words"], on_assigned=fail)
        with pytest.raises(ValueError, match="no room"):
            consumer.poll(timeout=60)
        assert sum(map(len, consumer.poll(timeout=60))) == 40


def test_subscribing_needs_a_group_and_excludes_assigning(started: Started) -> None:
    with started.log.consumer() as alone, pytest.raises(LogError, match=r"give it a `group\.id`"):
        alone.subscribe(["words"])
    with pytest.raises(ConfigError, match=r"`heartbeat\.interval\.ms` \(3000\) is less than"):
        started.member("a", session_timeout_ms=3_000)
    member = started.member("a")
    with pytest.raises(LogError, match="unsubscribe first"):
        member.assign([TopicPartition("words", 0)])
    member.unsubscribe()
    member.assign([TopicPartition("words", 0)])
    assert sum(map(len, member.poll())) == 10


def test_paused_partitions_stay_paused_while_others_come_and_go(started: Started) -> None:
    a = started.member("a")
    settle(a, until=lambda: len(a.assignment()) == 4)
    zero = TopicPartition("words", 0)
    a.pause([zero])
    a.seek(zero, 0)
    b = started.member("b")
    share(a, b)
    assert [batch.source for batch in a.poll()] == []
    a.resume([zero])
    assert {batch.source for batch in a.poll()} == {zero}


def test_members_in_threads_that_come_and_go_read_everything_once(tmp_path: Path) -> None:
    with open_log(tmp_path) as log:
        fill(log, "words", 8, 400)
        read: list[bytes | None] = []
        failures: list[BaseException] = []

        def work(rounds: int) -> None:
            consumer = log.consumer({"group.id": "readers"})

            def drain(_: object) -> None:
                consumer.commit()

            try:
                consumer.subscribe(["words"], on_revoked=drain)
                for _ in range(rounds):
                    batches = consumer.poll(timeout=0.02, max_records=30)
                    read.extend(row.value for batch in batches for row in batch.rows())
                    if batches:
                        consumer.commit_async()
                consumer.close()
            except BaseException as error:
                failures.append(error)

        for _ in range(3):
            threads = [threading.Thread(target=work, args=(rounds,)) for rounds in (5, 10, 20, 40)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        with log.consumer({"group.id": "readers"}) as last:
            last.subscribe(["words"])
            while batches := last.poll(timeout=1):
                read.extend(row.value for batch in batches for row in batch.rows())
        assert failures == []
        assert Counter(read) == Counter(f"{partition} {row}".encode() for partition in range(8) for row in range(400))
        assert list((tmp_path / "members").iterdir()) == []
