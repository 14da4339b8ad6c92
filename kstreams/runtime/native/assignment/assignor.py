"""`assign_tasks`: the assignment of tasks to processes, as in Kafka Streams' `HighAvailabilityTaskAssignor`.

It has two parts: the final clients of tasks, and their clients now. A task whose final client has to catch up runs at a
client that has its state, while the final client warms up. At most `max.warmup.replicas` clients warm up at a time.
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
    all_clients = Clients(clients, rules or AssignmentRules())
    stateful = {task for task, has_state in tasks.items() if has_state}
    target = place_active(stateful, all_clients, {})
    stateless = place_active(tasks.keys() - stateful, all_clients, Counter(target.values()))
    standbys = place_standbys(target, all_clients, Counter([*target.values(), *stateless.values()]))
    return _Transition(all_clients, target, standbys).shares(stateless)


class _Transition:
    """The next shares on the way from the present to the final placement."""

    def __init__(self, clients: Clients, target: Mapping[TaskId, str], standbys: StandbyPlan) -> None:
        self._clients = clients
        self._target = target
        self._standbys = {task: set(names) for task, names in standbys.clients.items()}
        self._later_moves = standbys.later_moves
        self._owners = {task: self._next_owner(task) for task in target}
        self._warmups: list[tuple[TaskId, str]] = []

    def shares(self, stateless: Mapping[TaskId, str]) -> TaskShares:
        """Return the next share of each client."""
        moving_tasks = [task for task in self._target if self._owners[task] != self._target[task]]
        for task in moving_tasks:
            self._swap_standby(task)
        self._warm_up([task for task in moving_tasks if self._target[task] not in self._standbys[task]])
        active = {**self._owners, **stateless}
        shares = {name: self._share(name, active) for name in self._clients.states}
        return TaskShares(shares, is_final=not moving_tasks and not self._later_moves)

    def _next_owner(self, task: TaskId) -> str:
        """Return the next client of a task: its final one, unless another client has a smaller lag."""
        target = self._target[task]
        readiness = self._clients.readiness
        least_lag = min(readiness(name, task) for name in self._clients.states)
        if readiness(target, task) == least_lag:
            return target
        candidates = [name for name in self._clients.states if readiness(name, task) == least_lag]
        former_owner = self._clients.former_owner(task)
        return min(candidates, key=lambda name: (name != former_owner, name not in self._standbys[task], name))

    def _swap_standby(self, task: TaskId) -> None:
        """If the next owner has a standby of the task, the final client gets the standby, without a warm-up."""
        if self._owners[task] in self._standbys[task]:
            self._standbys[task] ^= {self._owners[task], self._target[task]}

    def _warm_up(self, moving_tasks: Collection[TaskId]) -> None:
        """Choose the warm-ups: those of active tasks before those of standbys, and those with the least lag first."""
        by_lag = sorted(moving_tasks, key=lambda task: (self._clients.readiness(self._target[task], task), task))
        of_active_tasks = [(task, self._target[task]) for task in by_lag]
        of_standbys = [(task, taker) for task, _, taker in self._later_moves if taker != self._owners[task]]
        self._warmups = [*of_active_tasks, *of_standbys][: self._clients.rules.max_warmup_replicas]

    def _share(self, name: str, active: Mapping[TaskId, str]) -> ClientShare:
        return ClientShare(
            active=tuple(sorted(task for task, owner in active.items() if owner == name)),
            standby=tuple(sorted(task for task, names in self._standbys.items() if name in names)),
            warmup=tuple(sorted(task for task, client in self._warmups if client == name)),
        )
