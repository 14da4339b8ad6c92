"""Tasks on processes: each active once, replicas apart, loads alike, and what has state stays where it is."""

from collections import Counter
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from kstreams.processor.topology.sub_topologies import TaskId
from kstreams.runtime.native.assignment.assignor import assign_tasks
from kstreams.runtime.native.assignment.clients import AssignmentRules, ClientState, TaskShares

ZONES = ("north", "south", "west")
LAG = 100
Case = tuple[dict[TaskId, bool], dict[str, ClientState], AssignmentRules]


@st.composite
def cases(draw: st.DrawFn, *, capacities: tuple[int, ...] = (1, 2, 3)) -> Case:
    """Tasks, processes that run and keep some of them, and rules."""
    sizes = draw(st.lists(st.tuples(st.integers(1, 6), st.booleans()), min_size=1, max_size=4))
    tasks = {TaskId(sub, number): state for sub, (count, state) in enumerate(sizes) for number in range(count)}
    stateful = [task for task, state in tasks.items() if state]
    some = st.frozensets(st.sampled_from(stateful)) if stateful else st.just(frozenset())
    clients = {}
    for number in range(draw(st.integers(1, 5))):
        kept = draw(some)
        clients[f"c{number}"] = ClientState(
            draw(st.sampled_from(capacities)),
            draw(st.frozensets(st.sampled_from(sorted(tasks)))),
            kept,
            {task: draw(st.integers(0, 3 * LAG)) for task in sorted(kept | draw(some))},
            {"zone": draw(st.sampled_from(ZONES))},
        )
    rules = AssignmentRules(
        draw(st.integers(0, 3)), draw(st.integers(1, 3)), LAG, draw(st.sampled_from([(), ("zone",)]))
    )
    return tasks, clients, rules


def after(given: TaskShares, clients: dict[str, ClientState], *, caught_up: bool = True) -> dict[str, ClientState]:
    """The processes when they have what they got; with `caught_up`, their standbys and warm-ups lack nothing."""
    later = {}
    for name, share in given.shares.items():
        kept = frozenset(share.standby + share.warmup)
        lags = {task: 0 if caught_up else clients[name].lags.get(task, 10**6) for task in kept}
        later[name] = replace(clients[name], active=frozenset(share.active), standby=kept, lags=lags)
    return later


def settled(case: Case) -> tuple[TaskShares, dict[str, ClientState], int]:
    """The final assignment, the processes that have it, and after how many rounds."""
    tasks, clients, rules = case
    for rounds in range(200):
        given = assign_tasks(tasks, clients, rules)
        clients = after(given, clients)
        if given.is_final:
            return given, clients, rounds
    raise AssertionError("it is never final")


def assert_sound(case: Case, given: TaskShares) -> None:
    tasks, clients, rules = case
    active = Counter(task for share in given.shares.values() for task in share.active)
    assert active == Counter(dict.fromkeys(tasks, 1))
    standbys = Counter(task for share in given.shares.values() for task in share.standby)
    expected = min(rules.num_standby_replicas, len(clients) - 1)
    assert standbys == Counter({task: expected for task, state in tasks.items() if state and expected})
    assert sum(len(share.warmup) for share in given.shares.values()) <= rules.max_warmup_replicas
    for share in given.shares.values():
        roles = Counter(share.active + share.standby + share.warmup)
        assert not roles or max(roles.values()) == 1


@given(case=cases())
def test_each_task_is_active_once_and_its_replicas_lie_apart(case: Case) -> None:
    assert_sound(case, assign_tasks(*case))


@given(case=cases())
def test_a_task_runs_where_it_is_caught_up_or_lacks_least(case: Case) -> None:
    tasks, clients, _ = case
    given = assign_tasks(*case)
    for name, share in given.shares.items():
        for task in (task for task in share.active if tasks[task]):
            least = min(state.lag(task) for state in clients.values())
            assert clients[name].lag(task) <= max(least, LAG)


@settings(deadline=None)
@given(case=cases())
def test_rounds_of_warming_up_end_in_an_assignment_that_stays(case: Case) -> None:
    tasks, clients, rules = case
    given, clients, rounds = settled(case)
    assert_sound(case, given)
    assert rounds <= len(tasks) * (2 + rules.num_standby_replicas)
    assert all(not share.warmup for share in given.shares.values())
    assert assign_tasks(tasks, clients, rules) == given


@settings(deadline=None)
@given(case=cases(capacities=(1,)))
def test_loads_are_alike_in_the_end(case: Case) -> None:
    tasks, clients, rules = case
    given, _, _ = settled((tasks, clients, rules._replace(rack_tags=())))
    for counts in (
        [sum(tasks[task] for task in share.active) for share in given.shares.values()],
        [len(share.active) for share in given.shares.values()],
    ):
        assert max(counts) - min(counts) <= 1
    for giver in given.shares.values():
        for taker in given.shares.values():
            has = set(taker.active + taker.standby)
            crowded = len(giver.active + giver.standby) > len(has) + 1
            assert not crowded or has >= set(giver.standby), "a standby could lie there"


@settings(deadline=None)
@given(case=cases())
def test_threads_count(case: Case) -> None:
    tasks, clients, _ = case
    given, _, _ = settled(case)
    for giver in given.shares:
        for taker in given.shares:
            had, gets = (sum(tasks[task] for task in given.shares[name].active) for name in (giver, taker))
            assert had * clients[taker].capacity <= (gets + 1) * clients[giver].capacity


@settings(deadline=None)
@given(case=cases(), leaving=st.integers(0, 4))
def test_when_a_process_leaves_no_other_gives_up_what_it_runs_with_state(case: Case, leaving: int) -> None:
    tasks, _, rules = case
    _, clients, _ = settled(case)
    gone = sorted(clients)[leaving % len(clients)]
    staying = {name: state for name, state in clients.items() if name != gone}
    if not staying:
        return
    given = assign_tasks(tasks, staying, rules)
    for name, share in given.shares.items():
        assert {task for task in staying[name].active if tasks[task]} <= set(share.active)
    kept = {task for state in staying.values() for task in state.standby}
    for task in (task for task in clients[gone].active if task in kept):
        (heir,) = (name for name, share in given.shares.items() if task in share.active)
        assert task in staying[heir].standby, "a standby takes over"


@settings(deadline=None)
@given(case=cases(), capacity=st.integers(1, 3))
def test_when_a_process_joins_only_what_it_gets_moves(case: Case, capacity: int) -> None:
    tasks, _, rules = case
    before, clients, _ = settled(case)
    joined = {**clients, "new": ClientState(capacity, tags={"zone": "north"})}
    given, _, _ = settled((tasks, joined, rules))
    for name, share in before.shares.items():
        gained = {task for task in given.shares[name].active if tasks[task]} - set(share.active)
        assert gained == set()


@settings(deadline=None)
@given(case=cases())
def test_a_standby_lies_in_another_zone_where_there_is_one(case: Case) -> None:
    tasks, clients, rules = case
    given, clients, _ = settled((tasks, clients, rules._replace(num_standby_replicas=1, rack_tags=("zone",))))
    zone = {name: state.tags["zone"] for name, state in clients.items()}
    if len(set(zone.values())) == 1:
        return
    for task in (task for task, state in tasks.items() if state):
        (active,) = (name for name, share in given.shares.items() if task in share.active)
        (standby,) = (name for name, share in given.shares.items() if task in share.standby)
        assert zone[active] != zone[standby]


def test_tasks_of_a_sub_topology_lie_on_as_many_processes_as_possible() -> None:
    tasks = {TaskId(sub, number): True for sub in range(3) for number in range(3)}
    given = assign_tasks(tasks, {name: ClientState() for name in "abc"})
    for share in given.shares.values():
        assert sorted(task.sub_topology for task in share.active) == [0, 1, 2]
    assert given.is_final


def test_a_standby_that_catches_up_is_warmed_without_the_budget() -> None:
    tasks = {TaskId(0, number): True for number in range(6)}
    old = ClientState(active=frozenset(tasks))
    given = assign_tasks(tasks, {"new": ClientState(), "old": old}, AssignmentRules(1, 1, LAG))
    assert given.shares["old"].active == tuple(tasks)
    assert len(given.shares["new"].standby) == 6
    assert not given.is_final
    caught_up = after(given, {"new": ClientState(), "old": old})
    given = assign_tasks(tasks, caught_up, AssignmentRules(1, 1, LAG))
    assert [len(share.active) for share in given.shares.values()] == [3, 3]
    assert given.is_final
