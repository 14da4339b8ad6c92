"""`place_active`: the final clients of active tasks: their present ones, as far as loads stay equal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from kstreams.processor.topology.sub_topologies import TaskId
from kstreams.runtime.native.assignment.clients import Clients
from kstreams.runtime.native.assignment.loads import Loads


def place_active(tasks: Collection[TaskId], clients: Clients, counts: Mapping[str, int]) -> dict[TaskId, str]:
    """Choose the client of each task.

    A task stays with the client that runs it. A task without a client goes to a client that is caught up, or else to
    the client with the least load. Then tasks move until loads differ by at most one, first to clients that are ready.

    Parameters
    ----------
    tasks : collection of TaskId
    clients : Clients
    counts : mapping of str to int
        The numbers of other tasks of the clients, which are added to the load.
    """
    return _Placement(tasks, clients, counts).placed()


class _Placement:
    """The clients of tasks during the placement."""

    def __init__(self, tasks: Collection[TaskId], clients: Clients, counts: Mapping[str, int]) -> None:
        self._tasks = sorted(tasks)
        self._clients = clients
        self._loads = Loads({name: state.capacity for name, state in clients.states.items()}, counts)
        self._owners: dict[TaskId, str] = {}
        self._spread = {name: Counter[int]() for name in clients.states}  # tasks by sub-topology

    def placed(self) -> dict[TaskId, str]:
        """Return the client of each task."""
        orphans = []
        for task in self._tasks:
            owner = self._clients.former_owner(task)
            if owner is None:
                orphans.append(task)
            else:
                self._give(task, owner)
        for task in orphans:
            self._give(task, self._home(task))
        self._loads.level(self._choose, self._move)
        return self._owners

    def _home(self, task: TaskId) -> str:
        ready = [name for name in self._clients.states if self._clients.is_caught_up(name, task)]
        among = ready or list(self._clients.states)
        lightest = self._loads.of(self._loads.lightest(among), 1)
        equal = [name for name in among if self._loads.of(name, 1) == lightest]
        return min(equal, key=lambda name: (self._spread[name][task.sub_topology], self._loads.of(name), name))

    def _choose(self, giver: str, taker: str) -> TaskId | None:
        """Return the task with the least lag at the taker, from the sub-topology of which it has fewest tasks."""
        tasks = [task for task, owner in self._owners.items() if owner == giver]
        return min(tasks, key=lambda task: self._cost(task, giver, taker), default=None)

    def _cost(self, task: TaskId, giver: str, taker: str) -> tuple[bool, int, int, TaskId]:
        former = self._clients.former_owner(task)
        sub = task.sub_topology
        crowding = self._spread[taker][sub] - self._spread[giver][sub]
        return former == giver, self._clients.readiness(taker, task), crowding, task

    def _give(self, task: TaskId, client: str) -> None:
        self._owners[task] = client
        self._loads.add(client)
        self._spread[client][task.sub_topology] += 1

    def _move(self, task: TaskId, giver: str, taker: str) -> None:
        self._owners[task] = taker
        self._spread[giver][task.sub_topology] -= 1
        self._spread[taker][task.sub_topology] += 1
