"""`AssignmentTopic`: the internal topic through which the processes of an application agree on who runs what.

It has one partition, so all read the same records in the same order, and come to the same result: that is all that the
agreement needs of a home of topics. Kafka's client takes no assignor of ours, but any home can keep a topic.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress

import msgspec

from kstreams.errors import TopicExistsError
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.decoders import decode_json
from kstreams.log.api import Log, OffsetAndMetadata
from kstreams.runtime.native.group.messages import Assignment, ProcessState
from kstreams.runtime.native.time_alignment.slices import Slice

_STATE = "state"
_ASSIGNMENT = "assignment"
_SLICE = "slice"
_SHUTDOWN = "shutdown"
_POLL_S = 0.1


def assignment_topic(application_id: str) -> str:
    """The topic's name.

    Examples
    --------
    >>> assignment_topic("flights")
    'flights-KSTREAMS-ASSIGNMENT'
    """
    return f"{application_id}-KSTREAMS-ASSIGNMENT"


class AssignmentTopic:
    """The topic as one process reads and writes it, for one thread. Usable as a context manager.

    Parameters
    ----------
    log : Log
    application_id : str

    Attributes
    ----------
    latest : Assignment
    states : dict of str to ProcessState
        By process: the last that each has told, dead ones too until they are forgotten.
    slices : dict of int to Slice
        The latest of each sub-topology that writes repartition topics.
    shut_down_by : str or None
        The process that has asked all others to stop, since this one reads the topic.
    """

    def __init__(self, log: Log, application_id: str) -> None:
        self.name = assignment_topic(application_id)
        self.latest = Assignment()
        self.states = dict[str, ProcessState]()
        self.slices = dict[int, Slice]()
        self.shut_down_by: str | None = None
        self._made = dict[str, int]()  # the version that each process made last
        self._cut = dict[tuple[int, str], int]()  # the slice of each sub-topology that each process made last
        self._source = TopicPartition(self.name, 0)
        self._next_offset = 0
        with log.admin() as admin, suppress(TopicExistsError):
            if self.name not in admin.topics():
                admin.create_topic(self.name, 1, {"cleanup.policy": "compact"})
        with ExitStack() as opening:
            self._producer = opening.enter_context(log.producer())
            self._reader = opening.enter_context(log.consumer())
            self._reader.assign([self._source])
            self._resources = opening.pop_all()
        self.catch_up()
        self.shut_down_by = None  # that was of the past

    def catch_up(self) -> None:
        """Read to where the topic ends now."""
        end = self._reader.end_offsets([self._source])[self._source]
        while self._reader.position(self._source) < end:
            self.read(_POLL_S)

    def position(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """How far it was read, as a group commits it; any thread may ask."""
        return {self._source: OffsetAndMetadata(self._next_offset)}

    def read(self, timeout: float = 0.0) -> None:
        """Take note of new records; waits up to `timeout` seconds for some."""
        for batch in self._reader.poll(timeout):
            for key, value in zip(batch.keys.to_pylist(), batch.values.to_pylist(), strict=True):
                self._take(key, value)
            self._next_offset = int(batch.offsets[-1]) + 1

    def tell(self, state: ProcessState) -> None:
        """Let all know what a process has."""
        self._send(_STATE, state.process, msgspec.json.encode(state))

    def assign(self, assignment: Assignment, process: str) -> None:
        """Let all know an assignment; each leader has a key of its own, so that none is compacted away for another."""
        self._send(_ASSIGNMENT, process, msgspec.json.encode(assignment))

    def cut(self, sub_topology: int, slice_: Slice, process: str) -> None:
        """Let all know a slice; each leader has a key of its own here, too."""
        self._send(f"{_SLICE}-{sub_topology}", process, msgspec.json.encode(slice_))

    def shut_down(self, process: str) -> None:
        """Let a process ask all others to stop."""
        self._send(_SHUTDOWN, process, b"")

    def forget(self, process: str) -> None:
        """Remove what a process has told; the latest assignment stays, whoever made it."""
        self._send(_STATE, process, None)
        self._send(_SHUTDOWN, process, None)
        if self._made.get(process, self.latest.version) < self.latest.version:
            self._send(_ASSIGNMENT, process, None)
        for (sub_topology, maker), number in list(self._cut.items()):
            if maker == process and number < self.slices[sub_topology].number:
                self._send(f"{_SLICE}-{sub_topology}", process, None)

    def close(self) -> None:
        """Release what it holds."""
        self._resources.close()

    def __enter__(self) -> AssignmentTopic:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _take(self, key: bytes, value: bytes | None) -> None:
        kind, _, process = key.decode().partition(" ")
        if kind == _ASSIGNMENT:
            self._take_assignment(process, value)
        elif kind.startswith(_SLICE):
            self._take_slice(int(kind.removeprefix(f"{_SLICE}-")), process, value)
        elif kind == _SHUTDOWN:
            self.shut_down_by = process if value is not None else self.shut_down_by
        elif value is None:
            self.states.pop(process, None)
        else:
            self.states[process] = decode_json(value, ProcessState)

    def _take_assignment(self, process: str, value: bytes | None) -> None:
        if value is None:
            self._made.pop(process, None)
            return
        assignment = decode_json(value, Assignment)
        if assignment.version > self.latest.version:
            self.latest = assignment
            self._made[process] = assignment.version

    def _take_slice(self, sub_topology: int, process: str, value: bytes | None) -> None:
        if value is None:
            self._cut.pop((sub_topology, process), None)
            return
        slice_ = decode_json(value, Slice)
        if slice_.number > self.slices.get(sub_topology, Slice()).number:
            self.slices[sub_topology] = slice_
            self._cut[sub_topology, process] = slice_.number

    def _send(self, kind: str, process: str, value: bytes | None) -> None:
        self._producer.send(self.name, f"{kind} {process}".encode(), value, partition=0)
        self._producer.flush()
