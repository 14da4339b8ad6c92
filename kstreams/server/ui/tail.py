"""`Tail`: the last records of a topic, page after page, each for whoever comes back with where it ended."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic
from typing import Annotated, Any

import msgspec

from kstreams.errors import RegistryError, SerdeError
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.log.api import Consumer, Log
from kstreams.log.topic_types import MIXED, types_of
from kstreams.record import Headers
from kstreams.serdes.base import SerdeUse
from kstreams.serdes.byte_kinds import AUTO, is_known
from kstreams.serdes.topic_decoders import Decode, topic_decoder

Record = dict[str, Any]
PartitionNumber = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
Offset = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Ends = dict[PartitionNumber, Offset]
_LONGEST = 16_384
_POLL_S = 0.2


class TailPage(msgspec.Struct):
    """Records, oldest first in each partition, and where the next page begins: an offset per partition."""

    records: list[Record]
    next: Ends
    skipped: int
    """How many were left out between the page before and this one."""


class Tail:
    """Reads the end of a topic.

    Parameters
    ----------
    log : Log
    topic : str
        As it is called in the log.
    most : int
        Records of a page.
    seconds : float
        For how long to read.
    uses : tuple of (SerdeUse or None)
        What keys and values are read with; None without a schema registry.
    """

    def __init__(
        self,
        log: Log,
        topic: str,
        most: int,
        seconds: float,
        uses: tuple[SerdeUse | None, SerdeUse | None] = (None, None),
    ) -> None:
        self._log = log
        self._topic = topic
        self._most = most
        self._until = monotonic() + seconds
        self._uses = uses

    def after(self, ends: Ends) -> TailPage:
        """The records behind these offsets; of what is behind none of them, the last ones.

        Raises
        ------
        UnknownTopicError
            When there is no such topic.
        """
        with self._log.admin() as admin:
            described = admin.describe_topic(self._topic)
        members = [TopicPartition(self._topic, number) for number in range(described.partitions)]
        types = types_of(described.config)
        readers = _reader(types.key, self._uses[0]), _reader(types.value, self._uses[1])
        with self._log.consumer() as consumer:
            consumer.assign(members)
            skipped = self._begin(consumer, members, ends)
            records = [record for batch in self._batches(consumer, members) for record in _records(batch, readers)]
            return TailPage(records, {source.partition: consumer.position(source) for source in members}, skipped)

    def _begin(self, consumer: Consumer, members: list[TopicPartition], ends: Ends) -> int:
        """Go to where the page begins; how many records are left out before it."""
        consumer.seek_to_beginning(members)
        first = {member: consumer.position(member) for member in members}
        last = consumer.end_offsets(members)
        share = max(1, self._most // len(members))
        skipped = 0
        for member in members:
            earliest = max(first[member], last[member] - share)
            start = ends.get(member.partition, earliest)
            begin = max(earliest, min(start, last[member]))
            skipped += begin - start if start < begin else 0
            consumer.seek(member, begin)
        return skipped

    def _batches(self, consumer: Consumer, members: list[TopicPartition]) -> Iterator[Batch]:
        """Batches up to where the topic ended when it began, as far as they come in time."""
        ends = consumer.end_offsets(members)
        remaining_records = self._most
        while remaining_records > 0 and monotonic() < self._until:
            if all(consumer.position(member) >= end for member, end in ends.items()):
                return
            for batch in consumer.poll(_POLL_S, remaining_records):
                remaining_records -= len(batch.offsets)
                yield batch


def _reader(noted: str | None, use: SerdeUse | None) -> Decode:
    """Reads bytes by the type that the topic notes; what is not of it is guessed.

    A registry that is away is asked once a page.
    """
    guess = topic_decoder(AUTO, use)
    plain = topic_decoder(AUTO, None)
    read = guess if noted in (None, MIXED) or not is_known(noted or "") else topic_decoder(noted or AUTO, use)

    def value(data: bytes | None, headers: Headers) -> Any:
        nonlocal read, guess
        if data is not None and len(data) > _LONGEST:
            return {"bytes": len(data)}
        try:
            return read(data, headers)
        except SerdeError:
            return guess(data, headers)
        except RegistryError:
            read = guess = plain
            return plain(data, headers)

    return value


def _records(batch: Batch, readers: tuple[Decode, Decode]) -> Iterator[Record]:
    read_key, read_value = readers
    for offset, row in zip(batch.offsets.tolist(), batch.rows(), strict=True):
        yield {
            "partition": batch.source.partition,
            "offset": offset,
            "timestamp": row.timestamp,
            "key": read_key(row.key, row.headers),
            "value": read_value(row.value, row.headers),
        }
