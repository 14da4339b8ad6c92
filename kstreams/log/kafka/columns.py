"""Messages of Kafka's client as Arrow columns, one batch per partition."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress, pairwise
from operator import itemgetter, ne
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import Message

from kstreams.batch import Batch, TopicPartition, headers_column

_TIME = itemgetter(1)


def batches_of(messages: Sequence[Any]) -> list[Batch]:
    """Messages without errors as batches: each partition that occurs has one, in the order of its offsets."""
    if len(set(map(Message.partition, messages))) == len(set(map(Message.topic, messages))) == 1:
        return [_batch(TopicPartition(messages[0].topic(), messages[0].partition()), messages)]
    sources = list(zip(map(Message.topic, messages), map(Message.partition, messages), strict=True))
    found: dict[tuple[str, int], list[Any]] = {}
    others = compress(range(1, len(sources)), map(ne, sources[1:], sources))
    for start, stop in pairwise((0, *others, len(sources))):
        found.setdefault(sources[start], []).extend(messages[start:stop])
    return [_batch(TopicPartition(*source), each) for source, each in found.items()]


def split_events(messages: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Messages that hold records, and those that hold an error or tell of an end."""
    if not any(map(Message.error, messages)):
        return list(messages), []
    errors = list(map(Message.error, messages))
    return list(compress(messages, [error is None for error in errors])), list(compress(messages, errors))


def _batch(source: TopicPartition, messages: Sequence[Any]) -> Batch:
    count = len(messages)
    headers = list(map(Message.headers, messages))
    return Batch(
        source,
        _offsets(messages),
        pa.array(list(map(Message.key, messages)), pa.binary()),
        pa.array(list(map(Message.value, messages)), pa.binary()),
        pa.array(np.fromiter(map(_TIME, map(Message.timestamp, messages)), np.int64, count)),
        headers_column([each or () for each in headers]) if any(headers) else None,
    )


def _offsets(messages: Sequence[Any]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """They ascend: from first to last mostly without a gap."""
    first = messages[0].offset()
    last = messages[-1].offset()
    count = len(messages)
    if last - first == count - 1:
        return np.arange(first, last + 1, dtype=np.int64)
    return np.fromiter(map(Message.offset, messages), np.int64, count)
