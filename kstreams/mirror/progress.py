"""`MirrorProgress`: what a process has copied, its lag, and its metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Never

from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.clock import Clock
from kstreams.metrics import catalogue
from kstreams.metrics.template import MetricName, Tags
from kstreams.metrics.values import MetricValue
from kstreams.mirror.mirror_task import SentRecords
from kstreams.mirror.settings import ReplicationPolicy


@dataclass
class CopiedPartition:
    """The figures of one partition."""

    target: TopicPartition
    records: int = 0
    bytes: int = 0
    age_ms: int = 0
    lag: int = 0


class MirrorProgress:
    """The figures of one process of a mirror since its start.

    Parameters
    ----------
    policy : ReplicationPolicy
    clock : Clock
    """

    def __init__(self, policy: ReplicationPolicy, clock: Clock) -> None:
        self._policy = policy
        self.clock = clock
        self._partitions: dict[TopicPartition, CopiedPartition] = {}
        self._records_out = Counter[str]()
        self.dropped: Mapping[tuple[str, str], int] = {}
        """Records that were left out: none."""
        self.stores: Mapping[str, Never] = {}
        """Stores: none."""
        self.stream_time = -1
        """-1: records of several partitions have no common time."""

    @property
    def records_in(self) -> int:
        """The records that were copied."""
        return self._records_out.total()

    @property
    def records_out(self) -> Mapping[str, int]:
        """The records that were copied, by the topic of the target."""
        return self._records_out

    @property
    def lag(self) -> int:
        """The records of the source that are not copied yet, with the offsets that readers never see."""
        return sum(partition.lag for partition in list(self._partitions.values()))

    def record(self, source: TopicPartition, sent: SentRecords) -> None:
        """Record that records were committed now."""
        partition = self._partition(source, sent.target)
        partition.records += sent.num_records
        partition.bytes += sent.num_bytes
        partition.age_ms = self.clock.wall_ms() - sent.last_ms
        self._records_out[sent.target.topic] += sent.num_records

    def record_lag(self, source: TopicPartition, target: TopicPartition, lag: int) -> None:
        """Record the lag of a partition."""
        self._partition(source, target).lag = lag

    def drop(self, sources: Collection[TopicPartition]) -> None:
        """Drop the figures of partitions that another process copies now."""
        for source in sources:
            self._partitions.pop(source, None)

    def metrics(self) -> dict[MetricName, MetricValue]:
        """Return the metrics of all partitions."""
        values: dict[MetricName, MetricValue] = {}
        for partition in list(self._partitions.values()):
            tags = self._tags(partition.target)
            values[catalogue.MIRROR_RECORD_COUNT.tagged(tags)] = partition.records
            values[catalogue.MIRROR_BYTE_COUNT.tagged(tags)] = partition.bytes
            values[catalogue.MIRROR_RECORD_AGE.tagged(tags)] = partition.age_ms
            values[catalogue.MIRROR_LAG.tagged(tags)] = partition.lag
        return values

    def _partition(self, source: TopicPartition, target: TopicPartition) -> CopiedPartition:
        return self._partitions.setdefault(source, CopiedPartition(target))

    def _tags(self, target: TopicPartition) -> Tags:
        return (
            ("source", self._policy.source),
            ("target", self._policy.target),
            ("topic", target.topic),
            ("partition", str(target.partition)),
        )
