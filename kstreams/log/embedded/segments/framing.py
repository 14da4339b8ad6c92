"""Cutting batches into frame bodies: small batches are joined, large ones are halved until they fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from kstreams.errors import LogError
from kstreams.kernel.batch import HEADERS_TYPE, Batch, TopicPartition
from kstreams.log.embedded.segments.frame import FrameBody, encode_body
from kstreams.log.embedded.segments.topic_settings import TopicSettings

_SMALL_ROWS = 1_000


class UnwritableError(LogError):
    """Records that can never be written: too large, without key or time, columns that do not fit together."""


def frame_bodies(
    batches: Sequence[Batch], compression: str, settings: TopicSettings, appended_ms: int | None = None
) -> list[FrameBody]:
    """The bodies of the frames that hold these batches of one partition, in order; at a time, where that is given.

    Raises
    ------
    UnwritableError
        When one record alone is larger than `max.message.bytes`, when one has no key and the topic is compacted, or
        when columns are not of the types or lengths of a batch.
    """
    source = batches[0].source
    if settings.compact and any(batch.keys.null_count for batch in batches):
        raise _without_key(source)
    try:
        parts = [part for batch in join_small(batches) for part in halve(batch, settings.max_message_bytes)]
        return [encode_body(part if appended_ms is None else at_time(part, appended_ms), compression) for part in parts]
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise UnwritableError(f"A batch for {source} cannot be written: {error}") from error


def at_time(batch: Batch, time_ms: int) -> Batch:
    """The batch with one time for all its records, which must have had some."""
    if batch.timestamps.null_count:
        return batch  # to be refused
    times = pa.array(np.full(len(batch.timestamps), time_ms, dtype=np.int64))
    return Batch(batch.source, batch.offsets, batch.keys, batch.values, times, batch.headers)


def join_small(batches: Sequence[Batch]) -> Iterator[Batch]:
    """Runs of small batches as one; large ones as they are, since joining copies."""
    run: list[Batch] = []
    for batch in batches:
        if run and (len(batch) >= _SMALL_ROWS or sum(map(len, run)) >= _SMALL_ROWS):
            yield join(run)
            run = []
        run.append(batch)
    if run:
        yield join(run)


def join(batches: Sequence[Batch]) -> Batch:
    """Batches of one partition, one after the other, as one.

    Examples
    --------
    >>> from kstreams.kernel.batch import Row, TopicPartition
    >>> one = Batch.of_rows(TopicPartition("t", 0), [Row(b"a", b"1", 5, ())])
    >>> len(join([one, one, one]))
    3
    """
    first = batches[0]
    if len(batches) == 1:
        return first
    headers = None
    if any(batch.headers is not None for batch in batches):
        headers = pa.concat_arrays([_headers(batch) for batch in batches])
    return Batch(
        first.source,
        np.concatenate([batch.offsets for batch in batches]),
        pa.concat_arrays([batch.keys for batch in batches]),
        pa.concat_arrays([batch.values for batch in batches]),
        pa.concat_arrays([batch.timestamps for batch in batches]),
        headers,
    )


def halve(batch: Batch, most_bytes: int) -> Iterator[Batch]:
    """The batch in parts of at most `most_bytes`."""
    if byte_size(batch) <= most_bytes:
        yield batch
        return
    if len(batch) == 1:
        raise _too_large(batch, most_bytes)
    middle = len(batch) // 2
    yield from halve(batch.slice(0, middle), most_bytes)
    yield from halve(batch.slice(middle, len(batch)), most_bytes)


def unwritable_rows(batch: Batch, settings: TopicSettings) -> Iterator[tuple[int, UnwritableError]]:
    """The rows of a batch that `frame_bodies` would refuse, each with the reason."""
    if settings.compact:
        yield from ((row, _without_key(batch.source)) for row in np.flatnonzero(batch.keys.is_null()).tolist())
    if batch.timestamps.null_count:
        no_time = UnwritableError(f"A record for {batch.source} has no timestamp: give it one (milliseconds).")
        yield from ((row, no_time) for row in np.flatnonzero(batch.timestamps.is_null()).tolist())
    yield from _too_large_rows(batch, settings.max_message_bytes)


def _too_large_rows(batch: Batch, most_bytes: int, first: int = 0) -> Iterator[tuple[int, UnwritableError]]:
    """The rows that exceed `most_bytes`, found by halves: a batch is often larger, one of its rows hardly ever."""
    if byte_size(batch) <= most_bytes:
        return
    if len(batch) == 1:
        yield first, _too_large(batch, most_bytes)
        return
    middle = len(batch) // 2
    yield from _too_large_rows(batch.slice(0, middle), most_bytes, first)
    yield from _too_large_rows(batch.slice(middle, len(batch)), most_bytes, first + middle)


def _without_key(source: TopicPartition) -> UnwritableError:
    return UnwritableError(f"{source} is compacted, so each of its records needs a key: one has none.")


def _too_large(record: Batch, most_bytes: int) -> UnwritableError:
    return UnwritableError(
        f"A record of {byte_size(record)} bytes is too large for {record.source}: raise its `max.message.bytes` "
        f"({most_bytes}) or send less at once."
    )


def byte_size(batch: Batch) -> int:
    """Bytes of a batch's columns."""
    size = int(batch.keys.nbytes + batch.values.nbytes + batch.timestamps.nbytes)
    return size if batch.headers is None else size + int(batch.headers.nbytes)


def _headers(batch: Batch) -> pa.Array:
    return pa.nulls(len(batch), HEADERS_TYPE) if batch.headers is None else batch.headers
