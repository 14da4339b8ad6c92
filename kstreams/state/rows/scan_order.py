"""The segments of window and session stores, and the order in which scans over several keys return their rows.

Both are those of Kafka Streams. Over RocksDB, rows are in segments of time, and within a segment ordered by key and
then time; in memory, by time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from kstreams.state.api import StoreBuilder

ScanOrder: TypeAlias = Callable[[bytes, int, int], tuple[int, bytes, int]]
"""Returns the sort key of a row from its serialized key, its time and the second number of its position."""


_SHORTEST_SEGMENT_MS = 60_000


def segment_ms(builder: StoreBuilder) -> int | None:
    """Return the length of a store's segments in milliseconds; None for a store in memory, which drops single rows.

    A store in memory whose windows are emitted on close has segments too: a window must be there until it is emitted.

    Examples
    --------
    >>> from kstreams.state import Stores
    >>> segment_ms(Stores.session("visits", 3_600_000, key=str, value=int))
    1800000
    """
    if (builder.store == "memory" and not builder.time_ordered) or builder.retention_ms is None:
        return None
    return max(builder.retention_ms // 2, _SHORTEST_SEGMENT_MS)


def scans_by_segment(builder: StoreBuilder) -> bool:
    """Return whether a scan of several keys goes segment by segment."""
    return builder.store == "rocksdb" and not builder.time_ordered


def scan_order(builder: StoreBuilder, *, latest_start_first: bool = False) -> ScanOrder:
    """Return the order of rows in scans over several keys. Sessions in memory may have the latest start first.

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
