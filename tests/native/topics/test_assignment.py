"""Every task runs on exactly one thread, and the threads share them evenly."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kstreams.processor.topology.layout import TaskPlan
from kstreams.processor.topology.topology import SubTopology
from kstreams.runtime.native.thread.assignment import assign

plans = st.lists(st.integers(1, 8), max_size=5).map(
    lambda widths: [TaskPlan(SubTopology(s, (), ()), p, ()) for s, width in enumerate(widths) for p in range(width)]
)


@given(plans, st.integers(1, 6))
def test_tasks_are_shared_out_once_and_evenly(tasks: list[TaskPlan], threads: int) -> None:
    shares = assign(tasks, threads)
    assert sorted(task.id for share in shares for task in share) == sorted(task.id for task in tasks)
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@given(plans, st.integers(1, 6))
def test_each_sub_topology_is_spread_over_the_threads(tasks: list[TaskPlan], threads: int) -> None:
    shares = assign(tasks, threads)
    for sub in {task.id.sub_topology for task in tasks}:
        counts = [sum(task.id.sub_topology == sub for task in share) for share in shares]
        assert max(counts) - min(counts) <= 1


@given(plans, st.integers(1, 6), st.randoms())
def test_the_order_in_which_tasks_are_given_does_not_matter(
    tasks: list[TaskPlan], threads: int, random: object
) -> None:
    shuffled = list(tasks)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert assign(tasks, threads) == assign(shuffled, threads)
