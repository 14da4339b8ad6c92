"""`AssignmentTopic`: the internal topic through which the processes of an application agree on the assignment.

It has one partition, so that all processes read the same records in the same order and come to the same result. This
works with every home of topics, whereas Kafka's client does not support an assignor in Python.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress

import msgspec

from kstreams.errors import TopicExistsError
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.decoders import decode_json
from kstreams.log.api import Log, OffsetAndMetadata
from kstreams.log.settings import QUOTA_DELAYS
from kstreams.runtime.native.group.messages import Assignment, ProcessState
from kstreams.runtime.native.time_alignment.process_alignment import Slice

_STATE = "state"
_ASSIGNMENT = "assignment"
_SLICE = "slice"
_SHUTDOWN = "shutdown"
_POLL_S = 0.1


def assignment_topic(application_id: str) -> str:
    """Return the name of the topic.

    Examples
    --------
    >>> assignment_topic("flights")
    'flights-KSTREAMS-ASSIGNMENT'
    """
    return f"{application_id}-KSTREAMS-ASSIGNMENT"


class AssignmentTopic:
    """The assignment topic, read and written by one thread of a process. Usable as a context manager.

    Parameters
    ----------
    log : Log
    application_id : str

    Attributes
    ----------
    latest : Assignment
    states : dict of str to ProcessState
        The last state of each process, including dead processes until their records are removed.
    slices : dict of int to Slice
        The latest slice of each sub-topology that writes repartition topics.
    shut_down_by : str or None
        The process that has requested a stop of all processes since this object was created.
    """

    def __init__(self, log: Log, application_id: str) -> None:
        self.name = assignment_topic(application_id)
        self.latest = Assignment()
        self.states = dict[str, ProcessState]()
        self.slices = dict[int, Slice]()
        self.shut_down_by: str | None = None
        self._versions = dict[str, int]()  # the version of the last assignment that each process has written
        self._numbers = dict[tuple[int, str], int]()  # the last slice that each process has written, by sub-topology
        self._source = TopicPartition(self.name, 0)
        self._next_offset = 0
        with log.admin() as admin, suppress(TopicExistsError):
            if self.name not in admin.topics():
                admin.create_topic(self.name, 1, {"cleanup.policy": "compact"})
        with ExitStack() as opening:
            self._producer = opening.enter_context(log.producer({QUOTA_DELAYS: False}))
            self._reader = opening.enter_context(log.consumer({QUOTA_DELAYS: False}))
            self._reader.assign([self._source])
            self._resources = opening.pop_all()
        self.catch_up()
        self.shut_down_by = None  # an earlier request concerned an earlier run

    def catch_up(self) -> None:
        """Read up to the present end of the topic."""
        end = self._reader.end_offsets([self._source])[self._source]
        while self._reader.position(self._source) < end:
            self.read(_POLL_S)

    def position(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the next offset to read, for a commit. May be called from any thread."""
        return {self._source: OffsetAndMetadata(self._next_offset)}

    def read(self, timeout: float = 0.0) -> None:
        """Read new records. Waits up to `timeout` seconds for the first."""
        for batch in self._reader.poll(timeout):
            for key, value in zip(batch.keys.to_pylist(), batch.values.to_pylist(), strict=True):
                self._apply(key, value)
            self._next_offset = int(batch.offsets[-1]) + 1

    def write_state(self, state: ProcessState) -> None:
        """Write the state of a process."""
        self._send(_STATE, state.process, msgspec.json.encode(state))

    def assign(self, assignment: Assignment, process: str) -> None:
        """Write an assignment. Each leader has its own key, so that compaction removes no other leader's assignment."""
        self._send(_ASSIGNMENT, process, msgspec.json.encode(assignment))

    def begin_slice(self, sub_topology: int, slice_: Slice, process: str) -> None:
        """Write a slice. Each leader has its own key."""
        self._send(f"{_SLICE}-{sub_topology}", process, msgspec.json.encode(slice_))

    def shut_down(self, process: str) -> None:
        """Write a process's request to all others to stop."""
        self._send(_SHUTDOWN, process, b"")

    def remove(self, process: str) -> None:
        """Remove the records of a process, except the latest assignment and the latest slices."""
        self._send(_STATE, process, None)
        self._send(_SHUTDOWN, process, None)
        if self._versions.get(process, self.latest.version) < self.latest.version:
            self._send(_ASSIGNMENT, process, None)
        for (sub_topology, leader), number in list(self._numbers.items()):
            if leader == process and number < self.slices[sub_topology].number:
                self._send(f"{_SLICE}-{sub_topology}", process, None)

    def close(self) -> None:
        """Close the clients."""
        self._resources.close()

    def __enter__(self) -> AssignmentTopic:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _apply(self, key: bytes, value: bytes | None) -> None:
        kind, _, process = key.decode().partition(" ")
        if kind == _ASSIGNMENT:
            self._apply_assignment(process, value)
        elif kind.startswith(_SLICE):
            self._apply_slice(int(kind.removeprefix(f"{_SLICE}-")), process, value)
        elif kind == _SHUTDOWN:
            self.shut_down_by = process if value is not None else self.shut_down_by
        elif value is None:
            self.states.pop(process, None)
        else:
            self.states[process] = decode_json(value, ProcessState)

    def _apply_assignment(self, process: str, value: bytes | None) -> None:
        if value is None:
            self._versions.pop(process, None)
            return
        assignment = decode_json(value, Assignment)
        if assignment.version > self.latest.version:
            self.latest = assignment
            self._versions[process] = assignment.version

    def _apply_slice(self, sub_topology: int, process: str, value: bytes | None) -> None:
        if value is None:
            self._numbers.pop((sub_topology, process), None)
            return
        slice_ = decode_json(value, Slice)
        if slice_.number > self.slices.get(sub_topology, Slice()).number:
            self.slices[sub_topology] = slice_
            self._numbers[sub_topology, process] = slice_.number

    def _send(self, kind: str, process: str, value: bytes | None) -> None:
        self._producer.send(self.name, f"{kind} {process}".encode(), value, partition=0)
        self._producer.flush()
