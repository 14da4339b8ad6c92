"""Members of a group in one process: who reads what, and what listeners hear."""

import re
import threading
import time
from collections import Counter
from typing import Any

import pytest

from kstreams.errors import ConfigError, FencedError, LogError
from kstreams.kernel.batch import TopicPartition
from kstreams.log import Log, OffsetAndMetadata
from kstreams.log.api import Ability
from tests.log.contract.members import QUICK, Started, fill, numbers, read, settle, share

pytestmark = pytest.mark.needs(Ability.GROUPS)

EAGER = "range"
COOPERATIVE = "cooperative-sticky"
ZERO = TopicPartition("words", 0)


def test_a_group_reads_on_where_it_has_committed(started: Started) -> None:
    first = started.member("a")
    before = read(first, 25)
    first.commit()
    read(first, 15)
    first.close()
    after = read(started.member("b"), 15)
    assert Counter(before + after) == Counter(f"{part} {row}".encode() for part in range(4) for row in range(10))
    other = started.consumer("others")
    other.subscribe(["words"])
    read(other, 40)


def test_cooperative_members_keep_what_they_may_keep(started: Started) -> None:
    a, b = started.member("a"), started.member("b")
    share(a)
    share(a, b)
    moved = numbers(b)
    assert started.heard == [("a", "+", [0, 1, 2, 3]), ("a", "-", moved), ("b", "+", moved)]
    b.close()
    share(a)
    assert started.heard[3:] == [("b", "-", moved), ("a", "+", moved)]


def test_eager_members_give_up_everything_first(started: Started) -> None:
    settings = {"partition_assignment_strategy": EAGER}
    a, b = started.member("a", **settings), started.member("b", **settings)
    share(a)
    share(a, b)
    assert started.heard[:2] == [("a", "+", [0, 1, 2, 3]), ("a", "-", [0, 1, 2, 3])]
    assert sorted(given for _, _, given in started.heard[2:]) == [[0, 1], [2, 3]]
    assert sorted((name, what) for name, what, _ in started.heard[2:]) == [("a", "+"), ("b", "+")]


@pytest.mark.parametrize("strategy", [EAGER, COOPERATIVE, "roundrobin"])
def test_what_is_committed_when_partitions_go_is_not_read_again(started: Started, strategy: str) -> None:
    settings = {"partition_assignment_strategy": strategy}
    a, b = started.consumer("readers", **settings), started.consumer("readers", **settings)
    a.subscribe(["words"], on_revoked=lambda _: a.commit())
    b.subscribe(["words"], on_revoked=lambda _: b.commit())
    values = Counter(read(a, 13))
    batches = share(a, b)
    b.close()
    batches += share(a)
    batches += settle(a, until=lambda: all(a.position(source) == 10 for source in a.assignment()))
    a.close()
    values.update(row.value for batch in batches for row in batch.rows())
    assert values == Counter(f"{partition} {row}".encode() for partition in range(4) for row in range(10))


def test_a_group_is_described_with_its_members(started: Started) -> None:
    a, b = started.member("a", group_instance_id="x", session_timeout_ms=3_000), started.member("b")
    share(a, b)
    group = started.log.admin().describe_group("readers")
    assert (group.state, group.strategy) == ("Stable", COOPERATIVE)
    found = {member.id: (member.instance, set(member.partitions)) for member in group.members}
    assert found == {
        a.group_metadata().member: ("x", a.assignment()),
        b.group_metadata().member: (None, b.assignment()),
    }


def test_a_static_member_comes_back_to_its_partitions_and_fences_its_former_self(started: Started) -> None:
    old = started.member("old", group_instance_id="x", session_timeout_ms=6_000)
    other = started.member("other")
    share(old)
    share(old, other)
    had = numbers(old)
    new = started.member("new", group_instance_id="x", session_timeout_ms=6_000)
    settle(new, other, until=lambda: numbers(new) == had)
    with pytest.raises(FencedError, match=r"`group\.instance\.id` 'x'"):
        old.commit({ZERO: OffsetAndMetadata(1)})
    with pytest.raises(FencedError, match="close this one"):
        settle(old, until=lambda: False)
    with pytest.raises(FencedError, match="close this one"):
        old.poll()
    assert (numbers(old), numbers(new)) == ([], had)
    new.close()
    assert len(started.log.admin().describe_group("readers").members) == 2, "a static member does not leave"


def test_a_static_member_that_stays_away_is_missed_after_its_session_time_out(started: Started) -> None:
    gone = started.member("gone", group_instance_id="x", session_timeout_ms=500)
    other = started.member("other")
    share(gone)
    share(gone, other)
    gone.close()
    share(other)


def test_a_static_member_leaves_at_once_where_the_home_lets_it(started: Started) -> None:
    gone = started.member("gone", group_instance_id="x", session_timeout_ms=6_000)
    share(gone)
    if Ability.LEAVES_OF_STATIC_MEMBERS in started.log.abilities:
        gone.leave()
        assert started.log.admin().describe_group("readers").members == ()
    else:
        with pytest.raises(LogError, match="Close it without leaving the group"):
            gone.leave()


def test_a_member_leaves_at_once(started: Started) -> None:
    gone = started.member("gone")
    share(gone)
    gone.leave()
    assert started.log.admin().describe_group("readers").members == ()


@pytest.mark.parametrize(
    ("reset", "expected"), [("earliest", 0), ("latest", 10), ("by_duration:PT150S", 7), ("by_duration:PT1H", 0)]
)
def test_where_a_group_begins_without_a_commit(log: Log, reset: str, expected: int) -> None:
    now_ms = int(time.time() * 1_000)
    log.admin().create_topic("words")
    with log.producer() as producer:
        for row in range(10):
            producer.send("words", None, b"", timestamp=now_ms - (9 - row) * 60_000)
    with log.consumer({"group.id": "readers", "auto.offset.reset": reset}) as consumer:
        begins = []
        consumer.subscribe(["words"], on_assigned=lambda sources: begins.append(consumer.position(sources[0])))
        settle(consumer, until=lambda: bool(begins))
        assert begins == [expected]


def test_a_group_may_insist_on_committed_offsets(started: Started) -> None:
    consumer = started.member("a", auto_offset_reset="none")
    for _ in range(2):
        with pytest.raises(LogError, match=r"committed nothing for words-0, .* by_duration:PT1H"):
            settle(consumer, until=lambda: False)
    consumer.commit({TopicPartition("words", number): OffsetAndMetadata(8) for number in range(4)})
    read(consumer, 8)
    with pytest.raises(ConfigError, match="by_duration:PT1H"):
        started.consumer("readers", auto_offset_reset="yesterday")


def test_a_pattern_takes_topics_that_come_later(started: Started) -> None:
    settings = {"metadata_max_age_ms": 0}
    a = started.member("a", re.compile(r"w\w+"), **settings)
    b = started.member("b", re.compile(r"w\w+"), **settings)
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


def test_what_a_listener_raises_comes_out_of_poll_and_the_group_goes_on(started: Started) -> None:
    consumer = started.consumer("readers")

    def fail(_: list[TopicPartition]) -> None:
        raise ValueError("no room")

    consumer.subscribe(["words"], on_assigned=fail)
    with pytest.raises(ValueError, match="no room"):
        settle(consumer, until=lambda: False)
    read(consumer, 40)


def test_subscribing_needs_a_group_and_excludes_assigning(started: Started) -> None:
    with pytest.raises(ConfigError, match=r"`heartbeat\.interval\.ms` \(3000\) must be less than"):
        started.consumer("readers", session_timeout_ms=3_000, heartbeat_interval_ms=3_000)
    member = started.member("a")
    with pytest.raises(LogError, match="unsubscribe first"):
        member.assign([ZERO])
    member.unsubscribe()
    member.assign([ZERO])
    read(member, 10)


def test_paused_partitions_stay_paused_while_others_come_and_go(started: Started) -> None:
    a = started.member("a", partition_assignment_strategy=COOPERATIVE)
    settle(a, until=lambda: len(a.assignment()) == 4)
    a.pause(list(a.assignment()))
    b = started.member("b")
    share(a, b)
    kept = sorted(a.assignment())
    for source in kept:
        a.seek(source, 0)
    assert settle(a, until=lambda: True) == []
    a.resume(kept[:1])
    assert len(read(a, 10)) == 10
    assert [a.position(source) for source in kept] == [10, 0]


def test_members_in_threads_that_come_and_go_read_everything_once(log: Log) -> None:
    fill(log, "words", 8, 400)
    values: list[bytes | None] = []
    failures: list[BaseException] = []

    def work(rounds: int) -> None:
        consumer: Any = log.consumer({"group.id": "readers", **QUICK, "session.timeout.ms": 1_000})
        try:
            consumer.subscribe(["words"], on_revoked=lambda _: consumer.commit())
            for _ in range(rounds):
                batches = consumer.poll(timeout=0.02, max_records=30)
                values.extend(row.value for batch in batches for row in batch.rows())
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
        while sum(at.offset for at in last.committed([TopicPartition("words", n) for n in range(8)]).values()) < 3_200:
            values.extend(row.value for batch in last.poll(timeout=1) for row in batch.rows())
            last.commit()
    assert failures == []
    assert Counter(values) == Counter(f"{partition} {row}".encode() for partition in range(8) for row in range(400))
