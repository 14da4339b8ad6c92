"""`assign_tasks`: the assignment of an application's tasks to its processes, as Kafka Streams' high availability one.

It has two parts: where tasks are to be in the end, and where they are now. A task whose client has to catch up first
runs meanwhile where its state is, and its client warms up; at most `max.warmup.replicas` do so at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from kstreams.processor.topology.sub_topologies import TaskId
from kstreams.runtime.native.assignment.actives import place_active
from kstreams.runtime.native.assignment.clients import AssignmentRules, Clients, ClientShare, ClientState, TaskShares
from kstreams.runtime.native.assignment.standbys import StandbyPlan, place_standbys


def assign_tasks(
    tasks: Mapping[TaskId, bool], clients: Mapping[str, ClientState], rules: AssignmentRules | None = None
) -> TaskShares:
    """Assign tasks to clients.

    Every task is active at one client, and a client never has two replicas of a task. Equal clients get equal shares.

    Parameters
    ----------
    tasks : mapping of TaskId to bool
        All tasks, with True for those that have state.
    clients : mapping of str to ClientState
        The processes by name; at least one.
    rules : AssignmentRules or None

    Examples
    --------
    A second process joins. It warms up for its share, and gets the tasks when it has caught up:

    >>> tasks = {TaskId(0, partition): True for partition in range(4)}
    >>> one = ClientState(active=frozenset(tasks))
    >>> first = assign_tasks(tasks, {"one": one, "two": ClientState()})
    >>> [str(task) for task in first.shares["one"].active], [str(task) for task in first.shares["two"].warmup]
    (['0_0', '0_1', '0_2', '0_3'], ['0_0', '0_1'])
    >>> first.is_final
    False
    >>> warm = frozenset(first.shares["two"].warmup)
    >>> two = ClientState(standby=warm, lags=dict.fromkeys(warm, 12))
    >>> second = assign_tasks(tasks, {"one": one, "two": two})
    >>> [str(task) for task in second.shares["one"].active], [str(task) for task in second.shares["two"].active]
    (['0_2', '0_3'], ['0_0', '0_1'])
    >>> second.is_final
    True
    """
    placed_clients = Clients(clients, rules or AssignmentRules())
    stateful = {task for task, has_state in tasks.items() if has_state}
    target = place_active(stateful, placed_clients, {})
    stateless = place_active(tasks.keys() - stateful, placed_clients, Counter(target.values()))
    standbys = place_standbys(target, placed_clients, Counter([*target.values(), *stateless.values()]))
    return _Transition(placed_clients, target, standbys).shares(stateless)


class _Transition:
    """The next shares on the way from the present to the final placement."""

    def __init__(self, clients: Clients, target: Mapping[TaskId, str], standbys: StandbyPlan) -> None:
        self._clients = clients
        self._target = target
        self._keepers = {task: set(keepers) for task, keepers in standbys.keepers.items()}
        self._wishes = standbys.wishes
        self._runs = {task: self._runner(task) for task in target}
        self._warmups: list[tuple[TaskId, str]] = []

    def shares(self, stateless: Mapping[TaskId, str]) -> TaskShares:
        """Return the next share of each client."""
        moved = [task for task in self._target if self._runs[task] != self._target[task]]
        for task in moved:
            self._trade(task)
        self._warm_up([task for task in moved if self._target[task] not in self._keepers[task]])
        active = {**self._runs, **stateless}
        shares = {name: self._share(name, active) for name in self._clients.states}
        return TaskShares(shares, is_final=not moved and not self._wishes)

    def _runner(self, task: TaskId) -> str:
        """Return the client that runs a task now: its final one, or the one with the least lag if that is less."""
        target = self._target[task]
        ready = self._clients.readiness
        least = min(ready(name, task) for name in self._clients.states)
        if ready(target, task) == least:
            return target
        able = [name for name in self._clients.states if ready(name, task) == least]
        former = self._clients.former_owner(task)
        return min(able, key=lambda name: (name != former, name not in self._keepers[task], name))

    def _trade(self, task: TaskId) -> None:
        """If a client with a standby runs the task, give the standby to the task's final client without a warm-up."""
        if self._runs[task] in self._keepers[task]:
            self._keepers[task] ^= {self._runs[task], self._target[task]}

    def _warm_up(self, moved: Collection[TaskId]) -> None:
        """Choose the warm-ups: those of active tasks before those of standbys, and those with the least lag first."""
        most = self._clients.rules.max_warmup_replicas
        nearest = sorted(moved, key=lambda task: (self._clients.readiness(self._target[task], task), task))
        wishes = [(task, taker) for task, _, taker in self._wishes if taker != self._runs[task]]
        self._warmups = [*((task, self._target[task]) for task in nearest), *wishes][:most]

    def _share(self, name: str, active: Mapping[TaskId, str]) -> ClientShare:
        return ClientShare(
            tuple(sorted(task for task, owner in active.items() if owner == name)),
            tuple(sorted(task for task, keepers in self._keepers.items() if name in keepers)),
            tuple(sorted(task for task, client in self._warmups if client == name)),
        )
