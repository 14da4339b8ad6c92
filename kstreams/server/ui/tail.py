"""`Tail`: the last records of a topic in pages. A client asks for the next page with the end offsets of the last."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic
from typing import Annotated, Any

import msgspec

from kstreams.errors import RegistryError, SerdeError
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.log.api import Consumer, Log
from kstreams.log.settings import QUOTA_DELAYS
from kstreams.log.topic_types import MIXED, types_of
from kstreams.record import Headers
from kstreams.serdes.base import SerdeUse
from kstreams.serdes.byte_kinds import AUTO, is_known
from kstreams.serdes.topic_decoders import Decode, topic_decoder

Record = dict[str, Any]
PartitionNumber = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
Offset = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Ends = dict[PartitionNumber, Offset]
_MAX_BYTES = 16_384
"""The size of the largest key or value whose content is shown."""
_POLL_S = 0.2


class TailPage(msgspec.Struct):
    """Records, the oldest first in each partition, and the offset per partition at which the next page begins."""

    records: list[Record]
    next: Ends
    skipped: int
    """The number of records between the last page and this one that no page has."""


class Tail:
    """A reader of the end of a topic.

    Parameters
    ----------
    log : Log
    topic : str
        The name of the topic in the log.
    limit : int
        The greatest number of records of a page.
    seconds : float
        The longest time to read.
    uses : tuple of (SerdeUse or None)
        The contexts for the serdes of keys and values. None without a schema registry.
    """

    def __init__(
        self,
        log: Log,
        topic: str,
        limit: int,
        seconds: float,
        uses: tuple[SerdeUse | None, SerdeUse | None] = (None, None),
    ) -> None:
        self._log = log
        self._topic = topic
        self._limit = limit
        self._deadline = monotonic() + seconds
        self._uses = uses

    def after(self, ends: Ends) -> TailPage:
        """Return the records from offsets on. Of partitions without an offset, return the last records.

        Raises
        ------
        UnknownTopicError
            If the topic does not exist.
        """
        with self._log.admin() as admin:
            description = admin.describe_topic(self._topic)
        partitions = [TopicPartition(self._topic, number) for number in range(description.partitions)]
        types = types_of(description.config)
        decoders = _decoder(types.key, self._uses[0]), _decoder(types.value, self._uses[1])
        with self._log.consumer({QUOTA_DELAYS: False}) as consumer:
            consumer.assign(partitions)
            skipped = self._seek(consumer, partitions, ends)
            records = [record for batch in self._batches(consumer, partitions) for record in _records(batch, decoders)]
            next_offsets = {partition.partition: consumer.position(partition) for partition in partitions}
            return TailPage(records, next_offsets, skipped)

    def _seek(self, consumer: Consumer, partitions: list[TopicPartition], ends: Ends) -> int:
        """Seek to the first record of the page, and return the number of skipped records."""
        consumer.seek_to_beginning(partitions)
        beginning_offsets = {partition: consumer.position(partition) for partition in partitions}
        end_offsets = consumer.end_offsets(partitions)
        share = max(1, self._limit // len(partitions))
        skipped = 0
        for partition in partitions:
            end = end_offsets[partition]
            earliest = max(beginning_offsets[partition], end - share)
            requested = ends.get(partition.partition, earliest)
            begin = max(earliest, min(requested, end))
            skipped += max(0, begin - requested)
            consumer.seek(partition, begin)
        return skipped

    def _batches(self, consumer: Consumer, partitions: list[TopicPartition]) -> Iterator[Batch]:
        """Yield batches up to the present end of the topic, as long as there is time."""
        end_offsets = consumer.end_offsets(partitions)
        remaining_records = self._limit
        while remaining_records > 0 and monotonic() < self._deadline:
            if all(consumer.position(partition) >= end for partition, end in end_offsets.items()):
                return
            for batch in consumer.poll(_POLL_S, remaining_records):
                remaining_records -= len(batch.offsets)
                yield batch


def _decoder(declared_type: str | None, use: SerdeUse | None) -> Decode:
    """Return a function that decodes bytes by the declared type of a topic. It guesses the type of other bytes.

    If the registry does not answer, it is not asked again for the page.
    """
    decode_guessed = topic_decoder(AUTO, use)
    decode_without_registry = topic_decoder(AUTO, None)
    is_declared = declared_type not in (None, MIXED) and is_known(declared_type or "")
    decode_declared = topic_decoder(declared_type or AUTO, use) if is_declared else decode_guessed

    def decode(data: bytes | None, headers: Headers) -> Any:
        nonlocal decode_declared, decode_guessed
        if data is not None and len(data) > _MAX_BYTES:
            return {"bytes": len(data)}
        try:
            return decode_declared(data, headers)
        except SerdeError:
            return decode_guessed(data, headers)
        except RegistryError:
            decode_declared = decode_guessed = decode_without_registry
            return decode_without_registry(data, headers)

    return decode


def _records(batch: Batch, decoders: tuple[Decode, Decode]) -> Iterator[Record]:
    decode_key, decode_value = decoders
    for offset, row in zip(batch.offsets.tolist(), batch.rows(), strict=True):
        yield {
            "partition": batch.source.partition,
            "offset": offset,
            "timestamp": row.timestamp,
            "key": decode_key(row.key, row.headers),
            "value": decode_value(row.value, row.headers),
        }
