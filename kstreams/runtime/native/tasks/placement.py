"""`place`: which thread runs which tasks. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from kstreams.processor.topology.task_id import TaskId


def place(
    tasks: Collection[TaskId],
    threads: Sequence[int],
    placed: Mapping[TaskId, int] | None = None,
    together: Collection[int] = frozenset(),
) -> dict[TaskId, int]:
    """Choose threads for tasks: equal numbers, the tasks of a sub-topology on as many threads as possible.

    Parameters
    ----------
    tasks : collection of TaskId
    threads : sequence of int
        The threads that there are; at least one.
    placed : mapping of TaskId to int, optional
        Tasks that have a thread already.
    together : collection of int
        Sub-topologies whose tasks must share a thread.

    Examples
    --------
    >>> tasks = [TaskId(s, p) for s in (0, 1) for p in range(3)]
    >>> {str(task): thread for task, thread in place(tasks, [1, 2]).items()}
    {'0_0': 1, '0_1': 2, '0_2': 1, '1_0': 2, '1_1': 1, '1_2': 2}
    >>> {str(task): thread for task, thread in place(tasks, [1, 2], together={0}).items()}
    {'0_0': 1, '0_1': 1, '0_2': 1, '1_0': 2, '1_1': 2, '1_2': 2}
    >>> {str(task): thread for task, thread in place([TaskId(0, 3)], [1, 2], dict.fromkeys(tasks, 1)).items()}
    {'0_3': 2}
    """
    loads = Counter((placed or {}).values())
    counts = dict[TaskId, int]()
    for sub in sorted(together):
        thread = min(threads, key=loads.__getitem__)
        of_sub = sorted(task for task in tasks if task.sub_topology == sub)
        counts |= dict.fromkeys(of_sub, thread)
        loads[thread] += len(of_sub)
    alone = sorted(task for task in tasks if task.sub_topology not in together)
    for turn, task in enumerate(alone, len(placed or {})):
        counts[task] = _least_loaded(threads, loads, turn)
        loads[counts[task]] += 1
    return counts


def _least_loaded(threads: Sequence[int], loads: Counter[int], turn: int) -> int:
    """The thread with the fewest tasks; of equal ones the first from `turn` on."""
    count = len(threads)
    return min((threads[(turn + i) % count] for i in range(count)), key=loads.__getitem__)
