"""Messages of Kafka's client as Arrow columns, one batch per partition."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress, groupby
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import Message

from kstreams.batch import Batch, TopicPartition, headers_column

_TIME = itemgetter(1)


def batches_of(messages: Sequence[Any]) -> list[Batch]:
    """Messages without errors as batches: each partition that occurs has one, in the order of its offsets."""
    sources = list(zip(map(Message.topic, messages), map(Message.partition, messages), strict=True))
    first = sources[0]
    if sources.count(first) == len(sources):
        return [_batch(TopicPartition(*first), messages)]
    found: dict[tuple[str, int], list[Any]] = {}
    for source, run in groupby(zip(sources, messages, strict=True), itemgetter(0)):
        found.setdefault(source, []).extend(message for _, message in run)
    return [_batch(TopicPartition(*source), each) for source, each in found.items()]


def split_events(messages: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Messages that hold records, and those that hold an error or tell of an end."""
    errors = list(map(Message.error, messages))
    if not any(errors):
        return list(messages), []
    return list(compress(messages, [error is None for error in errors])), list(compress(messages, errors))


def _batch(source: TopicPartition, messages: Sequence[Any]) -> Batch:
    headers = list(map(Message.headers, messages))
    return Batch(
        source,
        np.fromiter(map(Message.offset, messages), np.int64, len(messages)),
        pa.array(list(map(Message.key, messages)), pa.binary()),
        pa.array(list(map(Message.value, messages)), pa.binary()),
        pa.array(list(map(_TIME, map(Message.timestamp, messages))), pa.int64()),
        headers_column([tuple(each or ()) for each in headers]) if any(headers) else None,
    )
