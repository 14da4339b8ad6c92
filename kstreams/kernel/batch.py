"""`Batch`: consecutive records of one topic partition as Arrow columns. Rows are created on request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, compress, islice
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kstreams.record import Headers

Integers: TypeAlias = "np.typing.NDArray[np.int64]"

_HEADER = ["name", "value"]
HEADERS_TYPE = pa.list_(pa.struct([("name", pa.string()), ("value", pa.binary())]))


def headers_column(rows: Sequence[Headers]) -> pa.Array | None:
    """Return the headers of records as a column, or None if no record has headers."""
    if not any(rows):
        return None
    names, values = zip(*chain.from_iterable(rows), strict=True)
    structs = pa.StructArray.from_arrays([pa.array(names, pa.string()), pa.array(values, pa.binary())], _HEADER)
    return pa.ListArray.from_arrays(np.cumsum([0, *map(len, rows)], dtype=np.int32), structs)


def rows_of_headers(column: pa.Array) -> list[Headers]:
    """Return the headers of each row of a column of headers, as tuples of (name, value)."""
    structs = column.flatten()
    counts = pc.list_value_length(column).fill_null(0).to_pylist()
    headers = zip(structs.field("name").to_pylist(), structs.field("value").to_pylist(), strict=True)
    if counts.count(1) == len(counts):
        return list(zip(headers, strict=True))
    return [tuple(islice(headers, count)) for count in counts]


def last_headers(column: pa.Array, name: str) -> pa.Array:
    """Return the value of the last header of this name in each row, as bytes. Null if the row has no such header.

    Examples
    --------
    >>> rows = headers_column([[("n", b"1"), ("n", b"2")], [("m", b"3")]])
    >>> last_headers(rows, "n").to_pylist()
    [b'2', None]
    """
    structs = column.flatten()
    matches = pc.fill_null(pc.equal(structs.field("name"), name), False).to_numpy(zero_copy_only=False)
    positions = np.flatnonzero(matches)
    last = np.full(len(column), -1, dtype=np.int64)
    last[pc.list_parent_indices(column).to_numpy()[positions]] = (
        positions  # later headers of a row overwrite earlier ones
    )
    return structs.field("value").take(pa.array(last, mask=last < 0))


class TopicPartition(NamedTuple):
    """One partition of one topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Row(NamedTuple):
    """One record of a batch, still serialized."""

    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: Headers


class Batch:
    """Serialized records of one topic partition, in offset order.

    Parameters
    ----------
    source : TopicPartition
        The partition that the records were read from or will be written to.
    offsets : numpy int64 array, shape (n,)
        Ascending, with gaps after compaction. Arbitrary in a batch that is not written yet.
    keys, values : pyarrow binary array, length n
        Null is Kafka's null.
    timestamps : pyarrow int64 array, length n
        Milliseconds since the epoch.
    headers : pyarrow list<struct<name, value>> array, length n, or None
        None if no record has a header.
    written_at : numpy int64 array, shape (n,), or None
        For a repartition topic: the stream time (ms) of the writing task at each record
        (`WrittenTimes` in `kstreams/processor/task/outputs.py`). None for topics that other programs write too.
    ranks : numpy int64 array, shape (n,), or None
        The order of records with equal `places` (`RecordOrder` in `kstreams/processor/topology/record_order.py`). None
        where this order does not matter.

    Examples
    --------
    >>> batch = Batch.of_rows(TopicPartition("words", 0), [Row(b"a", b"1", 5, ())])
    >>> len(batch), next(batch.rows()).key
    (1, b'a')
    """

    __slots__ = (
        "decoded",
        "headers",
        "keys",
        "offsets",
        "ranks",
        "source",
        "start",
        "timestamps",
        "values",
        "whole",
        "written_at",
    )

    def __init__(
        self,
        source: TopicPartition,
        offsets: Integers,
        keys: pa.Array,
        values: pa.Array,
        timestamps: pa.Array,
        headers: pa.Array | None = None,
        *,
        written_at: Integers | None = None,
        ranks: Integers | None = None,
    ) -> None:
        self.source = source
        self.offsets = offsets
        self.keys = keys
        self.values = values
        self.timestamps = timestamps
        self.headers = headers
        self.written_at = written_at
        self.ranks = ranks
        self.whole: Batch | None = None
        """The batch that this one was sliced from, at row `start`. Its computed columns serve all slices."""
        self.start = 0
        self.decoded: tuple[list[Any], list[Any]] | None = None
        """Keys and values as objects, if they were needed before the records are processed."""

    @classmethod
    def of_rows(cls, source: TopicPartition, rows: Sequence[Row], base_offset: int = 0) -> Batch:
        """Return a batch of rows with consecutive offsets from `base_offset`."""
        return cls(
            source,
            np.arange(base_offset, base_offset + len(rows), dtype=np.int64),
            pa.array([row.key for row in rows], pa.binary()),
            pa.array([row.value for row in rows], pa.binary()),
            pa.array([row.timestamp for row in rows], pa.int64()),
            headers_column([row.headers for row in rows]),
        )

    def __len__(self) -> int:
        return len(self.offsets)

    def filter(self, selected: np.typing.NDArray[np.bool_]) -> Batch:
        """Return the rows for which the mask is true."""
        mask = pa.array(selected)
        headers = None if self.headers is None else self.headers.filter(mask)
        keys, values, timestamps = (column.filter(mask) for column in (self.keys, self.values, self.timestamps))
        written_at = None if self.written_at is None else self.written_at[selected]
        ranks = None if self.ranks is None else self.ranks[selected]
        part = Batch(
            self.source,
            self.offsets[selected],
            keys,
            values,
            timestamps,
            headers,
            written_at=written_at,
            ranks=ranks,
        )
        if self.decoded is not None:
            live_keys, live_values = self.decoded
            part.decoded = list(compress(live_keys, selected)), list(compress(live_values, selected))
        return part

    def slice(self, start: int, stop: int) -> Batch:
        """Return the rows from `start` up to `stop`, without a copy."""
        length = stop - start
        headers = None if self.headers is None else self.headers.slice(start, length)
        part = Batch(
            self.source,
            self.offsets[start:stop],
            self.keys.slice(start, length),
            self.values.slice(start, length),
            self.timestamps.slice(start, length),
            headers,
            written_at=None if self.written_at is None else self.written_at[start:stop],
            ranks=None if self.ranks is None else self.ranks[start:stop],
        )
        part.whole = self if self.whole is None else self.whole
        part.start = self.start + start
        return part

    def alone(self) -> Batch:
        """Return the same rows without a reference to the batch that this one was sliced from."""
        if self.whole is None:
            return self
        return self.at_times(self.timestamps)

    def at_times(self, timestamps: pa.Array) -> Batch:
        """Return the same rows with other timestamps."""
        return Batch(
            self.source,
            self.offsets,
            self.keys,
            self.values,
            timestamps,
            self.headers,
            written_at=self.written_at,
            ranks=self.ranks,
        )

    @property
    def places(self) -> Integers:
        """The times that order the rows among those of other partitions: `written_at`, else the timestamps."""
        times: Integers = self.timestamps.to_numpy()
        return times if self.written_at is None else self.written_at

    @property
    def headers_or_nulls(self) -> pa.Array:
        """The headers as a column, of nulls if no record has headers."""
        return pa.nulls(len(self), HEADERS_TYPE) if self.headers is None else self.headers

    def header_rows(self) -> list[Headers]:
        """Return the headers of each row, as tuples of (name, value)."""
        if self.headers is None:
            return [()] * len(self)
        return rows_of_headers(self.headers)

    def rows(self) -> Iterator[Row]:
        """Return the records one by one, still serialized."""
        return map(Row, self.keys.to_pylist(), self.values.to_pylist(), self.timestamps.to_pylist(), self.header_rows())

    def __repr__(self) -> str:
        span = f"{self.offsets[0]}..{self.offsets[-1]}" if len(self) else "empty"
        return f"Batch({self.source}, {span}, {len(self)} rows)"
