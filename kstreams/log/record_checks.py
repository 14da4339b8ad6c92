"""Checks of records before they are sent, the same for every home of topics: types, times, headers, keys and sizes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kstreams.errors import LogError
from kstreams.kernel.batch import Batch
from kstreams.kernel.durations import Time, time_ms
from kstreams.record import Headers

BYTES_OR_NONE = frozenset({(bytes, bytes), (bytes, type(None)), (type(None), bytes), (type(None), type(None))})
"""The types that key and value of a record may have together."""

Sizes = np.ndarray[tuple[int], np.dtype[np.int64]]


class TopicFacts(NamedTuple):
    """The facts of a topic that a producer needs to choose partitions and to refuse records."""

    partitions: int
    max_bytes: int
    """`max.message.bytes`: the greatest size of one uncompressed record."""
    needs_key: bool
    """True if the topic is compacted."""


class RecordFormat(NamedTuple):
    """The format of records in a home: the greatest overhead in bytes, and the values that it does not support."""

    record_bytes: int
    """The overhead of a record, in addition to key, value and headers."""
    header_bytes: int
    """The overhead of a header, in addition to its name and value."""
    takes_time_zero: bool = True
    takes_zero_in_names: bool = True

    def record_size(self, key: bytes | None, value: bytes | None, headers: Headers) -> int:
        """Return the greatest uncompressed size of a batch with one record."""
        size = self.record_bytes + len(key or b"") + len(value or b"")
        return size + self.headers_size(headers) if headers else size

    def headers_size(self, headers: Headers) -> int:
        """Return the greatest size of the headers of a record."""
        return sum([self.header_bytes + len(name.encode()) + len(value or b"") for name, value in headers])


def check_record(topic: str, key: bytes | None, size: int, facts: TopicFacts) -> None:
    """Raise LogError for a record that is too large, or that has no key in a compacted topic."""
    if size > facts.max_bytes:
        raise too_large(topic, size, facts.max_bytes)
    if key is None and facts.needs_key:
        raise without_key(topic)


def refused_rows(batch: Batch, facts: TopicFacts, record_format: RecordFormat) -> dict[int, LogError]:
    """Return the rows of a batch that its topic refuses, each with the reason.

    Raises
    ------
    LogError
        If the columns of the batch differ in length or have a wrong type.

    Examples
    --------
    >>> from kstreams.kernel.batch import Row, TopicPartition
    >>> batch = Batch.of_rows(TopicPartition("table", 0), [Row(b"k", b"v", 1, ()), Row(None, b"v", 1, ())])
    >>> list(refused_rows(batch, TopicFacts(1, 1_000, needs_key=True), RecordFormat(0, 0)))
    [1]
    """
    place = str(batch.source)
    try:
        refused = _too_large_rows(batch, facts.max_bytes, record_format)
        if batch.headers is not None and not record_format.takes_zero_in_names:
            refused |= dict.fromkeys(_rows_with_zero_in_names(batch, batch.headers), zero_in_name(place))
        if facts.needs_key and batch.keys.null_count:
            refused |= dict.fromkeys(_null_rows(batch.keys), without_key(place))
        if not record_format.takes_time_zero:
            zero_times = np.flatnonzero(np.asarray(batch.timestamps.fill_null(1)) == 0)
            refused |= dict.fromkeys(zero_times.tolist(), time_zero(place))
        if batch.timestamps.null_count:
            refused |= dict.fromkeys(_null_rows(batch.timestamps), without_time(place))
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise LogError(f"A batch for {place} cannot be written: {error}") from error
    return refused


def check_batch(batch: Batch, facts: TopicFacts, record_format: RecordFormat) -> None:
    """Raise LogError for a batch with a row that its topic refuses."""
    for error in refused_rows(batch, facts, record_format).values():
        raise error


def checked_time(timestamp: Time, *, takes_zero: bool = True) -> int:
    """Return a time in milliseconds. Raises LogError if the value is no time, or the home cannot write it."""
    time = timestamp if type(timestamp) is int else _milliseconds(timestamp)
    if not -(2**63) <= time < 2**63:
        raise LogError(f"The timestamp {time} does not fit into 64 bits: give milliseconds since 1970.")
    if time == 0 and not takes_zero:
        raise time_zero(None)
    return time


def checked_headers(headers: Headers, *, takes_zero: bool = True) -> list[tuple[str, bytes | None]]:
    """Return headers with names as text and values as bytes. Raises LogError for a name that cannot be written."""
    return [(_checked_name(name, takes_zero), None if raw is None else bytes(raw)) for name, raw in headers]


def not_bytes(key: object, value: object) -> LogError:
    """Return the error for a key and a value that are not both bytes or None."""
    return LogError(f"Keys and values are bytes or None, not {type(key).__name__} and {type(value).__name__}.")


def too_large(place: str, size: int, max_bytes: int) -> LogError:
    """Return the error for a record that is larger than its topic allows."""
    return LogError(
        f"A record of {size} bytes is too large for {place}: raise its `max.message.bytes` ({max_bytes}) or send less "
        "at once."
    )


def without_key(place: str) -> LogError:
    """Return the error for a record without a key in a compacted topic."""
    return LogError(f"A record for {place} has no key, and the topic is compacted: give each record a key.")


def without_time(place: str) -> LogError:
    """Return the error for a record without a timestamp."""
    return LogError(f"A record for {place} cannot be written, as it has no timestamp: give it one (milliseconds).")


def time_zero(place: str | None) -> LogError:
    """Return the error for the timestamp 0, which means no timestamp to Kafka's client."""
    return LogError(
        f"A record{_for(place)} has the timestamp 0, which Kafka's client cannot write (it would write the time of "
        "sending): give the milliseconds since 1970, 1 at least."
    )


def zero_in_name(place: str | None) -> LogError:
    """Return the error for a header whose name Kafka's client would truncate."""
    return LogError(
        f"A record{_for(place)} has a header with the character 0 in its name, where Kafka's client cuts it off: leave "
        "it out."
    )


def _for(place: str | None) -> str:
    return "" if place is None else f" for {place}"


def _milliseconds(timestamp: Time) -> int:
    try:
        return time_ms(timestamp)
    except (TypeError, ValueError) as error:
        raise LogError(f"A record cannot be sent with this timestamp: {error}.") from None


def _checked_name(name: object, takes_zero: bool) -> str:
    text = str(name)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise LogError(f"The name {text!r} of a header cannot be written as UTF-8: {error.reason}.") from None
    if "\0" in text and not takes_zero:
        raise zero_in_name(None)
    return text


def _null_rows(column: pa.Array) -> list[int]:
    rows: list[int] = np.flatnonzero(column.is_null()).tolist()
    return rows


def _rows_with_zero_in_names(batch: Batch, headers: pa.Array) -> list[int]:
    names = headers.flatten().field("name")
    if not pc.any(pc.match_substring(names, "\0")).as_py():
        return []
    return [row for row, pairs in enumerate(batch.header_rows()) if any("\0" in name for name, _ in pairs)]


def _too_large_rows(batch: Batch, max_bytes: int, record_format: RecordFormat) -> dict[int, LogError]:
    # A batch that is no larger than one record may be has no row that is too large.
    total = record_format.record_bytes + batch.keys.nbytes + batch.values.nbytes
    if batch.headers is not None:
        total += batch.headers.nbytes + record_format.header_bytes * len(batch.headers.flatten())
    if total <= max_bytes:
        return {}
    sizes = record_format.record_bytes + _byte_lengths(batch.keys) + _byte_lengths(batch.values)
    if batch.headers is not None:
        sizes += _header_sizes(batch.headers, record_format.header_bytes)
    return {
        row: too_large(str(batch.source), sizes[row], max_bytes) for row in np.flatnonzero(sizes > max_bytes).tolist()
    }


def _byte_lengths(column: pa.Array) -> Sizes:
    lengths: Sizes = np.asarray(pc.binary_length(column).fill_null(0), dtype=np.int64)
    return lengths


def _header_sizes(headers: pa.Array, header_bytes: int) -> Sizes:
    """Return the greatest size of the headers of each row."""
    structs = headers.flatten()
    counts = np.asarray(pc.list_value_length(headers).fill_null(0), dtype=np.int64)
    lengths = _byte_lengths(structs.field("name")) + _byte_lengths(structs.field("value")) + header_bytes
    ends = np.cumsum(counts)
    totals = np.concatenate(([0], np.cumsum(lengths)))
    sizes: Sizes = totals[ends] - totals[ends - counts]
    return sizes
