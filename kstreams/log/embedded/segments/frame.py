"""Frames: a header with a checksum and one Arrow record batch. docs/reference/log-format.md describes each byte."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import google_crc32c
import numpy as np
import pyarrow as pa

from kstreams.errors import LogError
from kstreams.kernel.batch import HEADERS_TYPE, Batch, TopicPartition
from kstreams.log.record_checks import RecordFormat, TopicFacts, too_large, without_key

MAGIC = b"KSLF"
VERSION = 1
LAYOUT = struct.Struct("<4sHHIIqqqqqqqiIII")
HEADER_SIZE = LAYOUT.size
MAX_BODY = 1 << 30
_SMALL_ROWS = 1_000
RECORD_FORMAT = RecordFormat(record_bytes=44, header_bytes=11)
"""Upper bounds of `byte_size` beyond the bytes of a record: offsets and validity bits of Arrow's columns."""

HAS_HEADERS = 1
HAS_OFFSETS = 2
COMPRESSIONS = {"none": 0, "lz4": 4, "zstd": 8}
_COMPRESSION_NAMES = {flag: name for name, flag in COMPRESSIONS.items()}
_COLUMN_FLAGS = HAS_HEADERS | HAS_OFFSETS
_KNOWN_FLAGS = _COLUMN_FLAGS | 4 | 8

_COLUMNS = [pa.field("key", pa.binary()), pa.field("value", pa.binary()), pa.field("timestamp", pa.int64())]
_HEADERS = pa.field("headers", HEADERS_TYPE)
_OFFSETS = pa.field("offset_delta", pa.int64(), nullable=False)
SCHEMAS = {
    flags: pa.schema(
        _COLUMNS + ([_HEADERS] if flags & HAS_HEADERS else []) + ([_OFFSETS] if flags & HAS_OFFSETS else [])
    )
    for flags in range(4)
}


class BadFrameError(Exception):
    """Error for bytes that are no valid frame, with the reason. Callers add the file and the position."""


class NewerFormatError(Exception):
    """Error for a valid frame of a later format version."""


class FrameHeader(NamedTuple):
    """The fixed header of a frame."""

    flags: int
    body_size: int
    records: int
    base_offset: int
    next_offset: int
    min_timestamp: int
    max_timestamp: int
    producer_id: int
    transaction_id: int
    delete_horizon_ms: int
    epoch: int
    sequence: int
    body_crc: int

    @property
    def size(self) -> int:
        """The size of the frame in bytes."""
        return HEADER_SIZE + self.body_size

    @property
    def compression(self) -> str:
        """The compression of the body."""
        return _COMPRESSION_NAMES[self.flags & ~_COLUMN_FLAGS]


class FrameBody(NamedTuple):
    """The part of a frame that does not depend on its offset."""

    data: pa.Buffer
    crc: int
    flags: int
    records: int
    min_timestamp: int
    max_timestamp: int


class TransactionStamp(NamedTuple):
    """The transaction of a frame, zeros without one; and the sequence of the producer's append, 0 if unknown."""

    producer_id: int = 0
    transaction_id: int = 0
    epoch: int = 0
    sequence: int = 0


UNSTAMPED = TransactionStamp()


def encode_body(batch: Batch, compression: str = "none", *, keep_offsets_from: int | None = None) -> FrameBody:
    """Serialize a batch.

    Parameters
    ----------
    batch : Batch
    compression : {"none", "lz4", "zstd"}
    keep_offsets_from : int or None
        For compacted frames: the offset from which the stored deltas count.
    """
    columns = [batch.keys, batch.values, batch.timestamps]
    flags = 0
    if batch.headers is not None:
        columns.append(batch.headers)
        flags |= HAS_HEADERS
    if keep_offsets_from is not None:
        columns.append(pa.array(batch.offsets - keep_offsets_from))
        flags |= HAS_OFFSETS
    record_batch = _record_batch(columns, SCHEMAS[flags])
    data = _serialize(record_batch, compression)
    least, most = _span(record_batch.column(2))
    flags |= COMPRESSIONS[compression]
    return FrameBody(data, google_crc32c.value(data), flags, len(batch), least, most)


def encode_header(
    body: FrameBody,
    base_offset: int,
    stamp: TransactionStamp = UNSTAMPED,
    *,
    next_offset: int | None = None,
    delete_horizon_ms: int = 0,
) -> bytes:
    """Encode the header of a body at an offset."""
    raw = LAYOUT.pack(
        MAGIC, VERSION, body.flags, body.data.size, body.records,
        base_offset, base_offset + body.records if next_offset is None else next_offset,
        body.min_timestamp, body.max_timestamp,
        stamp.producer_id, stamp.transaction_id, delete_horizon_ms, stamp.epoch, stamp.sequence,
        body.crc, 0,
    )  # fmt: skip
    return raw[:-4] + int(google_crc32c.value(raw[:-4])).to_bytes(4, "little")


def decode_header(raw: bytes) -> FrameHeader:
    """Decode the header in the first bytes of `raw`, and check its checksum and sizes.

    Raises
    ------
    BadFrameError
        When the bytes are no valid header.
    NewerFormatError
        When the header is valid and of a later version.
    """
    if len(raw) < HEADER_SIZE:
        raise BadFrameError(f"{len(raw)} bytes where a header has {HEADER_SIZE}")
    magic, version, *fields, header_crc = LAYOUT.unpack_from(raw)
    if magic != MAGIC:
        raise BadFrameError("no frame starts here")
    if google_crc32c.value(raw[: HEADER_SIZE - 4]) != header_crc:
        raise BadFrameError("the header fails its checksum")
    if version > VERSION:
        raise NewerFormatError(f"frame format {version}, this kstreams reads up to {VERSION}")
    header = FrameHeader._make(fields)
    _check_sizes(header)
    return header


def decode_body(header: FrameHeader, body: pa.Buffer, source: TopicPartition) -> Batch:
    """Decode the records of a frame without a copy, after the checksum was compared."""
    if google_crc32c.value(body) != header.body_crc:
        raise BadFrameError("the body fails its checksum")
    try:
        records = pa.ipc.read_record_batch(body, SCHEMAS[header.flags & _COLUMN_FLAGS])
        records.validate()
    except (pa.ArrowException, OSError, EOFError) as error:
        raise BadFrameError(f"the body is no Arrow record batch of this schema ({error})") from None
    if records.num_rows != header.records:
        raise BadFrameError(f"{records.num_rows} records where the header declares {header.records}")
    headers = records.column(3) if header.flags & HAS_HEADERS else None
    offsets = _offsets(header, records)
    return Batch(source, offsets, records.column(0), records.column(1), records.column(2), headers)


def _check_sizes(header: FrameHeader) -> None:
    span = header.next_offset - header.base_offset
    if header.flags & ~_KNOWN_FLAGS or header.flags & ~_COLUMN_FLAGS not in _COMPRESSION_NAMES:
        raise BadFrameError(f"unknown flags {header.flags}")
    if not 0 < header.body_size <= MAX_BODY or header.body_size % 8:
        raise BadFrameError(f"a body of {header.body_size} bytes")
    if header.base_offset < 0 or span < header.records or (span > header.records and not header.flags & HAS_OFFSETS):
        raise BadFrameError(f"{header.records} records from offset {header.base_offset} to {header.next_offset}")


def _offsets(header: FrameHeader, records: pa.RecordBatch) -> np.typing.NDArray[np.int64]:
    if not header.flags & HAS_OFFSETS:
        return np.arange(header.base_offset, header.next_offset, dtype=np.int64)
    deltas: np.typing.NDArray[np.int64] = records.column(records.num_columns - 1).to_numpy()
    if len(deltas) and (deltas[0] < 0 or deltas[-1] >= header.next_offset - header.base_offset):
        raise BadFrameError("a record lies outside the offsets of its frame")
    return deltas + header.base_offset


def _record_batch(columns: list[pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    typed = [
        column if column.type == field.type else column.cast(field.type)
        for column, field in zip(columns, schema, strict=True)
    ]
    if typed[2].null_count:
        raise ValueError("a record has no timestamp: give every record one (milliseconds)")
    return pa.RecordBatch.from_arrays(typed, schema=schema)


def _serialize(records: pa.RecordBatch, compression: str) -> pa.Buffer:
    if compression == "none":
        return records.serialize()
    # A lone message cannot be compressed through pyarrow; a stream can, so its schema message is cut off.
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, records.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_batch(records)
        end = sink.tell()
    start = records.schema.serialize().size
    return sink.getvalue().slice(start, end - start)


def _span(timestamps: pa.Array) -> tuple[int, int]:
    if not len(timestamps):
        return 0, 0
    numbers = timestamps.to_numpy()
    return int(numbers.min()), int(numbers.max())


class UnwritableError(LogError):
    """Error for a batch that a topic never takes: a record without key or time, too large, or unfit columns."""


def frame_bodies(
    batches: Sequence[Batch], compression: str, facts: TopicFacts, appended_ms: int | None = None
) -> list[FrameBody]:
    """Encode batches of one partition, in order, as the bodies of frames.

    Small batches are joined, and batches larger than `max.message.bytes` are halved until they fit.

    Parameters
    ----------
    batches : sequence of Batch
    compression : {"none", "lz4", "zstd"}
    facts : TopicFacts
    appended_ms : int or None
        The timestamp of all records, for topics with `message.timestamp.type=LogAppendTime`.

    Raises
    ------
    UnwritableError
        When one record alone is larger than `max.message.bytes`, when one has no key and the topic is compacted, or
        when columns are not of the types or lengths of a batch.
    """
    source = batches[0].source
    if facts.needs_key and any(batch.keys.null_count for batch in batches):
        raise UnwritableError(str(without_key(str(source))))
    try:
        parts = [part for batch in join_small(batches) for part in halve(batch, facts.max_bytes)]
        return [encode_body(part if appended_ms is None else at_time(part, appended_ms), compression) for part in parts]
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise UnwritableError(f"A batch for {source} cannot be written: {error}") from error


def at_time(batch: Batch, time_ms: int) -> Batch:
    """Return the batch with one time for all its records; a batch without times stays as it is, to be refused."""
    if batch.timestamps.null_count:
        return batch
    times = pa.array(np.full(len(batch.timestamps), time_ms, dtype=np.int64))
    return Batch(batch.source, batch.offsets, batch.keys, batch.values, times, batch.headers)


def join_small(batches: Sequence[Batch]) -> Iterator[Batch]:
    """Join runs of small batches; large batches stay as they are, because joining copies."""
    run: list[Batch] = []
    for batch in batches:
        if run and (len(batch) >= _SMALL_ROWS or sum(map(len, run)) >= _SMALL_ROWS):
            yield join(run)
            run = []
        run.append(batch)
    if run:
        yield join(run)


def join(batches: Sequence[Batch]) -> Batch:
    """Concatenate batches of one partition.

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
        headers = pa.concat_arrays([batch.headers_or_nulls for batch in batches])
    return Batch(
        first.source,
        np.concatenate([batch.offsets for batch in batches]),
        pa.concat_arrays([batch.keys for batch in batches]),
        pa.concat_arrays([batch.values for batch in batches]),
        pa.concat_arrays([batch.timestamps for batch in batches]),
        headers,
    )


def halve(batch: Batch, max_bytes: int) -> Iterator[Batch]:
    """Cut a batch into parts of at most `max_bytes`; UnwritableError for a record that is larger alone."""
    if byte_size(batch) <= max_bytes:
        yield batch
        return
    if len(batch) == 1:
        raise UnwritableError(str(too_large(str(batch.source), byte_size(batch), max_bytes)))
    middle = len(batch) // 2
    yield from halve(batch.slice(0, middle), max_bytes)
    yield from halve(batch.slice(middle, len(batch)), max_bytes)


def byte_size(batch: Batch) -> int:
    """Return the bytes of a batch's columns."""
    size = int(batch.keys.nbytes + batch.values.nbytes + batch.timestamps.nbytes)
    return size if batch.headers is None else size + int(batch.headers.nbytes)
