"""`ColumnFamily`: the persisted bytes of one store, in RocksDB or, without persistence, in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, Protocol

import pyarrow as pa

from kstreams.state.rows.byte_columns import cut


class ByteRows(NamedTuple):
    """Rows to persist: keys and values as bytes; a null value deletes."""

    keys: pa.Array
    values: pa.Array


class Statistic(NamedTuple):
    """The count of an event in a database since it was opened, and its microseconds if it is timed."""

    times: int
    total: int = 0
    highest: float = 0.0


class Chunk(NamedTuple):
    """A part of a scan: keys and values of all rows in [low, high), in order; if `high` is None, up to the end.

    `stored_keys` are the keys in the database. They have a prefix of `front` bytes, which is cheap to cut off a column.
    """

    low: bytes
    high: bytes | None
    stored_keys: list[bytes]
    values: list[bytes]
    front: int = 0

    @property
    def keys(self) -> list[bytes]:
        """The key of each row."""
        front = self.front
        return [key[front:] for key in self.stored_keys]

    def rows(self) -> Iterator[tuple[bytes, bytes]]:
        """Return the rows as (key, value)."""
        return zip(self.keys, self.values, strict=True)

    def columns(self, start: int = 0) -> ByteRows:
        """Return the rows as two columns; keys without their first `start` bytes."""
        keys = cut(pa.array(self.stored_keys, pa.binary()), self.front + start)
        return ByteRows(keys, pa.array(self.values, pa.binary()))


class ReadFamily(Protocol):
    """The rows of one store for reading, ordered by key as unsigned bytes.

    `frozen` is True if the rows never change.
    `durable` is False for a family without bytes: then the store above it has all rows.
    `offset` is the changelog offset up to which the rows are complete; None if it is not known.
    `observed_ms` is the highest time of the store at this offset, from which retention counts; -1 at first.
    """

    frozen: bool
    durable: bool
    offset: int | None
    observed_ms: int

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key; None if there is none."""
        ...

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        """Return the values of several keys, in their order."""
        ...

    def chunks(self, low: bytes, high: bytes | None, reverse: bool = False) -> Iterator[Chunk]:
        """Yield [low, high) in adjoining parts, the last part first if reversed; no resource is open between parts."""
        ...

    def first_from(self, low: bytes) -> bytes | None:
        """Return the first key that is not less than `low`; None if there is none."""
        ...

    def estimated_rows(self) -> int:
        """Return the approximate number of rows."""
        ...


class ColumnFamily(ReadFamily, Protocol):
    """The rows of one store, which its task reads and writes."""

    def write(self, rows: ByteRows, offset: int | None, observed_ms: int) -> None:
        """Write rows; write the changelog offset (None: unchanged) and the highest time as one with the last rows."""
        ...

    def restore(self, rows: ByteRows, offset: int, observed_ms: int) -> None:
        """Write many rows that are not read yet: they may be buffered until the next access."""
        ...

    def delete_range(self, low: bytes, high: bytes) -> None:
        """Delete [low, high)."""
        ...

    def estimated_bytes(self) -> int:
        """Return the approximate size in bytes; 0 if there is no file."""
        ...

    def properties(self, names: Iterable[str]) -> dict[str, int]:
        """Return the values of these properties of RocksDB, without their prefix. Empty for plain memory."""
        ...


def all_rows(family: ReadFamily, low: bytes = b"") -> ByteRows:
    """Return the rows from `low` on as two columns."""
    parts = [chunk.columns() for chunk in family.chunks(low, None)]
    return ByteRows(*map(pa.concat_arrays, zip(*parts, strict=True)))


def after_prefix(prefix: bytes) -> bytes | None:
    """Return the first key after all keys with a prefix; None if there is none.

    Examples
    --------
    >>> after_prefix(b"ab"), after_prefix(b"a\\xff"), after_prefix(b"")
    (b'ac', b'b', None)
    """
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None


class MemoryColumnFamily:
    """The column family of a store in memory: it has no bytes. After a restart, the store is restored."""

    frozen = False
    durable = False

    def __init__(self) -> None:
        self.offset: int | None = None
        self.observed_ms = -1

    def get(self, key: bytes) -> bytes | None:
        return None

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        return [None] * len(keys)

    def chunks(self, low: bytes, high: bytes | None, reverse: bool = False) -> Iterator[Chunk]:
        return iter((Chunk(low, high, [], []),))

    def first_from(self, low: bytes) -> bytes | None:
        return None

    def write(self, rows: ByteRows, offset: int | None, observed_ms: int) -> None:
        self.offset = self.offset if offset is None else offset
        self.observed_ms = observed_ms

    def restore(self, rows: ByteRows, offset: int, observed_ms: int) -> None:
        self.write(rows, offset, observed_ms)

    def delete_range(self, low: bytes, high: bytes) -> None:
        """Do nothing: there are no rows."""

    def estimated_rows(self) -> int:
        return 0

    def estimated_bytes(self) -> int:
        return 0

    def properties(self, names: Iterable[str]) -> dict[str, int]:
        return {}
