"""`next_slice`: the slice of event time that the writers of a repartition topic process next. Pure."""

from __future__ import annotations

from collections.abc import Collection

from kstreams.processor.topology.sub_topologies import TaskId
from kstreams.runtime.native.group.messages import Pace, ProcessState, Slice, slowest


def next_slice(latest: Slice, states: Collection[ProcessState], writers: Collection[TaskId]) -> Slice | None:
    """The next slice; None while a writer is not done with the latest, or where none has history to read.

    Parameters
    ----------
    latest : Slice
    states : collection of ProcessState
        Of the members of the group.
    writers : collection of TaskId
        All tasks of one sub-topology.

    Examples
    --------
    >>> def state(process, task, *pace):
    ...     return ProcessState(process, process, active=(task,), paces={"0": Pace(*pace)})
    >>> writers = [TaskId(0, 0), TaskId(0, 1)]
    >>> slow, fast = state("p", "0_0", 3, 500, 0, False), state("q", "0_1", 3, 900, 1, False)
    >>> next_slice(Slice(3, 400, 0, False), [slow, fast], writers)
    Slice(number=4, time_ms=500, partition=0, is_open_ended=False)
    >>> next_slice(Slice(4, 500, 0, False), [slow, fast], writers)

    When all have caught up, none waits for another any more:

    >>> done = [state("p", "0_0", 4, 950, 0, True), state("q", "0_1", 4, 980, 1, True)]
    >>> next_slice(Slice(4, 500, 0, False), done, writers).is_open_ended
    True
    """
    slowest_of_all = pace_of(states, writers)
    if len(writers) < 2 or slowest_of_all is None or (latest.is_open_ended and slowest_of_all.has_caught_up):
        return None
    if slowest_of_all.done < latest.number:
        return None
    if slowest_of_all.has_caught_up:
        return Slice(latest.number + 1)
    return Slice(latest.number + 1, slowest_of_all.time_ms, slowest_of_all.partition, is_open_ended=False)


def is_settled(latest: Slice, states: Collection[ProcessState], writers: Collection[TaskId]) -> bool:
    """Whether no writer has history to read."""
    slowest_of_all = pace_of(states, writers)
    return latest.is_open_ended and slowest_of_all is not None and slowest_of_all.has_caught_up


def pace_of(states: Collection[ProcessState], writers: Collection[TaskId]) -> Pace | None:
    """The pace of all writers; None while it is not known of one, or two processes have it."""
    sub = str(next(iter(writers)).sub_topology)
    names = {str(task) for task in writers}
    having = [state for state in states if not names.isdisjoint(state.active)]
    active = sorted(task for state in having for task in names.intersection(state.active))
    if active != sorted(names) or any(sub not in state.paces for state in having):
        return None
    return slowest([state.paces[sub] for state in having])
