"""In which order scans over several keys give the rows of window and session stores: as Kafka Streams' stores do.

Over RocksDB, rows are in segments of time, and within a segment ordered by key and then time; in memory, by time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from kstreams.state.api import StoreBuilder
from kstreams.state.kinds.rows_by_key_store import segment_ms

ScanOrder: TypeAlias = Callable[[bytes, int, int], tuple[int, bytes, int]]
"""Of a serialized key, a time and the second number of a place, by what the row is sorted."""


def scans_by_segment(builder: StoreBuilder) -> bool:
    """Whether a store scans several keys segment by segment."""
    return builder.store == "rocksdb" and not builder.time_ordered


def scan_order(builder: StoreBuilder, *, latest_start_first: bool = False) -> ScanOrder:
    """By what the rows of a store are sorted in scans over several keys; sessions in memory by the latest start first.

    Examples
    --------
    >>> from kstreams.state import Stores
    >>> in_order = scan_order(Stores.window("w", 100, 10, key=str, value=int))
    >>> sorted([in_order(b"b", 0, 0), in_order(b"a", 60_000, 0), in_order(b"a", 5, 0)])[1][1][:1]
    b'b'
    """
    length_ms = segment_ms(builder)
    if scans_by_segment(builder) and length_ms is not None:
        return lambda key, time, second: (time // length_ms, key + _bytes_of(time) + _bytes_of(second), 0)
    if latest_start_first:
        return lambda key, time, second: (time, key, -second)
    return lambda key, time, second: (time, key, second)


def _bytes_of(number: int) -> bytes:
    return number.to_bytes(8, "big")
