"""Which records Kafka never takes, known before they are sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kstreams.errors import LogError
from kstreams.kernel.batch import Batch
from kstreams.kernel.durations import Time
from kstreams.log.kafka.connection import TopicFacts
from kstreams.log.record_parts import checked_time
from kstreams.record import Headers

# what Kafka's format adds, at most
_BATCH_BYTES = 61
_ROW_BYTES = 30
_HEADER_BYTES = 10


def nonzero_time(timestamp: Time) -> int:
    """A time that can be written: Kafka's client takes 0 for no time, and would write that of sending."""
    time = checked_time(timestamp)
    if time == 0:
        raise no_time_zero("A record")
    return time


def no_time_zero(what: str) -> LogError:
    """The error for a record of the very first millisecond."""
    return LogError(
        f"{what} has the timestamp 0, which Kafka's client cannot write (it would write the time of sending): give the "
        "milliseconds since 1970, 1 at least."
    )


def whole_names(headers: Headers) -> Headers:
    """Headers whose names Kafka's client writes as they are; LogError for others."""
    if any("\0" in name for name, _ in headers):
        raise no_whole_name("A record")
    return headers


def no_whole_name(what: str) -> LogError:
    """The error for a name that would be cut off."""
    return LogError(
        f"{what} has a header with the character 0 in its name, where Kafka's client cuts it off: leave it out."
    )


def row_bytes(key: bytes | None, value: bytes | None, headers: Any) -> int:
    """Bytes of a record that is sent alone, at most and uncompressed."""
    size = _BATCH_BYTES + _ROW_BYTES + (len(key) if key else 0) + (len(value) if value else 0)
    return size + sum(len(name.encode()) + len(raw or b"") + _HEADER_BYTES for name, raw in headers or ())


def unwritable_rows(batch: Batch, facts: TopicFacts) -> Iterator[tuple[int, LogError]]:
    """The rows of a batch that its topic would never take, each with the reason."""
    if batch.timestamps.null_count:
        without = LogError(f"A record for {batch.source} has no timestamp: give it one (milliseconds).")
        yield from ((row, without) for row in np.flatnonzero(batch.timestamps.is_null()).tolist())
    zero = np.asarray(batch.timestamps.fill_null(1)) == 0
    if zero.any():
        error = no_time_zero(f"A record for {batch.source}")
        yield from ((row, error) for row in np.flatnonzero(zero).tolist())
    if facts.needs_key and batch.keys.null_count:
        keyless = LogError(f"{batch.source} is compacted, so each of its records needs a key: one has none.")
        yield from ((row, keyless) for row in np.flatnonzero(batch.keys.is_null()).tolist())
    if batch.headers is not None and pc.any(pc.match_substring(batch.headers.flatten().field("name"), "\0")).as_py():
        cut = no_whole_name(f"A record for {batch.source}")
        yield from ((at, cut) for at, row in enumerate(batch.header_rows()) if any("\0" in name for name, _ in row))
    at_most = batch.keys.nbytes + batch.values.nbytes + _BATCH_BYTES + _ROW_BYTES  # of any row
    if batch.headers is not None:
        at_most += batch.headers.nbytes + _HEADER_BYTES * len(batch.headers.flatten())
    if at_most > facts.most_bytes:
        yield from _too_large_rows(batch, facts.most_bytes)


def _too_large_rows(batch: Batch, most_bytes: int) -> Iterator[tuple[int, LogError]]:
    sizes = np.full(len(batch), _BATCH_BYTES + _ROW_BYTES, dtype=np.int64)
    for column in (batch.keys, batch.values):
        sizes += np.asarray(pc.binary_length(column).fill_null(0), dtype=np.int64)
    if batch.headers is not None:
        sizes += _header_bytes(batch.headers)
    for row in np.flatnonzero(sizes > most_bytes).tolist():
        yield (
            row,
            LogError(
                f"A record of {sizes[row]} bytes is too large for {batch.source}: raise its `max.message.bytes` "
                f"({most_bytes}) or send less at once."
            ),
        )


def _header_bytes(headers: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Of the headers of every row, at most."""
    structs = headers.flatten()
    counts = np.asarray(pc.list_value_length(headers).fill_null(0), dtype=np.int64)
    names, values = (pc.binary_length(structs.field(name)).fill_null(0) for name in ("name", "value"))
    ends = np.cumsum(counts)
    so_far = np.concatenate(
        ([0], np.cumsum(np.asarray(names, np.int64) + np.asarray(values, np.int64) + _HEADER_BYTES))
    )
    sizes: np.ndarray[tuple[int], np.dtype[np.int64]] = so_far[ends] - so_far[ends - counts]
    return sizes
