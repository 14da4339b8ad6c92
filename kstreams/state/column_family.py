"""`ColumnFamily`: the persisted bytes of one store; RocksDB has one kind, plain memory the other."""

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
    """How often something happened in a database since it was opened; of what is timed also microseconds."""

    times: int
    total: int = 0
    highest: float = 0.0


class Chunk(NamedTuple):
    """A part of a scan: keys and values of all rows in [low, high), in order; high None = open end.

    `kept_keys` are the keys as the database keeps them, with `front` bytes before each: cut off as a column, they cost
    next to nothing.
    """

    low: bytes
    high: bytes | None
    kept_keys: list[bytes]
    values: list[bytes]
    front: int = 0

    @property
    def keys(self) -> list[bytes]:
        """The key of each row."""
        front = self.front
        return [key[front:] for key in self.kept_keys]

    def rows(self) -> Iterator[tuple[bytes, bytes]]:
        """The rows, each as key and value."""
        return zip(self.keys, self.values, strict=True)

    def columns(self, start: int = 0) -> ByteRows:
        """The rows as two columns; of the keys what stands from `start` on."""
        keys = cut(pa.array(self.kept_keys, pa.binary()), self.front + start)
        return ByteRows(keys, pa.array(self.values, pa.binary()))


class ReadFamily(Protocol):
    """The bytes of one store, ordered by key as unsigned bytes, and what they stand for, to be read.

    `frozen` says that the bytes stay as they are, so that nothing above them changes either.
    `durable` is False for a family that keeps no bytes: the store above it is then all there is.
    `offset` is the changelog offset up to which the bytes are complete; None when it is not known.
    `observed_ms` is the highest time the store had seen then, -1 at first: what retention counts from.
    """

    frozen: bool
    durable: bool
    offset: int | None
    observed_ms: int

    def get(self, key: bytes) -> bytes | None:
        """The value of a key."""
        ...

    def get_many(self, keys: list[bytes]) -> list[bytes | None]:
        """The values of many keys, in their order."""
        ...

    def chunks(self, low: bytes, high: bytes | None, reverse: bool = False) -> Iterator[Chunk]:
        """[low, high) in adjoining parts, the last first when reversed; no resource stays open between two."""
        ...

    def first_from(self, low: bytes) -> bytes | None:
        """The first key at or behind `low`."""
        ...

    def estimated_rows(self) -> int:
        """Roughly how many rows there are."""
        ...


class ColumnFamily(ReadFamily, Protocol):
    """The bytes of one store, which its task reads and writes."""

    def write(self, rows: ByteRows, offset: int | None, observed_ms: int) -> None:
        """Write rows and, in the same atomic batch as the last of them, what they stand for (None: as before)."""
        ...

    def restore(self, rows: ByteRows, offset: int, observed_ms: int) -> None:
        """As `write`, for many rows that nobody reads yet: they may be gathered until something else is asked."""
        ...

    def delete_range(self, low: bytes, high: bytes) -> None:
        """Forget [low, high)."""
        ...

    def estimated_bytes(self) -> int:
        """Roughly how many bytes they take; 0 where there is no file."""
        ...

    def properties(self, names: Iterable[str]) -> dict[str, int]:
        """Return the values of these properties of RocksDB, without their prefix. Empty for plain memory."""
        ...


def all_rows(family: ReadFamily, low: bytes = b"") -> ByteRows:
    """The rows from `low` on as two columns."""
    parts = [chunk.columns() for chunk in family.chunks(low, None)]
    return ByteRows(*map(pa.concat_arrays, zip(*parts, strict=True)))


def after_prefix(prefix: bytes) -> bytes | None:
    """The first key behind all that begin with `prefix`; None when there is none.

    Examples
    --------
    >>> after_prefix(b"ab"), after_prefix(b"a\\xff"), after_prefix(b"")
    (b'ac', b'b', None)
    """
    stem = prefix.rstrip(b"\xff")
    return stem[:-1] + bytes([stem[-1] + 1]) if stem else None


class MemoryColumnFamily:
    """Nothing is persisted: after a restart the changelog is all there is."""

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
        """Nothing to forget."""

    def estimated_rows(self) -> int:
        return 0

    def estimated_bytes(self) -> int:
        return 0

    def properties(self, names: Iterable[str]) -> dict[str, int]:
        return {}
