"""Rows of a column family as RocksDB has them: how their keys begin, what the family stands for, and parts of scans."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from itertools import chain, repeat
from typing import Any

from kstreams.state.column_family import Chunk

DATA = b"\x01"
AFTER_DATA = b"\x02"
ABOUT = b"\x00about"
# rows of the parts of a scan: few for who wants no more
_FIRST_SIZES = (64, 256, 1_024, 4_096)
_SIZE = 8_192
_MARK = struct.Struct(">qq")  # changelog offset (-1: unknown), highest time observed


def mark(offset: int | None, observed_ms: int) -> bytes:
    """What a family stands for, as the value of `ABOUT`."""
    return _MARK.pack(-1 if offset is None else offset, observed_ms)


def marked(data: bytes | None) -> tuple[int | None, int]:
    """The changelog offset and the highest time of a `mark`; None and -1 without one."""
    offset, observed_ms = (-1, -1) if data is None else _MARK.unpack(data)
    return None if offset < 0 else offset, observed_ms


Part = tuple[list[bytes], list[bytes]]
"""Keys, each behind `DATA`, and values of some rows: two lists, since tuples would cost as much as reading them."""


def read(rows: Any, low: bytes, high: bytes | None, size: int) -> Part:
    """Up to `size` rows of an iterator from `low` on, before `high`.

    What cannot be read looks like the end: the iterator's status tells. A call more in each turn, as what both
    directions have in common, would take a fifth more time.
    """
    keys = list[bytes]()
    values = list[bytes]()
    end = _end(high)
    rows.seek(DATA + low)
    for _ in repeat(None, size):
        key = rows.key()
        if key is None or key >= end:
            break
        keys.append(key)
        values.append(rows.value())
        rows.next()
    rows.status()
    return keys, values


def read_back(rows: Any, low: bytes, high: bytes | None, size: int) -> Part:
    """`read` from before `high`, backwards, down to `low`."""
    keys = list[bytes]()
    values = list[bytes]()
    begin = DATA + low
    end = _end(high)
    rows.seek_for_prev(end)
    if rows.key() == end:
        rows.prev()
    for _ in repeat(None, size):
        key = rows.key()
        if key is None or key < begin:
            break
        keys.append(key)
        values.append(rows.value())
        rows.prev()
    rows.status()
    return keys, values


def in_chunks(
    take: Callable[[bytes, bytes | None, int], Part], low: bytes, high: bytes | None, reverse: bool
) -> Iterator[Chunk]:
    """[low, high) in adjoining parts, the last first when reversed; `take` reads so many rows of one."""
    for size in chain(_FIRST_SIZES, repeat(_SIZE)):
        keys, values = take(low, high, size)
        is_whole = len(keys) < size
        if reverse:
            edge = low if is_whole else _key(keys[-1])
            yield Chunk(edge, high, keys, values, len(DATA))
            high = edge
        else:
            after = high if is_whole else _key(keys[-1]) + b"\x00"
            yield Chunk(low, after, keys, values, len(DATA))
            low = after or low
        if is_whole:
            return


def read_one(rows: Any, key: bytes) -> bytes | None:
    """The value of a key, as RocksDB has it, by an iterator. What cannot be read looks absent: its status tells."""
    rows.seek(key)
    if rows.key() == key:
        value: bytes = rows.value()
        return value
    rows.status()
    return None


def first(part: Part) -> bytes | None:
    """The key of its first row; None without one."""
    keys, _ = part
    return _key(keys[0]) if keys else None


def _key(stored_key: bytes) -> bytes:
    return stored_key[len(DATA) :]


def _end(high: bytes | None) -> bytes:
    return AFTER_DATA if high is None else DATA + high
