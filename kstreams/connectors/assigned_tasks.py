"""`AssignedTask`: a task of a connector, by its status record and the members of the consumer group.

A record of a process that is no longer a member says nothing about the present.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kstreams.connectors.connectors_topic import ConnectorControl, ConnectorRecords, TaskRecord
from kstreams.connectors.task_status import TaskState
from kstreams.log.api import GroupDescription

_NEVER_RUN = TaskRecord(TaskState.UNASSIGNED, "", "", 0, 0, None, "")
_WORST_FIRST = (TaskState.FAILED, TaskState.RESTARTING, TaskState.RUNNING, TaskState.PAUSED)


class AssignedTask(NamedTuple):
    """A task, its present state, and its last record.

    Parameters
    ----------
    number : int
    state : TaskState
    worker : str
        Host and process id of the process that runs the task. Empty if none does.
    record : TaskRecord
    """

    number: int
    state: TaskState
    worker: str
    record: TaskRecord


def assigned_tasks(name: str, count: int, records: ConnectorRecords, group: GroupDescription) -> list[AssignedTask]:
    """Return the tasks of a connector.

    Parameters
    ----------
    name : str
        The name of the connector in its group.
    count : int
        The number of tasks.
    records : ConnectorRecords
    group : GroupDescription
        The consumer group of the connector.
    """
    members = {source.partition: member.id for member in group.members for source in member.partitions}
    tasks = []
    for number in range(count):
        record = records.tasks.get((name, number), _NEVER_RUN)
        is_current = number in members and members[number] == record.member
        has_failed = number not in members and record.state is TaskState.FAILED
        state = record.state if is_current or has_failed else TaskState.UNASSIGNED
        tasks.append(AssignedTask(number, state, record.worker if is_current else "", record))
    return tasks


def connector_state(control: ConnectorControl, tasks: Iterable[AssignedTask]) -> TaskState:
    """Return the state of a connector: PAUSED if it is to pause, else the worst of its tasks."""
    if control.is_paused:
        return TaskState.PAUSED
    states = {task.state for task in tasks}
    return next((state for state in _WORST_FIRST if state in states), TaskState.UNASSIGNED)
