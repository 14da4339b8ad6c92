"""Every task runs on exactly one thread, and the threads share them evenly."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from kstreams.processor.topology.sub_topologies import TaskId
from kstreams.runtime.native.tasks.task_manager import place

tasks = st.lists(st.integers(1, 8), max_size=5).map(
    lambda widths: [TaskId(sub, partition) for sub, width in enumerate(widths) for partition in range(width)]
)
threads = st.integers(1, 6).map(lambda count: range(1, count + 1))


@given(tasks, threads)
def test_tasks_are_shared_out_once_and_evenly(tasks: list[TaskId], threads: range) -> None:
    found = place(tasks, threads)
    assert sorted(found) == sorted(tasks)
    assert spread([found[task] for task in tasks], threads) <= 1


@given(tasks, threads)
def test_each_sub_topology_is_spread_over_the_threads(tasks: list[TaskId], threads: range) -> None:
    found = place(tasks, threads)
    for sub in {task.sub_topology for task in tasks}:
        assert spread([found[task] for task in tasks if task.sub_topology == sub], threads) <= 1


@given(tasks, threads, st.randoms())
def test_the_order_in_which_tasks_are_given_does_not_matter(
    tasks: list[TaskId], threads: range, random: object
) -> None:
    shuffled = list(tasks)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert place(tasks, threads) == place(shuffled, threads)


@given(tasks, tasks, threads)
def test_tasks_that_come_later_go_where_there_are_fewest(
    first: list[TaskId], later: list[TaskId], threads: range
) -> None:
    placed = place(first, threads)
    added = place(set(later) - set(first), threads, placed)
    assert spread([*placed.values(), *added.values()], threads) <= 1


def spread(placed: list[int], threads: range) -> int:
    """How many tasks more one thread has than another."""
    counts = Counter(placed)
    return max(counts[thread] for thread in threads) - min(counts[thread] for thread in threads)
