"""What a process tells of its threads and tasks, and of where stores are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kstreams.config.kinds import ADDRESS_PATTERN
from kstreams.kernel.batch import TopicPartition
from kstreams.runtime.native.lifecycle import ThreadState


class HostInfo(NamedTuple):
    """Where a process answers, with the path at which it is mounted. Kafka Streams: `HostInfo`."""

    host: str
    port: int
    path: str = ""

    def __str__(self) -> str:
        return f"{self.host}:{self.port}{self.path}"

    @staticmethod
    def of(address: str) -> HostInfo | None:
        """The host, the port and the path of an address; None where it is none.

        Examples
        --------
        >>> HostInfo.of("10.0.0.1:8080")
        HostInfo(host='10.0.0.1', port=8080, path='')
        >>> HostInfo.of("10.0.0.1:8080/stores/").path
        '/stores'
        """
        match = ADDRESS_PATTERN.fullmatch(address)
        return HostInfo(match[1], int(match[2]), match[3] or "") if match else None


class PartitionHolders(NamedTuple):
    """Who has one partition of a store; processes that have not told where they answer are not among them."""

    active: HostInfo | None
    standbys: tuple[HostInfo, ...]


class KeyQueryMetadata(NamedTuple):
    """Where a key is. Kafka Streams: `KeyQueryMetadata`."""

    active: HostInfo | None
    standbys: tuple[HostInfo, ...]
    partition: int


class StreamsMetadata(NamedTuple):
    """The partitions of a store that a process has. Kafka Streams: `StreamsMetadata`."""

    host: HostInfo
    active: frozenset[int]
    standby: frozenset[int]


class LagInfo(NamedTuple):
    """How far a store is in its changelog. Kafka Streams: `LagInfo`."""

    current_offset: int
    end_offset: int

    @property
    def lag(self) -> int:
        """How many records it lacks."""
        return max(0, self.end_offset - self.current_offset)


class TaskMetadata(NamedTuple):
    """A task and its next offsets. Kafka Streams: `TaskMetadata`."""

    task_id: str
    next_offsets: Mapping[TopicPartition, int]


class ThreadMetadata(NamedTuple):
    """A stream thread, its tasks and its state. Kafka Streams: `ThreadMetadata`."""

    name: str
    tasks: tuple[TaskMetadata, ...]
    state: ThreadState
