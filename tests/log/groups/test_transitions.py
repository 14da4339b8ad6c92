"""A group as a pure state machine: members that join, read, hang, die and come back, in any order."""

from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kstreams.errors import CommitFailedError, FencedError, LogError, RebalanceInProgressError
from kstreams.kernel.batch import TopicPartition
from kstreams.log.groups.assignors import ASSIGNORS
from kstreams.log.groups.group import Group, GroupState, Member, check_commit
from kstreams.log.groups.subscription import MemberSubscription
from kstreams.log.groups.transitions import ActionKind, DeadlineCheck, Event, GroupStep, Join, Leave, Sync, next_step
from tests.support.examples import examples

PARTITIONS = {"a": 4, "b": 3}
PATIENCE_MS = 1_000


def member(name: str, *strategies: str, instance: str | None = None, topics: tuple[str, ...] = ("a", "b")) -> Member:
    subscription = MemberSubscription(topics, instance=instance)
    return Member(name, strategies or ("range",), subscription, 500, PATIENCE_MS)


def run(group: Group, *events: Event, now_ms: int = 0) -> GroupStep:
    step = GroupStep(group)
    for event in events:
        step = step.followed_by(next_step, event, now_ms)
    return step


def assigned(group: Group) -> Group:
    """The group when its leader has assigned."""
    subscriptions = {each.id: each.subscription for each in group.members.values()}
    shares = ASSIGNORS[group.strategy].assign(PARTITIONS, subscriptions)
    return next_step(group, Sync(group.leader, group.generation, shares), 0).group


def test_a_group_goes_through_its_states() -> None:
    group = Group("g")
    assert group.state is GroupState.EMPTY
    group = next_step(group, Join(member("x")), 0).group
    assert (group.state, group.generation, group.leader) == (GroupState.COMPLETING_REBALANCE, 1, "x")
    group = assigned(group)
    assert group.state is GroupState.STABLE
    step = next_step(group, Join(member("y")), 0)
    assert step.group.state is GroupState.PREPARING_REBALANCE
    assert [(action.kind, action.reason) for action in step.actions] == [(ActionKind.REBALANCE, "y joins")]
    group = assigned(next_step(step.group, Join(member("x")), 0).group)
    assert (group.state, group.generation, group.leader) == (GroupState.STABLE, 2, "x")
    assert sum(len(each.assignment) for each in group.members.values()) == 7
    group = run(group, Leave("x", "closed"), Leave("y", "closed")).group
    assert (group.state, group.members) == (GroupState.EMPTY, {})


def test_who_does_not_join_again_in_time_is_out_and_its_commit_is_refused() -> None:
    group = run(assigned(run(Group("g"), Join(member("x"))).group), Join(member("y"))).group
    assert next_step(group, DeadlineCheck(), PATIENCE_MS - 1).group == group
    step = next_step(group, DeadlineCheck(), PATIENCE_MS)
    assert [action.subject for action in step.actions if action.kind is ActionKind.REMOVED] == ["x"]
    assert (step.group.leader, step.group.generation) == ("y", 2)
    with pytest.raises(CommitFailedError, match="no member of the group 'g' any more"):
        check_commit(step.group, "x", None, 1)


def test_a_leader_that_does_not_assign_is_replaced() -> None:
    group = run(Group("g"), Join(member("x"))).group
    group = run(group, Join(member("y")), Join(member("x"))).group
    assert (group.state, group.leader) == (GroupState.COMPLETING_REBALANCE, "x")
    group = next_step(group, DeadlineCheck(), PATIENCE_MS).group
    assert (group.state, list(group.members)) == (GroupState.PREPARING_REBALANCE, ["y"])
    assert next_step(group, Join(member("y")), PATIENCE_MS).group.leader == "y"


def test_commits_are_fenced_by_generation_and_wait_for_assignments() -> None:
    group = assigned(run(Group("g"), Join(member("x"))).group)
    check_commit(group, "x", None, 1)
    for late in (0, 2):
        with pytest.raises(CommitFailedError, match=f"the commit is of generation {late}"):
            check_commit(group, "x", None, late)
    preparing = run(group, Join(member("y"))).group
    check_commit(preparing, "x", None, 1)
    completing = run(preparing, Join(member("x"))).group
    with pytest.raises(RebalanceInProgressError, match="poll, then commit again"):
        check_commit(completing, "x", None, 2)


def test_who_has_joined_a_generation_may_commit_what_it_had_until_it_takes_what_it_gets() -> None:
    zero, one = TopicPartition("a", 0), TopicPartition("a", 1)
    claiming = Member("x", ("cooperative-sticky",), MemberSubscription(("a",), (zero,), 1), 500, PATIENCE_MS)
    group = assigned(run(Group("g"), Join(member("x", "cooperative-sticky"))).group)
    group = run(group, Join(member("y", "cooperative-sticky")), Join(claiming)).group
    for state in (group, assigned(group)):
        check_commit(state, "x", None, 1, [zero])
        with pytest.raises(CommitFailedError):
            check_commit(state, "x", None, 1, [zero, one])


def test_who_is_no_member_commits_only_while_the_group_has_none() -> None:
    check_commit(Group("g"), "", None, -1)
    with pytest.raises(CommitFailedError, match="as long as it has some"):
        check_commit(run(Group("g"), Join(member("x"))).group, "", None, -1)


def test_a_static_member_that_is_started_again_takes_its_partitions_over() -> None:
    group = run(Group("g"), Join(member("x1", instance="x")), Join(member("y"))).group
    group = assigned(run(group, Join(member("x1", instance="x"))).group)
    had = group.members["x1"].assignment
    assert had
    step = next_step(group, Join(member("x2", instance="x")), 0)
    assert [action.kind for action in step.actions] == [ActionKind.REPLACED]
    assert (step.group.state, step.group.generation) == (GroupState.STABLE, group.generation)
    assert step.group.members["x2"].assignment == had
    with pytest.raises(FencedError, match=r"`group\.instance\.id` 'x'"):
        check_commit(step.group, "x1", "x", group.generation)
    other = next_step(group, Join(member("x2", instance="x", topics=("a",))), 0).group
    assert other.state is GroupState.PREPARING_REBALANCE


def test_a_static_member_is_waited_for_longer_than_the_rebalance() -> None:
    group = assigned(run(Group("g"), Join(member("x", instance="x"))).group)
    group = run(group, Join(member("y"))).group
    group = next_step(group, DeadlineCheck(), PATIENCE_MS).group
    assert sorted(group.members) == ["x", "y"]
    assert (group.state, group.leader) == (GroupState.COMPLETING_REBALANCE, "y")
    alone = run(assigned(group), Leave("y", "closed")).group
    waiting = next_step(alone, DeadlineCheck(), 2 * PATIENCE_MS).group
    assert (waiting.state, waiting.deadline_ms) == (GroupState.PREPARING_REBALANCE, 3 * PATIENCE_MS)


def test_members_agree_on_an_assignor_that_all_have() -> None:
    group = run(Group("g"), Join(member("x", "sticky", "range")), Join(member("y", "range"))).group
    with pytest.raises(LogError, match=r"has no assignor that all members have \(range\)"):
        next_step(group, Join(member("z", "roundrobin")), 0)
    group = run(group, Join(member("x", "sticky", "range"))).group
    assert group.strategy == "range"


def test_only_the_leader_of_the_generation_assigns() -> None:
    group = run(Group("g"), Join(member("x")), Join(member("y")), Join(member("x"))).group
    with pytest.raises(LogError, match="x assigns"):
        next_step(group, Sync("y", 2, {}), 0)
    with pytest.raises(RebalanceInProgressError):
        next_step(group, Sync("x", 1, {}), 0)


@dataclass
class Reader:
    """A member's side: what it believes to be its own."""

    name: str
    owned: tuple[TopicPartition, ...] = ()
    generation: int = -1
    joining: bool = True
    commits: list[int] = field(default_factory=list)


class GroupMachine(RuleBasedStateMachine):
    """Several members under one strategy; each acts when it is chosen, and some never are again."""

    strategy = "cooperative-sticky"

    def __init__(self) -> None:
        super().__init__()
        self.group, self.now_ms, self.born = Group("g"), 0, 0
        self.readers: dict[str, Reader] = {}
        self.formed = 0

    def apply(self, event: Event) -> None:
        step = next_step(self.group, event, self.now_ms)
        assert Group.decode(step.group.encode()) == step.group
        self.group = step.group

    def act(self, reader: Reader) -> None:
        """What a member does in a poll: see where the group stands, and join, assign or take."""
        mine = self.group.members.get(reader.name)
        if mine is None:
            reader.owned, reader.generation, reader.joining = (), -1, True
        asked = mine is not None and self.group.state is GroupState.PREPARING_REBALANCE and not mine.joined
        if (
            mine is None
            or asked
            or (reader.joining and self.group.state is GroupState.STABLE and not self.taken(reader))
        ):
            if not ASSIGNORS[self.strategy].cooperative:
                reader.owned = ()
            subscription = MemberSubscription(("a", "b"), reader.owned, reader.generation)
            self.apply(Join(Member(reader.name, (self.strategy,), subscription, 500, PATIENCE_MS)))
        if self.group.state is GroupState.COMPLETING_REBALANCE and self.group.leader == reader.name:
            subscriptions = {each.id: each.subscription for each in self.group.members.values()}
            shares = ASSIGNORS[self.group.strategy].assign(PARTITIONS, subscriptions)
            self.apply(Sync(reader.name, self.group.generation, shares))
        if self.group.state is GroupState.STABLE and not self.taken(reader):
            given = self.group.members[reader.name].assignment
            lost = set(reader.owned) - set(given)
            reader.owned, reader.generation, reader.joining = given, self.group.generation, bool(lost)

    def taken(self, reader: Reader) -> bool:
        return reader.generation == self.group.generation and not reader.joining

    @precondition(lambda self: len(self.readers) < 5)
    @rule()
    def start(self) -> None:
        self.born += 1
        self.readers[f"m{self.born}"] = Reader(f"m{self.born}")

    @precondition(lambda self: self.readers)
    @rule(data=st.data())
    def poll(self, data: st.DataObject) -> None:
        for name in data.draw(st.lists(st.sampled_from(sorted(self.readers)), min_size=1, max_size=12)):
            self.act(self.readers[name])
            self.members_never_read_the_same_partition()

    @precondition(lambda self: self.readers)
    @rule(data=st.data(), seen=st.booleans())
    def die(self, data: st.DataObject, seen: bool) -> None:
        name = data.draw(st.sampled_from(sorted(self.readers)))
        del self.readers[name]
        if seen:
            self.apply(Leave(name, "its process ended"))

    @rule(pause=st.integers(1, PATIENCE_MS))
    def wait(self, pause: int) -> None:
        self.now_ms += pause
        self.apply(DeadlineCheck())

    @invariant()
    def generations_grow_and_stable_groups_have_a_leader(self) -> None:
        assert self.group.generation >= self.formed
        self.formed = self.group.generation
        if self.group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            assert self.group.leader in self.group.members
        assert bool(self.group.members) == (self.group.state is not GroupState.EMPTY)

    @invariant()
    def only_one_may_commit_a_partition(self) -> None:
        entitled: list[TopicPartition] = []
        for reader in self.readers.values():
            try:
                check_commit(self.group, reader.name, None, reader.generation, reader.owned)
            except (CommitFailedError, RebalanceInProgressError):
                continue
            entitled += reader.owned
        assert len(entitled) == len(set(entitled))

    @invariant()
    def members_never_read_the_same_partition(self) -> None:
        read = [source for name in self.readers.keys() & self.group.members for source in self.readers[name].owned]
        assert len(read) == len(set(read))

    def teardown(self) -> None:
        """Those that live come to share all partitions, whatever happened before."""
        for _ in range(20):
            self.now_ms += PATIENCE_MS
            self.apply(DeadlineCheck())
            for name in set(self.group.members) - self.readers.keys():
                self.apply(Leave(name, "no sign of life"))
            for _ in range(5):
                for reader in self.readers.values():
                    self.act(reader)
        if self.readers:
            assert self.group.state is GroupState.STABLE
            owned = sorted(source for reader in self.readers.values() for source in reader.owned)
            assert owned == sorted(
                TopicPartition(topic, n) for topic, count in PARTITIONS.items() for n in range(count)
            )
            sizes = [len(reader.owned) for reader in self.readers.values()]
            assert max(sizes) - min(sizes) <= (2 if self.strategy == "range" else 1)


class EagerGroupMachine(GroupMachine):
    """The same with members that give up all they have before they join."""

    strategy = "range"


TestCooperativeGroup = GroupMachine.TestCase
TestEagerGroup = EagerGroupMachine.TestCase
TestCooperativeGroup.settings = TestEagerGroup.settings = settings(
    max_examples=examples(60), stateful_step_count=40, deadline=None
)
