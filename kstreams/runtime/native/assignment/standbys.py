"""`place_standbys`: chooses clients of standbys: apart from other replicas, preferably with state, with equal loads."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from typing import NamedTuple

from kstreams.processor.topology.sub_topologies import TaskId
from kstreams.runtime.native.assignment.clients import Clients
from kstreams.runtime.native.assignment.loads import Loads


class StandbyMove(NamedTuple):
    """A move of a standby that makes loads more equal, to a client that has to catch up first."""

    task: TaskId
    giver: str
    taker: str


class StandbyPlan(NamedTuple):
    """The clients of the standbys of each task, and further moves that need a warm-up, in their order."""

    clients: dict[TaskId, set[str]]
    later_moves: list[StandbyMove]


def place_standbys(active: Mapping[TaskId, str], clients: Clients, counts: Mapping[str, int]) -> StandbyPlan:
    """Choose the clients of standbys.

    Parameters
    ----------
    active : mapping of TaskId to str
        The client of each active task with state.
    clients : Clients
    counts : mapping of str to int
        The number of active tasks of each client, which are part of the load.
    """
    return _StandbyPlacement(active, clients, counts).plan()


class _StandbyPlacement:
    """The clients of standbys during the placement."""

    def __init__(self, active: Mapping[TaskId, str], clients: Clients, counts: Mapping[str, int]) -> None:
        self._active = active
        self._clients = clients
        self._loads = Loads({name: state.capacity for name, state in clients.states.items()}, counts)
        self._standbys: dict[TaskId, set[str]] = {task: set() for task in sorted(active)}
        self._later_moves: list[StandbyMove] = []

    def plan(self) -> StandbyPlan:
        """Choose replica by replica. Then make loads equal, first by moves that need no warm-up."""
        for _ in range(min(self._clients.rules.num_standby_replicas, len(self._clients.states) - 1)):
            for task in self._standbys:
                self._add(task)
        self._loads.balance(partial(self._choose, needs_warmup=False), self._move)
        plan = StandbyPlan({task: set(names) for task, names in self._standbys.items()}, self._later_moves)
        self._loads.balance(partial(self._choose, needs_warmup=True), self._move_later)
        return plan

    def _add(self, task: TaskId) -> None:
        candidates = [name for name in self._clients.states if name not in self._replicas(task)]
        client = min(
            candidates,
            key=lambda name: (
                -self._distance(name, self._replicas(task)),
                -self._familiarity(name, task),
                self._loads.of(name, 1),
                name,
            ),
        )
        self._standbys[task].add(client)
        self._loads.add(client)

    def _choose(self, giver: str, taker: str, *, needs_warmup: bool) -> TaskId | None:
        """Return a task whose standby may move, with or without a warm-up."""
        tasks = (task for task, names in self._standbys.items() if giver in names)
        return next((task for task in tasks if self._may_move(task, giver, taker, needs_warmup=needs_warmup)), None)

    def _may_move(self, task: TaskId, giver: str, taker: str, *, needs_warmup: bool) -> bool:
        other_clients = self._replicas(task) - {giver}
        if taker in other_clients or self._distance(taker, other_clients) < self._distance(giver, other_clients):
            return False
        has_to_warm_up = self._clients.is_caught_up(giver, task) and not self._clients.is_caught_up(taker, task)
        return has_to_warm_up == needs_warmup

    def _move(self, task: TaskId, giver: str, taker: str) -> None:
        self._standbys[task] ^= {giver, taker}

    def _move_later(self, task: TaskId, giver: str, taker: str) -> None:
        self._move(task, giver, taker)
        self._later_moves.append(StandbyMove(task, giver, taker))

    def _replicas(self, task: TaskId) -> set[str]:
        return {self._active[task]} | self._standbys[task]

    def _distance(self, client: str, other_clients: Collection[str]) -> int:
        """Return the number of tags by which a client differs from all other clients that have the task."""
        tags = self._clients.rules.rack_tags
        states = self._clients.states
        return sum(
            all(states[client].tags.get(tag) != states[other].tags.get(tag) for other in other_clients) for tag in tags
        )

    def _familiarity(self, client: str, task: TaskId) -> int:
        """Return 2 if a client is caught up, plus 1 if it had the task."""
        state = self._clients.states[client]
        return 2 * self._clients.is_caught_up(client, task) + (task in state.standby or task in state.active)
