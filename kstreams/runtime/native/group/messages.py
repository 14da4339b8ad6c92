"""`ProcessState` and `Assignment`: the records by which the processes of an application agree on the assignment."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from kstreams.processor.topology.sub_topologies import TaskId
from kstreams.runtime.native.assignment.clients import ClientState
from kstreams.runtime.native.time_alignment.process_alignment import Pace, slowest


class ProcessState(msgspec.Struct, frozen=True):
    """The state of a process that the other processes read.

    Parameters
    ----------
    process : str
        The name of the process, new for every start. Its transactional ids begin with it.
    member : str
        The member id in the group. Empty for a bounded run, which has no group.
    version : int
        The version of the assignment that the process follows.
    capacity : int
        The number of threads.
    active : tuple of str
        The tasks that the process runs, restores, or has not released yet.
    standby : tuple of str
        The standby tasks.
    lags : dict of str to int
        The changelog lag of tasks in records.
    tags : dict of str to str
        The settings `client.tag.*`.
    server : str
        The setting `application.server`: the address (host:port) for queries. Empty if it is not set.
    paces : dict of str to Pace
        The pace of writers of repartition topics, by sub-topology. Sub-topologies with a task that is not open are
        missing.
    """

    process: str
    member: str = ""
    version: int = 0
    capacity: int = 1
    active: tuple[str, ...] = ()
    standby: tuple[str, ...] = ()
    lags: dict[str, int] = {}
    tags: dict[str, str] = {}
    server: str = ""
    paces: dict[str, Pace] = {}

    def as_client(self, active: frozenset[TaskId]) -> ClientState:
        """Return the input of the assignor. `active` are the tasks that the process owns."""
        standby = frozenset(map(TaskId.parse, self.standby)) - active
        lags = {TaskId.parse(task): lag for task, lag in self.lags.items()}
        return ClientState(self.capacity, active, standby, lags, self.tags)


class ProcessShare(msgspec.Struct, frozen=True):
    """The active and the standby tasks that an assignment gives to a process."""

    active: tuple[str, ...] = ()
    standby: tuple[str, ...] = ()


class Assignment(msgspec.Struct, frozen=True):
    """The tasks of all processes.

    Parameters
    ----------
    version : int
        The number of the assignment. If two assignments have the same number, the first in the topic counts.
    shares : dict of str to ProcessShare
        The shares by member id.
    """

    version: int = 0
    shares: dict[str, ProcessShare] = {}


def owners(latest: Assignment, states: Mapping[str, ProcessState]) -> dict[TaskId, str]:
    """Return the owner of each task: the member that runs it, or else the member to which it is assigned.

    Examples
    --------
    >>> latest = Assignment(1, {"a": ProcessShare(active=("0_0",))})
    >>> owners(latest, {"a": ProcessState("p", "a"), "b": ProcessState("q", "b", active=("0_1",))})
    {TaskId(sub_topology=0, partition=0): 'a', TaskId(sub_topology=0, partition=1): 'b'}
    """
    assigned = {TaskId.parse(task): member for member in states for task in _share(latest, member).active}
    running = {TaskId.parse(task): member for member, state in states.items() for task in state.active}
    return assigned | running


def _share(latest: Assignment, member: str) -> ProcessShare:
    return latest.shares.get(member, ProcessShare())


def pace_of(states: Collection[ProcessState], writers: Collection[TaskId]) -> Pace | None:
    """Return the pace of all tasks of a sub-topology. None if the pace of a task is unknown or two processes run it.

    Examples
    --------
    >>> slow = ProcessState("p", "a", active=("0_0",), paces={"0": Pace(3, 500, 0, False)})
    >>> fast = ProcessState("q", "b", active=("0_1",), paces={"0": Pace(3, 900, 1, False)})
    >>> pace_of([slow, fast], [TaskId(0, 0), TaskId(0, 1)])
    Pace(done=3, time_ms=500, partition=0, has_caught_up=False)
    >>> pace_of([slow], [TaskId(0, 0), TaskId(0, 1)])
    """
    sub = str(next(iter(writers)).sub_topology)
    names = {str(task) for task in writers}
    processes = [state for state in states if not names.isdisjoint(state.active)]
    active = sorted(task for state in processes for task in names.intersection(state.active))
    if active != sorted(names) or any(sub not in state.paces for state in processes):
        return None
    return slowest([state.paces[sub] for state in processes])
