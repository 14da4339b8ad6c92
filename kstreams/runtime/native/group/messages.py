"""`ProcessState` and `Assignment`: what the processes of an application tell each other, as records of one topic."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kstreams.processor.topology.task_id import TaskId
from kstreams.runtime.native.assignment.clients import ClientState


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
    """

    process: str
    member: str = ""
    version: int = 0
    capacity: int = 1
    active: tuple[str, ...] = ()
    standby: tuple[str, ...] = ()
    lags: dict[str, int] = {}
    tags: dict[str, str] = {}

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
    given = {TaskId.parse(task): member for member in states for task in _share(latest, member).active}
    return given | {TaskId.parse(task): member for member, state in states.items() for task in state.active}


def _share(latest: Assignment, member: str) -> ProcessShare:
    return latest.shares.get(member, ProcessShare())
