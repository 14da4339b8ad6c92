"""Metadata of a running application: its threads and tasks, and the processes that have its stores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kstreams.config.kinds import ADDRESS_PATTERN
from kstreams.kernel.batch import TopicPartition
from kstreams.runtime.native.lifecycle import ThreadState


class HostInfo(NamedTuple):
    """The address of a process that answers queries. Kafka Streams: `HostInfo`.

    Parameters
    ----------
    host : str
    port : int
    path : str
        The path at which the query server is mounted in another application.
    """

    host: str
    port: int
    path: str = ""

    def __str__(self) -> str:
        return f"{self.host}:{self.port}{self.path}"

    @staticmethod
    def of(address: str) -> HostInfo | None:
        """Parse an address. Return None if it is malformed.

        Examples
        --------
        >>> HostInfo.of("10.0.0.1:8080")
        HostInfo(host='10.0.0.1', port=8080, path='')
        >>> HostInfo.of("10.0.0.1:8080/stores/").path
        '/stores'
        """
        match = ADDRESS_PATTERN.fullmatch(address)
        return HostInfo(match[1], int(match[2]), match[3] or "") if match else None


class PartitionHosts(NamedTuple):
    """The processes that have one partition of a store. Processes without `application.server` are missing."""

    active: HostInfo | None
    standbys: tuple[HostInfo, ...]


class KeyQueryMetadata(NamedTuple):
    """The partition of a key, and the processes that have it. Kafka Streams: `KeyQueryMetadata`."""

    active: HostInfo | None
    standbys: tuple[HostInfo, ...]
    partition: int


class StreamsMetadata(NamedTuple):
    """The partitions of a store that a process has. Kafka Streams: `StreamsMetadata`."""

    host: HostInfo
    active: frozenset[int]
    standby: frozenset[int]


class LagInfo(NamedTuple):
    """The changelog offset of a store partition, and the end of its changelog. Kafka Streams: `LagInfo`."""

    current_offset: int
    end_offset: int

    @property
    def lag(self) -> int:
        """The number of changelog records that the store lacks."""
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
