"""What an assignment is made of: the clients (processes) with what they had, the rules, and the shares they get."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kstreams.processor.topology.sub_topologies import TaskId

NO_STATE = 2**63 - 1  # the lag of a client that has nothing of a task


@dataclass(frozen=True, slots=True)
class ClientState:
    """A process of the application, before an assignment.

    Parameters
    ----------
    capacity : int
        Its threads, at least 1.
    active, standby : frozenset of TaskId
        What it runs, and what it keeps up to date for others (warm-ups too).
    lags : mapping of TaskId to int
        How many changelog records it lacks, for the tasks of which it has state.
    tags : mapping of str to str
        Where it runs, such as its zone (`client.tag.*`).
    """

    capacity: int = 1
    active: frozenset[TaskId] = frozenset()
    standby: frozenset[TaskId] = frozenset()
    lags: Mapping[TaskId, int] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)

    def lag(self, task: TaskId) -> int:
        """How much it lacks: nothing of what it runs."""
        return 0 if task in self.active else self.lags.get(task, NO_STATE)


class AssignmentRules(NamedTuple):
    """The settings of the same names."""

    num_standby_replicas: int = 0
    max_warmup_replicas: int = 2
    acceptable_recovery_lag: int = 10_000
    rack_tags: tuple[str, ...] = ()  # rack.aware.assignment.tags


@dataclass(frozen=True, slots=True)
class ClientShare:
    """What one process gets. It treats warm-ups as standbys, until it is caught up and gets them to run."""

    active: tuple[TaskId, ...] = ()
    standby: tuple[TaskId, ...] = ()
    warmup: tuple[TaskId, ...] = ()


class TaskShares(NamedTuple):
    """The shares of all clients, and whether they are final: else another assignment follows when warm-ups are done."""

    shares: dict[str, ClientShare]
    is_final: bool


class Clients:
    """All clients of an assignment, in the order of their names.

    Parameters
    ----------
    clients : mapping of str to ClientState
    rules : AssignmentRules
    """

    def __init__(self, clients: Mapping[str, ClientState], rules: AssignmentRules) -> None:
        self.states = dict(sorted(clients.items()))
        self.rules = rules
        claims = Counter(task for state in self.states.values() for task in state.active)
        self._owners = {task: name for name, state in self.states.items() for task in state.active if claims[task] == 1}

    def is_caught_up(self, client: str, task: TaskId) -> bool:
        """Whether a client may run a task at once."""
        return self.states[client].lag(task) <= self.rules.acceptable_recovery_lag

    def readiness(self, client: str, task: TaskId) -> int:
        """The lag that counts: whoever is caught up is as good as any other that is."""
        return 0 if self.is_caught_up(client, task) else self.states[client].lag(task)

    def former_owner(self, task: TaskId) -> str | None:
        """The client that runs a task; none when nobody or more than one says so."""
        return self._owners.get(task)
