"""`next_assignment`: the assignment that follows from what processes have. Pure.

A task changes its process in two steps, so that no two run it: first it is in nobody's share, and when its process has
said that it has given it back, it is in that of another.
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
    """The next assignment; None when nothing is to change, or a process has not yet taken note of the latest.

    Parameters
    ----------
    latest : Assignment
    states : mapping of str to ProcessState
        Of the members of the group.
    tasks : mapping of TaskId to bool
        All tasks, and whether they have state.
    rules : AssignmentRules

    Examples
    --------
    Of two tasks of a process one moves to a second process as soon as it is given back:

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
    owned = {member: frozenset(task for task, at in owner.items() if at == member) for member in states}
    clients = {member: state.as_client(owned[member]) for member, state in states.items()}
    target_shares = assign_tasks(tasks, clients, rules).shares
    shares = {member: _now(member, target_shares[member], owner) for member in states}
    return Assignment(latest.version + 1, shares) if shares != latest.shares else None


def _now(member: str, share: ClientShare, owner: Mapping[TaskId, str]) -> ProcessShare:
    """What a process gets at once: what another still owns it keeps up to date meanwhile."""
    blocked = [task for task in share.active if owner.get(task, member) != member]
    active = [task for task in share.active if task not in blocked]
    standby = {*share.standby, *share.warmup, *blocked}
    return ProcessShare(tuple(map(str, sorted(active))), tuple(map(str, sorted(standby))))
