"""`ProcessState`, `Assignment`: what the processes of an application tell each other, in one topic."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from kstreams.processor.topology.sub_topologies import TaskId
from kstreams.runtime.native.assignment.clients import ClientState
from kstreams.runtime.native.time_alignment.slices import Pace, slowest


class ProcessState(msgspec.Struct, frozen=True):
    """What a process has, as it tells the others.

    Parameters
    ----------
    process : str
        New for every start; its transactional ids begin with it.
    member : str
        Its id in the group; a run that shares its tasks with nobody has none.
    version : int
        The assignment that it follows.
    capacity : int
        Its threads.
    active : tuple of str
        Tasks that it runs, restores, or has not given back yet.
    standby : tuple of str
        Tasks whose stores it keeps up to date for others.
    lags : dict of str to int
        How many changelog records it lacks, by task.
    tags : dict of str to str
        Where it runs (`client.tag.*`).
    server : str
        Where it answers queries (`application.server`): host:port; empty when it does not.
    paces : dict of str to Pace
        How far its writers of repartition topics are, by sub-topology; without those of which one is not open yet.
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
        """What the assignor is told of it; `active` are the tasks that it owns."""
        standby = frozenset(map(TaskId.parse, self.standby)) - active
        lags = {TaskId.parse(task): lag for task, lag in self.lags.items()}
        return ClientState(self.capacity, active, standby, lags, self.tags)


class ProcessShare(msgspec.Struct, frozen=True):
    """The tasks that a process is to run, and those of which it is to keep the stores up to date."""

    active: tuple[str, ...] = ()
    standby: tuple[str, ...] = ()


class Assignment(msgspec.Struct, frozen=True):
    """What all processes are given.

    Parameters
    ----------
    version : int
        Each follows the one before it; of two with the same number the first in the topic counts.
    shares : dict of str to ProcessShare
        By the member ids of the group.
    """

    version: int = 0
    shares: dict[str, ProcessShare] = {}


def owners(latest: Assignment, states: Mapping[str, ProcessState]) -> dict[TaskId, str]:
    """The member that runs each task, or may begin to: by what it says, and by what it is given.

    Examples
    --------
    >>> latest = Assignment(1, {"a": ProcessShare(active=("0_0",))})
    >>> owners(latest, {"a": ProcessState("p", "a"), "b": ProcessState("q", "b", active=("0_1",))})
    {TaskId(sub_topology=0, partition=0): 'a', TaskId(sub_topology=0, partition=1): 'b'}
    """
    owners = {TaskId.parse(task): member for member in states for task in _share(latest, member).active}
    return owners | {TaskId.parse(task): member for member, state in states.items() for task in state.active}


def _share(latest: Assignment, member: str) -> ProcessShare:
    return latest.shares.get(member, ProcessShare())


def pace_of(states: Collection[ProcessState], writers: Collection[TaskId]) -> Pace | None:
    """Return the pace of all tasks of a sub-topology, or None if one is not known or two processes have it.

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
