"""`MirrorTask`: a share of the partitions, whose records and positions are committed in transactions of the target."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from contextlib import suppress

import numpy as np

from kstreams.errors import LogError, UnsupportedError
from kstreams.kernel.batch import Batch, Integers, TopicPartition
from kstreams.kernel.murmur2 import partition_of
from kstreams.log.api import Ability, Log
from kstreams.mirror.offset_syncs import OffsetSync, OffsetSyncs, encode_block, encode_key, read_syncs, syncs_of
from kstreams.mirror.settings import ReplicationPolicy


def task_number(source: TopicPartition, tasks: int) -> int:
    """Return the number of the task that copies a partition.

    Examples
    --------
    >>> [task_number(TopicPartition("orders", number), 2) for number in range(4)]
    [1, 1, 0, 0]
    """
    return partition_of(str(source).encode(), tasks)


class SentRecords:
    """The records of one partition in the open transaction.

    Parameters
    ----------
    target : TopicPartition
    """

    def __init__(self, target: TopicPartition) -> None:
        self.target = target
        self.num_records = 0
        self.num_bytes = 0
        self.last_ms = 0
        """The timestamp of the last record."""
        self._offsets: list[Integers] = []

    @property
    def offsets(self) -> Integers:
        """The offsets in the source."""
        return np.concatenate(self._offsets)

    def add(self, batch: Batch) -> None:
        """Add a batch."""
        self.num_records += len(batch)
        self.num_bytes += batch.keys.nbytes + batch.values.nbytes
        self.last_ms = batch.timestamps[-1].as_py()
        self._offsets.append(batch.offsets)


class MirrorTask:
    """One task. Opening it fences the process that had it before, and ends the open transaction of that process.

    Parameters
    ----------
    target : Log
    policy : ReplicationPolicy
    number : int
        The number of the task, which is its partition of the topic of offset syncs.
    """

    def __init__(self, target: Log, policy: ReplicationPolicy, number: int) -> None:
        settings = {
            "transactional.id": f"{policy.group}-{number}",
            "delivery.report.only.error": True,
        }
        self._own = TopicPartition(policy.offset_syncs_topic, number)
        self._producer = target.producer(settings)
        self._admin = target.admin()
        self._syncs = defaultdict[TopicPartition, OffsetSyncs](
            OffsetSyncs, read_syncs(target, policy.offset_syncs_topic, number)
        )
        self._offsets_of_marker = 0 if Ability.FRAMES in target.abilities else 1
        self._next_offsets: dict[TopicPartition, int] = {}
        self._sent: dict[TopicPartition, SentRecords] = {}
        self._tombstones: list[tuple[TopicPartition, int]] = []
        self._is_open = False

    @property
    def is_open(self) -> bool:
        """True if a transaction is open."""
        return self._is_open

    def position(self, source: TopicPartition) -> int | None:
        """Return the committed position in a partition of the source. None if no record was copied."""
        return self._syncs[source].position

    def translate(self, source: TopicPartition, offset: int) -> int | None:
        """Return the offset in the target for an offset of a partition of the source. See `OffsetSyncs`."""
        return self._syncs[source].translate(offset)

    def add_targets(self, targets: Collection[TopicPartition]) -> None:
        """Read the ends of partitions that this task will write. It must have no open transaction for them."""
        new = [target for target in targets if target not in self._next_offsets]
        self._next_offsets |= self._admin.end_offsets(new, committed_only=False)

    def restart(self, source: TopicPartition) -> None:
        """Drop the syncs of a partition whose topic was created again, and copy it from its beginning."""
        self._tombstones += [(source, start) for start in self._syncs[source].clear()]

    def send(self, batch: Batch, target: TopicPartition) -> None:
        """Write records in the open transaction, which is begun if there is none.

        Raises
        ------
        UnsupportedError
            If the target refuses a record, such as one with the timestamp 0 on Kafka.
        """
        if not self._is_open:
            self._producer.begin_transaction()
            self._is_open = True
        copy = Batch(target, batch.offsets, batch.keys, batch.values, batch.timestamps, batch.headers)
        for row, reason in self._producer.refused(copy).items():
            raise UnsupportedError(
                f"The record {batch.source}@{batch.offsets[row]} cannot be copied: {reason} Or leave the topic out "
                "(--exclude)."
            )
        self._producer.send_batch(copy)
        self._sent.setdefault(batch.source, SentRecords(target)).add(batch)

    def commit(self) -> Mapping[TopicPartition, SentRecords]:
        """Commit the records together with their offset syncs, and return them by partition of the source."""
        if not self._is_open:
            return {}
        self._producer.flush()
        ends = self._admin.end_offsets([records.target for records in self._sent.values()], committed_only=False)
        self._write_tombstones()  # before the syncs, which may have the names of dropped ones
        for source, records in self._sent.items():
            target = records.target
            self._write(source, self._new_syncs(records.offsets, self._next_offsets[target], ends[target]))
        self._producer.commit_transaction()
        self._next_offsets |= {target: end + self._offsets_of_marker for target, end in ends.items()}
        sent = self._sent
        self._sent = {}
        self._is_open = False
        return sent

    def close(self) -> None:
        """Release the task. Records that are not committed are aborted."""
        with suppress(LogError):  # a successor ends the transaction
            self._producer.close()
        self._admin.close()

    def _new_syncs(self, offsets: Integers, next_offset: int, end: int) -> list[OffsetSync]:
        """Return the syncs of the records of the transaction in one partition.

        If another producer has written to the partition meanwhile, the offsets of single records are not known: offsets
        before the last record are translated to the end before the transaction.
        """
        if end == next_offset + len(offsets):
            return syncs_of(offsets, next_offset)
        return [OffsetSync(int(offsets[0]), next_offset, 0), OffsetSync(int(offsets[-1]) + 1, end, 0)]

    def _write(self, source: TopicPartition, syncs: list[OffsetSync]) -> None:
        for block in self._syncs[source].add(syncs):
            self._send_sync(encode_key(source, block[0].source_offset), encode_block(block))
        self._tombstones += [(source, start) for start in self._syncs[source].thinned()]

    def _write_tombstones(self) -> None:
        for source, start in self._tombstones:
            self._send_sync(encode_key(source, start), None)
        self._tombstones.clear()

    def _send_sync(self, key: bytes, value: bytes | None) -> None:
        self._producer.send(self._own.topic, key, value, partition=self._own.partition)
