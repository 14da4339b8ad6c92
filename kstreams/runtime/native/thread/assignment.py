"""`assign`: which thread runs which tasks. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kstreams.processor.topology.layout import TaskPlan


def assign(tasks: Sequence[TaskPlan], threads: int, together: Collection[int] = frozenset()) -> list[list[TaskPlan]]:
    """Assign tasks to threads: equal numbers, the tasks of a sub-topology on as many threads as possible.

    Parameters
    ----------
    tasks : sequence of TaskPlan
    threads : int
        At least 1; threads beyond the number of tasks get none.
    together : collection of int
        Sub-topologies whose tasks must share a thread.

    Examples
    --------
    >>> from kstreams.processor.topology.topology import SubTopology
    >>> plans = [TaskPlan(SubTopology(s, (), ()), p, ()) for s in (0, 1) for p in range(3)]
    >>> [[str(task.id) for task in share] for share in assign(plans, 2)]
    [['0_0', '0_2', '1_1'], ['0_1', '1_0', '1_2']]
    >>> [[str(task.id) for task in share] for share in assign(plans, 2, {0})]
    [['0_0', '0_1', '0_2'], ['1_0', '1_1', '1_2']]
    """
    ordered = sorted(tasks, key=lambda task: task.id)
    shares: list[list[TaskPlan]] = [[] for _ in range(threads)]
    for sub in sorted(together):
        min(shares, key=len).extend(task for task in ordered if task.id.sub_topology == sub)
    alone = [task for task in ordered if task.id.sub_topology not in together]
    for turn, task in enumerate(alone):
        _shortest(shares, turn).append(task)
    return [sorted(share, key=lambda task: task.id) for share in shares]


def _shortest(shares: list[list[TaskPlan]], turn: int) -> list[TaskPlan]:
    """The shortest share; of equally short ones the first from `turn` on."""
    count = len(shares)
    return min((shares[(turn + i) % count] for i in range(count)), key=len)
