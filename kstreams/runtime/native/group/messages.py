"""`ProcessState`, `Assignment`, `Slice`: what the processes of an application tell each other, in one topic."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from kstreams.processor.topology.sub_topologies import TaskId
from kstreams.runtime.native.assignment.clients import ClientState

EVERYTHING_MS = 2**63 - 1


class Slice(msgspec.Struct, frozen=True):
    """How far the writers of a repartition topic go before one of them goes further: a slice of event time.

    Parameters
    ----------
    number : int
        Each follows the one before it; of two with the same number the first in the topic counts.
    time_ms, partition : int
        Writers up to this partition process what takes them to this stream time, those behind it what takes them to an
        earlier one.
    is_open_ended : bool
        Whether no writer waits for another: all have been at the end of their input.
    """

    number: int = 0
    time_ms: int = EVERYTHING_MS
    partition: int = 0
    is_open_ended: bool = True

    def until_ms(self, partition: int) -> int:
        """The stream time to which the writer of a partition goes."""
        return self.time_ms if partition <= self.partition or self.is_open_ended else self.time_ms - 1


class Pace(msgspec.Struct, frozen=True):
    """How far writers of a repartition topic are.

    Parameters
    ----------
    done : int
        The slice whose records they have all written, and that readers see.
    time_ms, partition : int
        Where the next slice is to end.
    has_caught_up : bool
        Whether they have been at the end of their input since they were opened.
    """

    done: int
    time_ms: int
    partition: int
    has_caught_up: bool


def slowest(paces: Collection[Pace]) -> Pace:
    """The pace of several writers together; at least one.

    Examples
    --------
    >>> slowest([Pace(4, 900, 0, True), Pace(5, 700, 1, False)])
    Pace(done=4, time_ms=700, partition=1, has_caught_up=False)
    """
    time_ms, partition = min((pace.time_ms, pace.partition) for pace in paces)
    return Pace(min(pace.done for pace in paces), time_ms, partition, all(pace.has_caught_up for pace in paces))


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
