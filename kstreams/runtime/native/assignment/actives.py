"""`place_active`: chooses the final clients of active tasks. Tasks stay at their clients as far as loads are equal."""

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
    return _Placement(tasks, clients, counts).place()


class _Placement:
    """The clients of tasks during the placement."""

    def __init__(self, tasks: Collection[TaskId], clients: Clients, counts: Mapping[str, int]) -> None:
        self._tasks = sorted(tasks)
        self._clients = clients
        self._loads = Loads({name: state.capacity for name, state in clients.states.items()}, counts)
        self._owners: dict[TaskId, str] = {}
        self._task_counts = {name: Counter[int]() for name in clients.states}  # by client and sub-topology

    def place(self) -> dict[TaskId, str]:
        """Return the client of each task."""
        unowned_tasks = []
        for task in self._tasks:
            owner = self._clients.former_owner(task)
            if owner is None:
                unowned_tasks.append(task)
            else:
                self._assign(task, owner)
        for task in unowned_tasks:
            self._assign(task, self._client_for(task))
        self._loads.balance(self._choose, self._move)
        return self._owners

    def _client_for(self, task: TaskId) -> str:
        """Return the client for a task without an owner.

        Of the clients with the least load, it is the one with the fewest tasks of the same sub-topology.
        """
        caught_up = [name for name in self._clients.states if self._clients.is_caught_up(name, task)]
        candidates = caught_up or list(self._clients.states)
        least_load = self._loads.of(self._loads.lightest(candidates), 1)
        lightest = [name for name in candidates if self._loads.of(name, 1) == least_load]
        return min(lightest, key=lambda name: (self._task_counts[name][task.sub_topology], self._loads.of(name), name))

    def _choose(self, giver: str, taker: str) -> TaskId | None:
        """Return the task to move: one with the least lag at the taker, of a sub-topology with few tasks there."""
        tasks = [task for task, owner in self._owners.items() if owner == giver]
        return min(tasks, key=lambda task: self._cost(task, giver, taker), default=None)

    def _cost(self, task: TaskId, giver: str, taker: str) -> tuple[bool, int, int, TaskId]:
        former_owner = self._clients.former_owner(task)
        sub = task.sub_topology
        count_difference = self._task_counts[taker][sub] - self._task_counts[giver][sub]
        return former_owner == giver, self._clients.readiness(taker, task), count_difference, task

    def _assign(self, task: TaskId, client: str) -> None:
        self._owners[task] = client
        self._loads.add(client)
        self._task_counts[client][task.sub_topology] += 1

    def _move(self, task: TaskId, giver: str, taker: str) -> None:
        self._owners[task] = taker
        self._task_counts[giver][task.sub_topology] -= 1
        self._task_counts[taker][task.sub_topology] += 1
