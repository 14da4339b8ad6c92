"""`OffsetSyncs`: the offsets that the records of one partition have in the target.

Each transaction adds the syncs of its records, in the transaction itself, to a compacted topic of the target. The syncs
tell the position from which a successor goes on, and translate the committed offsets of groups.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from time import monotonic
from typing import NamedTuple

import msgspec
import numpy as np

from kstreams.errors import LogError
from kstreams.kernel.batch import Integers, TopicPartition
from kstreams.kernel.decoders import decode_json
from kstreams.log.api import Log

MAX_BLOCKS = 20_000
"""The number of blocks of a partition above which every second of the older half is dropped."""
_MAX_SYNCS = 1_000  # of a block, so that its record is small
_TIMEOUT_S = 60.0
_POLL_S = 0.1


class OffsetSync(NamedTuple):
    """Consecutive records that have consecutive offsets on both sides.

    Without records, both offsets are those of the next record on their side.
    """

    source_offset: int
    target_offset: int
    num_records: int

    @property
    def source_end(self) -> int:
        """The offset after the last record in the source."""
        return self.source_offset + self.num_records

    @property
    def target_end(self) -> int:
        """The offset after the last record in the target."""
        return self.target_offset + self.num_records


Block = tuple[OffsetSync, ...]
"""The syncs of one record of the topic, in the order of offsets. The first one names the record."""


class OffsetSyncs:
    """The syncs of one partition.

    Examples
    --------
    >>> syncs = OffsetSyncs()
    >>> blocks = list(syncs.add([OffsetSync(0, 0, 3), OffsetSync(5, 3, 2)]))
    >>> [syncs.translate(offset) for offset in (0, 2, 3, 4, 5, 6, 7, 100)]
    [0, 2, 3, 3, 3, 4, 5, 5]
    >>> syncs.position
    7
    """

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._blocks: list[Block] = []

    @property
    def position(self) -> int | None:
        """The offset after the last copied record. None if no record was copied."""
        return self._blocks[-1][-1].source_end if self._blocks else None

    def put(self, block: Block) -> None:
        """Add a block that lies after the others, or replaces the last one."""
        if self._starts and self._starts[-1] == block[0].source_offset:
            self._blocks[-1] = block
        else:
            self._starts.append(block[0].source_offset)
            self._blocks.append(block)

    def add(self, syncs: Sequence[OffsetSync]) -> Iterator[Block]:
        """Add the syncs of a transaction, and yield the blocks to write.

        A sync that continues the last one on both sides extends it, so that both have one record in the topic.
        """
        for start in range(0, len(syncs), _MAX_SYNCS):
            block = self._extended(tuple(syncs[start : start + _MAX_SYNCS]))
            self.put(block)
            yield block

    def translate(self, source_offset: int) -> int | None:
        """Return the offset in the target of the first copied record at or after an offset of the source.

        If the sync of this offset was dropped, the result is lower, so that no record is skipped. Returns None if no
        record was copied.
        """
        if not self._blocks:
            return None
        block = self._blocks[max(0, bisect_right(self._starts, source_offset) - 1)]
        number = max(0, bisect_right(block, (source_offset, 2**63, 0)) - 1)
        sync = block[number]
        return sync.target_offset + min(max(0, source_offset - sync.source_offset), sync.num_records)

    def thinned(self) -> list[int]:
        """Drop blocks if there are too many, and return their names."""
        if len(self._blocks) <= MAX_BLOCKS:
            return []
        half = len(self._blocks) // 2
        dropped = self._starts[1:half:2]
        del self._starts[1:half:2]
        del self._blocks[1:half:2]
        return dropped

    def clear(self) -> list[int]:
        """Drop all blocks, and return their names."""
        dropped = self._starts
        self._starts = []
        self._blocks = []
        return dropped

    def _extended(self, block: Block) -> Block:
        if not self._blocks or len(self._blocks[-1]) > 1 or len(block) > 1:
            return block
        last = self._blocks[-1][0]
        added = block[0]
        if (last.source_end, last.target_end) != (added.source_offset, added.target_offset):
            return block
        return (OffsetSync(last.source_offset, last.target_offset, last.num_records + added.num_records),)


def syncs_of(offsets: Integers, target_offset: int) -> list[OffsetSync]:
    """Return the syncs of records with these offsets, which have consecutive offsets in the target.

    Examples
    --------
    >>> [tuple(sync) for sync in syncs_of(np.array([4, 5, 8]), 100)]
    [(4, 100, 2), (8, 102, 1)]
    """
    gaps = np.flatnonzero(np.diff(offsets) != 1) + 1
    bounds = [0, *gaps.tolist(), len(offsets)]
    return [OffsetSync(int(offsets[start]), target_offset + start, stop - start) for start, stop in pairwise(bounds)]


def encode_key(source: TopicPartition, start: int) -> bytes:
    """Encode the key of a block.

    Examples
    --------
    >>> encode_key(TopicPartition("orders", 0), 17)
    b'["orders",0,17]'
    """
    return msgspec.json.encode((source.topic, source.partition, start))


def encode_block(block: Block) -> bytes:
    """Encode the value of a block: its offsets and counts, one after the other."""
    return msgspec.json.encode([number for sync in block for number in sync])


def read_syncs(log: Log, topic: str, partition: int) -> dict[TopicPartition, OffsetSyncs]:
    """Read the syncs of a task from its partition of the topic, by the partitions of the source.

    The task must have no open transaction: a producer with its transactional id ends it.

    Raises
    ------
    LogError
        If the end cannot be read in time.
    """
    own = TopicPartition(topic, partition)
    blocks: dict[TopicPartition, dict[int, Block]] = defaultdict(dict)
    with log.consumer() as consumer, log.admin() as admin:
        end = admin.end_offsets([own], committed_only=False)[own]
        consumer.assign([own])
        deadline = monotonic() + _TIMEOUT_S
        while consumer.position(own) < end:
            if monotonic() > deadline:
                raise LogError(f"The offset syncs of {own} cannot be read: their end did not come in {_TIMEOUT_S:g} s.")
            for batch in consumer.poll(_POLL_S):
                _take(blocks, batch.keys.to_pylist(), batch.values.to_pylist())
    return {source: _syncs_in_order(by_start.items()) for source, by_start in blocks.items()}


def _take(
    blocks: dict[TopicPartition, dict[int, Block]], keys: Iterable[bytes], values: Iterable[bytes | None]
) -> None:
    for key, value in zip(keys, values, strict=True):
        name, number, start = decode_json(key, tuple[str, int, int])
        source = TopicPartition(name, number)
        if value is None:
            blocks[source].pop(start, None)
        else:
            numbers = iter(decode_json(value, list[int]))
            blocks[source][start] = tuple(map(OffsetSync, numbers, numbers, numbers))


def _syncs_in_order(blocks: Iterable[tuple[int, Block]]) -> OffsetSyncs:
    syncs = OffsetSyncs()
    for _, block in sorted(blocks):
        syncs.put(block)
    return syncs
