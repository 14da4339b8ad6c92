"""The topic of a group's connectors: how each connector is to run, and the status of each task.

A compacted topic, as the config and status topics of Kafka Connect are. Commands change the control of a connector, and
processes write the status of their tasks. `kstreams reset` deletes the topic. The sinks then have new identities, for
which no target has an offset.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextlib import suppress
from enum import Enum

import msgspec

from kstreams.connectors.positions import rows_of
from kstreams.connectors.task_status import TaskState
from kstreams.errors import FencedError, TopicExistsError
from kstreams.kernel.batch import Row, TopicPartition
from kstreams.kernel.decoders import decode_json
from kstreams.log.api import Log

_CONTROL = "control"
_STATUS = "status"


def connectors_topic(group: str) -> str:
    """Return the name of the topic.

    Examples
    --------
    >>> connectors_topic("flights")
    'flights-connectors'
    """
    return f"{group}-connectors"


class TargetState(Enum):
    """The state that the user wants, by Kafka Connect's names."""

    STARTED = "STARTED"
    PAUSED = "PAUSED"


class TaskControl(msgspec.Struct, frozen=True, omit_defaults=True):
    """How one task is to run.

    Parameters
    ----------
    restarts : int
        The number of requests to restart the task.
    identity : str
        The name under which the target keeps the offset of this task alone. Empty for that of the connector.
    first_offset : int or None
        The offset at which this identity starts. None for the beginning of the topic.
    """

    restarts: int = 0
    identity: str = ""
    first_offset: int | None = None


class ConnectorControl(msgspec.Struct, frozen=True):
    """How a connector is to run.

    Parameters
    ----------
    identity : str
        The name under which the target of a sink keeps offsets. Empty for a source.
    target_state : TargetState
    tasks : dict of int to TaskControl
        The tasks that differ from a new one.
    """

    identity: str = ""
    target_state: TargetState = TargetState.STARTED
    tasks: dict[int, TaskControl] = {}  # msgspec copies it

    @property
    def is_paused(self) -> bool:
        """True if no task may run."""
        return self.target_state is TargetState.PAUSED

    def task(self, number: int) -> TaskControl:
        """Return the control of a task."""
        return self.tasks.get(number, TaskControl())

    def with_task(self, number: int, task: TaskControl) -> ConnectorControl:
        """Return the same control with another one of a task."""
        return msgspec.structs.replace(self, tasks=self.tasks | {number: task})


class TaskRecord(msgspec.Struct, frozen=True):
    """The status of a task, as the process that runs it has written it.

    Parameters
    ----------
    state : TaskState
    worker : str
        Host and process id.
    member : str
        The id of the process in the consumer group of the connector.
    rows, retries : int
        Counted since the process has the task.
    commit_time_ms : int or None
        The time of day of the last commit of any process.
    error : str
        The last error. Empty if there was none since the last commit.
    """

    state: TaskState
    worker: str
    member: str
    rows: int
    retries: int
    commit_time_ms: int | None
    error: str


class ConnectorRecords:
    """What the topic holds.

    Attributes
    ----------
    controls : dict of str to ConnectorControl
        By the name of the connector in its group.
    tasks : dict of (str, int) to TaskRecord
        By the name of the connector and the number of the task.
    """

    def __init__(self) -> None:
        self.controls: dict[str, ConnectorControl] = {}
        self.tasks: dict[tuple[str, int], TaskRecord] = {}

    def control(self, name: str) -> ConnectorControl:
        """Return the control of a connector."""
        return self.controls.get(name, ConnectorControl())

    def apply(self, row: Row) -> None:
        """Note a record of the topic."""
        kind, _, name = (row.key or b"").decode().partition(" ")
        if kind == _CONTROL:
            self.controls[name] = decode_json(row.value or b"{}", ConnectorControl)
        else:
            connector, _, number = name.rpartition(" ")
            self.tasks[connector, int(number)] = decode_json(row.value or b"", TaskRecord)


def status_row(connector: str, number: int, record: TaskRecord) -> tuple[bytes, bytes]:
    """Return key and value of the record with the status of a task."""
    return f"{_STATUS} {connector} {number}".encode(), msgspec.json.encode(record)


def create_connectors_topic(log: Log, group: str) -> TopicPartition:
    """Return the partition of the topic, which is created if it does not exist."""
    topic = connectors_topic(group)
    with log.admin() as admin, suppress(TopicExistsError):
        if topic not in admin.topics():
            admin.create_topic(topic, 1, {"cleanup.policy": "compact"})
    return TopicPartition(topic, 0)


def read_connectors(log: Log, group: str) -> ConnectorRecords:
    """Return what the topic holds now. Nothing if the topic does not exist."""
    source = TopicPartition(connectors_topic(group), 0)
    with log.admin() as admin:
        if source.topic not in admin.topics():
            return ConnectorRecords()
    return _records_in(log, source)


def _records_in(log: Log, source: TopicPartition) -> ConnectorRecords:
    records = ConnectorRecords()
    for row in rows_of(log, source):
        records.apply(row)
    return records


def change_control(
    log: Log, group: str, name: str, change: Callable[[ConnectorControl], ConnectorControl]
) -> ConnectorControl:
    """Change the control of a connector, and return the new one. Changes of several processes follow each other.

    Parameters
    ----------
    log : Log
    group : str
    name : str
        The name of the connector in its group.
    change : callable
        Returns the new control for the present one. It may be called again.
    """
    source = create_connectors_topic(log, group)
    while True:
        with suppress(FencedError):  # another process changes a control at the same time
            return _changed(log, source, name, change)


def control_with_identity(log: Log, group: str, name: str) -> ConnectorControl:
    """Return the control of a sink with its identity. The first process that asks chooses the identity."""

    def with_identity(control: ConnectorControl) -> ConnectorControl:
        if control.identity:
            return control
        return msgspec.structs.replace(control, identity=new_identity(group, name))

    return change_control(log, group, name, with_identity)


def new_identity(group: str, name: str) -> str:
    """Return an identity that no target knows."""
    return f"{group}-{name}-{uuid.uuid4().hex[:12]}"


def _changed(
    log: Log, source: TopicPartition, name: str, change: Callable[[ConnectorControl], ConnectorControl]
) -> ConnectorControl:
    # From here on, no other process can write a control: the transactional id fences it.
    with log.producer({"transactional.id": source.topic}) as producer:
        present = _records_in(log, source).control(name)
        control = change(present)
        if control != present:
            producer.begin_transaction()
            producer.send(source.topic, f"{_CONTROL} {name}".encode(), msgspec.json.encode(control), partition=0)
            producer.commit_transaction()
        return control
