"""What several groups have committed, asked for side by side: Kafka has a connection of its own for each group."""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor

from kstreams.kernel.batch import TopicPartition
from kstreams.log.api import Admin, OffsetAndMetadata

_AT_ONCE = 16


def committed_by(
    admin: Admin, groups: Collection[str], partitions: Collection[TopicPartition]
) -> dict[str, dict[TopicPartition, OffsetAndMetadata]]:
    """The committed offsets of these partitions, group by group."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        offsets = pool.map(lambda group: admin.committed(group, partitions), groups)
        return dict(zip(groups, offsets, strict=True))
