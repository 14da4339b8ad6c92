"""The data of an assignment: clients (processes) with their tasks, the rules, and the shares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kstreams.processor.topology.sub_topologies import TaskId

NO_STATE = 2**63 - 1  # the lag of a client without state of a task


@dataclass(frozen=True, slots=True)
class ClientState:
    """A process of the application, before an assignment.

    Parameters
    ----------
    capacity : int
        The number of threads, at least 1.
    active, standby : frozenset of TaskId
        The tasks that the process runs, and its standby tasks including warm-ups.
    lags : mapping of TaskId to int
        The changelog lag in records of the tasks of which the process has state.
    tags : mapping of str to str
        The settings `client.tag.*`, such as its zone.
    """

    capacity: int = 1
    active: frozenset[TaskId] = frozenset()
    standby: frozenset[TaskId] = frozenset()
    lags: Mapping[TaskId, int] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)

    def lag(self, task: TaskId) -> int:
        """Return the lag of a task: 0 if the process runs it."""
        return 0 if task in self.active else self.lags.get(task, NO_STATE)


class AssignmentRules(NamedTuple):
    """The settings of an assignment, by their names."""

    num_standby_replicas: int = 0
    max_warmup_replicas: int = 2
    acceptable_recovery_lag: int = 10_000
    rack_tags: tuple[str, ...] = ()  # rack.aware.assignment.tags


@dataclass(frozen=True, slots=True)
class ClientShare:
    """The tasks of one process. Warm-ups are standbys that become active tasks when they have caught up."""

    active: tuple[TaskId, ...] = ()
    standby: tuple[TaskId, ...] = ()
    warmup: tuple[TaskId, ...] = ()


class TaskShares(NamedTuple):
    """The shares of all clients. If they are not final, another assignment follows when warm-ups have caught up."""

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
        """Return True if a client may run a task without a warm-up."""
        return self.states[client].lag(task) <= self.rules.acceptable_recovery_lag

    def readiness(self, client: str, task: TaskId) -> int:
        """Return the lag, or 0 if the client is caught up: clients that are caught up are equal."""
        return 0 if self.is_caught_up(client, task) else self.states[client].lag(task)

    def former_owner(self, task: TaskId) -> str | None:
        """Return the client that runs a task, or None if no client or several ones do."""
        return self._owners.get(task)
