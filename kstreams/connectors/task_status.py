"""`TaskState` and `TaskStatus`: the state and the counters of a task of a connector in this process."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class TaskState(Enum):
    """The state of a task, by Kafka Connect's names."""

    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    RESTARTING = "RESTARTING"
    UNASSIGNED = "UNASSIGNED"
    FAILED = "FAILED"


@dataclass(slots=True)
class TaskStatus:
    """The state and the counters of a task in this process.

    Parameters
    ----------
    state : TaskState
    rows : int
        The number of committed rows.
    size : int
        The number of bytes of their keys and values in the topic.
    retries : int
        How often it was opened again after an error.
    committed_ms : int
        The uptime of the last commit, or of its start.
    commit_time_ms : int or None
        The time of day of the last commit. None if there was none.
    error : str
        The last error. Empty if there was none since the last commit.
    member : str
        The id of this process in the consumer group of the connector. Empty in a run to the end.
    waiting_rows : int
        The number of rows that wait for another attempt, or behind such a row.
    oldest_wait_ms : int
        For how long the oldest of them has waited.
    """

    state: TaskState = TaskState.UNASSIGNED
    rows: int = 0
    size: int = 0
    retries: int = 0
    committed_ms: int = 0
    commit_time_ms: int | None = None
    error: str = ""
    member: str = ""
    waiting_rows: int = 0
    oldest_wait_ms: int = 0
