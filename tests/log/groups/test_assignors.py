"""Assignors: every partition to one member that wants it, in equal shares, and no partition moves without need."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kstreams.kernel.batch import TopicPartition
from kstreams.log.groups.assignors import ASSIGNORS, assign_cooperatively, assign_sticky, assignors_named
from kstreams.log.groups.subscription import Assignment, MemberSubscription

TOPICS = ("a", "b", "c")
COUNTS = st.fixed_dictionaries({topic: st.integers(0, 7) for topic in TOPICS})


@st.composite
def groups(draw: st.DrawFn, *, alike: bool = False) -> tuple[dict[str, int], dict[str, MemberSubscription]]:
    """Topics with partitions, and members that read some of them and claim some partitions."""
    partitions = draw(COUNTS)
    sources = [TopicPartition(topic, number) for topic, count in partitions.items() for number in range(count)]
    sources.append(TopicPartition("gone", 0))
    topics = st.lists(st.sampled_from(TOPICS), unique=True, min_size=1)
    same = tuple(draw(topics))
    members = {
        f"m{number}": MemberSubscription(
            same if alike else tuple(draw(topics)),
            tuple(draw(st.lists(st.sampled_from(sources), unique=True))),
            draw(st.integers(1, 3)),
            draw(st.none() | st.just(f"static{number}")),
        )
        for number in range(draw(st.integers(1, 6)))
    }
    return partitions, members


def readable(partitions: dict[str, int], members: dict[str, MemberSubscription]) -> set[TopicPartition]:
    wanted = {topic for member in members.values() for topic in member.topics}
    return {TopicPartition(topic, number) for topic in wanted for number in range(partitions[topic])}


def claimed(partitions: dict[str, int], members: dict[str, MemberSubscription]) -> dict[TopicPartition, str]:
    """Who has a partition by right: alone in the newest generation that claims it."""
    owners = {}
    for source in readable(partitions, members):
        claims = [
            (each.generation, name)
            for name, each in members.items()
            if source in each.owned and source.topic in each.topics
        ]
        newest = [name for generation, name in claims if generation == max(claims)[0]]
        if len(newest) == 1:
            owners[source] = newest[0]
    return owners


def after(shares: Assignment, members: dict[str, MemberSubscription], generation: int) -> dict[str, MemberSubscription]:
    """The members when each reads its share."""
    return {
        name: MemberSubscription(members[name].topics, tuple(share), generation, members[name].instance)
        for name, share in shares.items()
    }


@pytest.mark.parametrize("name", ["range", "roundrobin", "sticky"])
@given(group=groups())
def test_every_partition_goes_to_one_member_that_subscribes_to_its_topic(
    name: str, group: tuple[dict[str, int], dict[str, MemberSubscription]]
) -> None:
    partitions, members = group
    shares = ASSIGNORS[name].assign(partitions, members)
    assert shares.keys() == members.keys()
    assert Counter(source for share in shares.values() for source in share) == Counter(readable(partitions, members))
    assert all(source.topic in members[name].topics for name, share in shares.items() for source in share)


@given(group=groups(alike=True))
def test_equal_subscriptions_get_shares_that_differ_by_one_at_most(
    group: tuple[dict[str, int], dict[str, MemberSubscription]],
) -> None:
    partitions, members = group
    for name in ("roundrobin", "sticky"):
        sizes = [len(share) for share in ASSIGNORS[name].assign(partitions, members).values()]
        assert max(sizes) - min(sizes) <= 1
    by_range = ASSIGNORS["range"].assign(partitions, members)
    for topic in TOPICS:
        sizes = [sum(source.topic == topic for source in share) for share in by_range.values()]
        assert max(sizes) - min(sizes) <= 1


@given(group=groups())
def test_range_gives_neighbours_and_the_same_numbers_of_topics_with_equal_counts(
    group: tuple[dict[str, int], dict[str, MemberSubscription]],
) -> None:
    partitions, members = group
    alike = {name: MemberSubscription(TOPICS, (), -1, each.instance) for name, each in members.items()}
    for share in ASSIGNORS["range"].assign(dict.fromkeys(TOPICS, partitions["a"]), alike).values():
        numbers = [[source.partition for source in share if source.topic == topic] for topic in TOPICS]
        assert numbers[0] == numbers[1] == numbers[2]
        assert numbers[0] == list(range(numbers[0][0], numbers[0][0] + len(numbers[0]))) if numbers[0] else True


@given(group=groups(alike=True))
def test_sticky_moves_no_partition_without_need(group: tuple[dict[str, int], dict[str, MemberSubscription]]) -> None:
    partitions, members = group
    owners = claimed(partitions, members)
    shares = assign_sticky(partitions, members)
    kept = sum(owners.get(source) == name for name, share in shares.items() for source in share)
    least, longer = divmod(len(readable(partitions, members)), len(members))
    had = [sum(owner == name for owner in owners.values()) for name in members]
    most = sum(min(count, least) for count in had) + min(longer, sum(count > least for count in had))
    assert kept == most


@given(group=groups())
def test_sticky_is_balanced_where_subscriptions_differ(
    group: tuple[dict[str, int], dict[str, MemberSubscription]],
) -> None:
    partitions, members = group
    shares = assign_sticky(partitions, members)
    for giver, share in shares.items():
        for topic in {source.topic for source in share}:
            for taker, each in members.items():
                assert topic not in each.topics or len(shares[taker]) >= len(shares[giver]) - 1


def test_sticky_moves_partitions_over_a_third_member() -> None:
    # x can give to y alone, and y to z alone: a move from x to y or from y to z by itself would help nothing.
    members = {
        "x": MemberSubscription(("a",), (TopicPartition("a", 0), TopicPartition("a", 1)), 1),
        "y": MemberSubscription(("a", "b"), (TopicPartition("b", 0),), 1),
        "z": MemberSubscription(("b",), (), -1),
    }
    assert [len(share) for share in assign_sticky({"a": 2, "b": 1}, members).values()] == [1, 1, 1]


@given(group=groups())
def test_a_balanced_group_stays_as_it_is(group: tuple[dict[str, int], dict[str, MemberSubscription]]) -> None:
    partitions, members = group
    shares = assign_sticky(partitions, members)
    assert assign_sticky(partitions, after(shares, members, 4)) == shares


@given(group=groups(), leaving=st.integers(0, 5))
def test_when_a_member_leaves_the_others_keep_what_they_have(
    group: tuple[dict[str, int], dict[str, MemberSubscription]], leaving: int
) -> None:
    partitions, members = group
    alike = {name: MemberSubscription(TOPICS) for name in members}
    settled = after(assign_sticky(partitions, alike), alike, 4)
    gone = sorted(settled)[leaving % len(settled)]
    staying = {name: each for name, each in settled.items() if name != gone}
    for name, share in assign_sticky(partitions, staying).items():
        assert set(staying[name].owned) <= set(share)


MOST_ROUNDS = 4
"""Of a cooperative rebalance: two where all members read the same topics."""


@given(group=groups())
def test_cooperatively_a_partition_has_a_new_owner_only_when_the_old_one_has_given_it_up(
    group: tuple[dict[str, int], dict[str, MemberSubscription]],
) -> None:
    partitions, members = group
    owners = claimed(partitions, members)
    for generation in range(4, 4 + MOST_ROUNDS):
        shares = assign_cooperatively(partitions, members)
        assert all(owners.get(source, name) == name for name, share in shares.items() for source in share)
        given = Counter(source for share in shares.values() for source in share)
        assert max(given.values(), default=1) == 1
        if given == Counter(readable(partitions, members)):
            return
        members = after(shares, members, generation)
        owners = claimed(partitions, members)
    raise AssertionError(f"not everything is given after {MOST_ROUNDS} rounds")


def test_what_two_members_of_one_generation_claim_belongs_to_neither() -> None:
    zero = TopicPartition("a", 0)
    members = {name: MemberSubscription(("a",), (zero,), 2) for name in ("x", "y")}
    assert sum(map(len, assign_cooperatively({"a": 1}, members).values())) == 1


def test_strategies_are_named_as_kafka_names_them() -> None:
    assert [assignor.name for assignor in assignors_named("range,roundrobin,sticky")] == [
        "range",
        "roundrobin",
        "sticky",
    ]
    with pytest.raises(ValueError, match="one or more of range, roundrobin, sticky, cooperative-sticky"):
        assignors_named("fair")
    with pytest.raises(ValueError, match="without another"):
        assignors_named("range,cooperative-sticky")
