"""Who may commit for a group: members of the present generation, and others only while it has none."""

import time
from typing import Any

import pytest

from kstreams.errors import CommitFailedError, LogError
from kstreams.kernel.batch import TopicPartition
from kstreams.log import OffsetAndMetadata
from kstreams.log.api import Ability
from tests.log.contract.members import Started, may_commit, read, settle, share
from tests.log.contract.reading import values_of

pytestmark = pytest.mark.needs(Ability.GROUPS)

ZERO = TopicPartition("words", 0)


def test_a_member_that_does_not_poll_is_out_and_can_commit_nothing(started: Started) -> None:
    started.log.admin().create_topic("out")
    slow = started.member("slow", max_poll_interval_ms=1_000)
    share(slow)
    late = slow.group_metadata()
    other = started.member("other")
    share(other)
    with pytest.raises(CommitFailedError, match="no member of the group 'readers' any more"):
        slow.commit()
    with started.log.producer({"transactional.id": "slow"}) as producer:
        for metadata in (late, slow.group_metadata()):
            producer.begin_transaction()
            producer.send("out", None, b"late")
            with pytest.raises(CommitFailedError, match="no member of the group 'readers' any more"):
                producer.commit_transaction({ZERO: OffsetAndMetadata(10)}, metadata)
            producer.abort_transaction()
        assert values_of(started.log, "out") == []
        producer.begin_transaction()
        producer.send("out", None, b"in time")
        producer.commit_transaction({ZERO: OffsetAndMetadata(7)}, other.group_metadata())
    assert values_of(started.log, "out") == [b"in time"]
    assert other.committed([ZERO]) == {ZERO: OffsetAndMetadata(7)}
    settle(slow, other, until=lambda: started.lost("slow") == [0, 1, 2, 3])
    assert ("slow", "-") not in {(name, what) for name, what, _ in started.heard}
    settle(slow, other, until=lambda: bool(slow.assignment()) and may_commit(slow))


def test_who_is_out_commits_nothing_though_the_group_is_empty(started: Started) -> None:
    slow = started.member("slow", max_poll_interval_ms=300)
    share(slow)
    while started.log.admin().describe_group("readers").members:
        time.sleep(0.05)
    with pytest.raises(CommitFailedError):
        slow.commit()
    with started.log.producer({"transactional.id": "slow"}) as producer:
        producer.begin_transaction()
        with pytest.raises(CommitFailedError):
            producer.commit_transaction({ZERO: OffsetAndMetadata(10)}, slow.group_metadata())
        producer.abort_transaction()
    assert slow.committed([ZERO]) == {}


def test_who_has_not_joined_yet_commits_nothing(started: Started) -> None:
    early = started.member("early")
    with pytest.raises(CommitFailedError):
        early.commit({ZERO: OffsetAndMetadata(1)})
    with started.log.producer({"transactional.id": "early"}) as producer:
        producer.begin_transaction()
        with pytest.raises(CommitFailedError):
            producer.commit_transaction({ZERO: OffsetAndMetadata(1)}, early.group_metadata())
        producer.abort_transaction()
    assert early.committed([ZERO]) == {}


def test_a_commit_of_an_earlier_generation_is_refused(started: Started) -> None:
    a, b = started.member("a"), started.member("b")
    share(a)
    before = a.group_metadata()
    share(a, b)
    with started.log.producer({"transactional.id": "a"}) as producer:
        producer.begin_transaction()
        with pytest.raises(CommitFailedError, match=rf"the commit is of generation {before.generation}"):
            producer.commit_transaction({ZERO: OffsetAndMetadata(1)}, before)
        producer.abort_transaction()
    assert a.committed([ZERO]) == {}


def test_a_member_commits_offsets_of_topics_that_it_does_not_read(started: Started) -> None:
    """As a runtime does whose members share tasks: the partitions of a topic of their own."""
    started.log.admin().create_topic("tasks", 2)
    member = started.member("a", ["tasks"])
    share(member, partitions=2)
    with started.log.consumer() as reader, started.log.producer({"transactional.id": "a"}) as producer:
        reader.assign([ZERO])
        assert len(read(reader, 10)) == 10
        member.commit({ZERO: OffsetAndMetadata(5, "memo")})
        assert member.committed([ZERO]) == {ZERO: OffsetAndMetadata(5, "memo")}
        producer.begin_transaction()
        producer.commit_transaction({ZERO: OffsetAndMetadata(reader.position(ZERO))}, member.group_metadata())
    assert started.log.admin().committed("readers", [ZERO]) == {ZERO: OffsetAndMetadata(10)}


def test_who_is_no_member_commits_only_while_the_group_has_none(started: Started) -> None:
    admin = started.log.admin()
    admin.commit("readers", {ZERO: OffsetAndMetadata(3)})
    a = started.member("a")
    settle(a, until=lambda: len(a.assignment()) == 4 and a.position(ZERO) == 10)
    assert a.committed([ZERO]) == {ZERO: OffsetAndMetadata(3)}
    stranger = started.consumer("readers")
    for commit in (
        lambda: admin.commit("readers", {ZERO: OffsetAndMetadata(5)}),
        lambda: stranger.commit({ZERO: OffsetAndMetadata(5)}),
    ):
        with pytest.raises(CommitFailedError, match="stop them first"):
            commit()
    with pytest.raises(LogError, match="has 1 members: stop them"):
        admin.delete_group("readers")
    a.close()
    assert admin.describe_group("readers").state == "Empty"
    stranger.assign([ZERO])
    read(stranger, 10)
    stranger.commit()
    assert admin.committed("readers", [ZERO]) == {ZERO: OffsetAndMetadata(10)}
    admin.delete_group("readers")
    assert admin.describe_group("readers").state == "Dead"
    assert admin.groups() == []


def test_async_commits_tell_at_a_later_poll_and_keep_their_order(started: Started) -> None:
    consumer = started.member("a")
    share(consumer)
    told: list[Any] = []
    for offset in (3, 4, 5):
        wanted = {ZERO: OffsetAndMetadata(offset)}
        consumer.commit_async(wanted, lambda offsets, error: told.append((offsets, error)))
    consumer.commit({ZERO: OffsetAndMetadata(6)})
    assert told == []
    settle(consumer, until=lambda: len(told) == 3)
    assert told == [({ZERO: OffsetAndMetadata(offset)}, None) for offset in (3, 4, 5)]
    assert consumer.committed([ZERO]) == {ZERO: OffsetAndMetadata(6)}
