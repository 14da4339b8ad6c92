"""`next_assignment`: the assignment that follows from the states of processes. Pure.

A task changes its process in two assignments, so that no two processes run it. The first assignment revokes it. When
its process has announced the release of the task, the second assignment gives it to another process.
"""

from __future__ import annotations

from collections.abc import Mapping

from kstreams.processor.topology.sub_topologies import TaskId
from kstreams.runtime.native.assignment.assignor import assign_tasks
from kstreams.runtime.native.assignment.clients import AssignmentRules, ClientShare
from kstreams.runtime.native.group.messages import Assignment, ProcessShare, ProcessState, owners


def next_assignment(
    latest: Assignment, states: Mapping[str, ProcessState], tasks: Mapping[TaskId, bool], rules: AssignmentRules
) -> Assignment | None:
    """Return the next assignment, or None if nothing changes or a process has not followed the latest one.

    Parameters
    ----------
    latest : Assignment
    states : mapping of str to ProcessState
        The states of the members of the group.
    tasks : mapping of TaskId to bool
        All tasks, with True for those that have state.
    rules : AssignmentRules

    Examples
    --------
    One of two tasks moves to a second process as soon as the first process has released it:

    >>> tasks = {TaskId(0, 0): False, TaskId(0, 1): False}
    >>> one = ProcessState("p", "one", 1, active=("0_0", "0_1"))
    >>> first = Assignment(1, {"one": ProcessShare(("0_0", "0_1"))})
    >>> second = next_assignment(first, {"one": one, "two": ProcessState("q", "two")}, tasks, AssignmentRules())
    >>> second.shares["one"].active, second.shares["two"].active
    (('0_1',), ())
    >>> states = {"one": ProcessState("p", "one", 2, active=("0_1",)), "two": ProcessState("q", "two", 2)}
    >>> third = next_assignment(second, states, tasks, AssignmentRules())
    >>> third.shares["one"].active, third.shares["two"].active
    (('0_1',), ('0_0',))
    """
    if not states or any(states[member].version < latest.version for member in states.keys() & latest.shares.keys()):
        return None
    owner = owners(latest, states)
    owned = {member: frozenset(task for task, task_owner in owner.items() if task_owner == member) for member in states}
    clients = {member: state.as_client(owned[member]) for member, state in states.items()}
    target_shares = assign_tasks(tasks, clients, rules).shares
    shares = {member: _current_share(member, target_shares[member], owner) for member in states}
    return Assignment(latest.version + 1, shares) if shares != latest.shares else None


def _current_share(member: str, share: ClientShare, owner: Mapping[TaskId, str]) -> ProcessShare:
    """Return the next share of a process. It has standbys of the tasks that another process still owns."""
    blocked = [task for task in share.active if owner.get(task, member) != member]
    active = [task for task in share.active if task not in blocked]
    standby = {*share.standby, *share.warmup, *blocked}
    return ProcessShare(tuple(map(str, sorted(active))), tuple(map(str, sorted(standby))))
