"""Which thread runs which tasks: a pure function."""

from __future__ import annotations

from collections.abc import Sequence

from kstreams.processor.layout import TaskPlan


def assign(tasks: Sequence[TaskPlan], threads: int) -> list[list[TaskPlan]]:
    """Tasks shared out to threads: evenly in number, and each sub-topology spread as far as it goes.

    Parameters
    ----------
    tasks : sequence of TaskPlan
    threads : int
        At least 1; threads beyond the number of tasks get none.

    Examples
    --------
    >>> from kstreams.processor.topology import SubTopology
    >>> plans = [TaskPlan(SubTopology(s, (), ()), p, ()) for s in (0, 1) for p in range(3)]
    >>> [[str(task.id) for task in share] for share in assign(plans, 2)]
    [['0_0', '0_2', '1_1'], ['0_1', '1_0', '1_2']]
    """
    ordered = sorted(tasks, key=lambda task: task.id)
    return [list(ordered[thread::threads]) for thread in range(threads)]
