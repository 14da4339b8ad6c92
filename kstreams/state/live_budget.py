"""`LiveBudget`: the memory limit of the live objects in all stores of a process, and how stores share it."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from kstreams.config import MemoryShares

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class StateLimits:
    """The memory limits of the state of one process, in bytes.

    Parameters
    ----------
    live_max_bytes : int
        The limit of live objects in stores. Above it, stores evict entries that are in RocksDB too, and read them again
        when they need them.
    block_cache_bytes : int
        The size of RocksDB's block cache, which all tasks share.
    write_buffer_bytes : int
        The size of RocksDB's memtables, which all tasks share.
    restore_bytes : int
        The size of changelog rows that are buffered before they are written.
    load_max_bytes : int or None
        A store with at most so many bytes of rows loads all of them when it is first read; others read key by key.
        None stands for `live_max_bytes`.
    """

    live_max_bytes: int = 256 * MIB
    block_cache_bytes: int = 64 * MIB
    write_buffer_bytes: int = 64 * MIB
    restore_bytes: int = 64 * MIB
    load_max_bytes: int | None = None

    @classmethod
    def of(cls, shares: MemoryShares) -> StateLimits:
        """Return the limits of the stores of a process."""
        return cls(shares.live, shares.block_cache, shares.write_buffers, shares.uncommitted)


class LiveBudget:
    """Shares a limit among stores. Above the limit, stores that have more than an equal share evict entries.

    Examples
    --------
    >>> budget = LiveBudget(100)
    >>> budget.excess("small", 30), budget.excess("large", 90)
    (0, 20)
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._load_limit = limit
        self._used = dict[Any, int]()
        self._lock = threading.Lock()

    def loading(self, at_most: int | None) -> LiveBudget:
        """Return this budget for stores that load at most `at_most` bytes at once; None stands for the limit."""
        other = LiveBudget(self._limit)
        other._used = self._used
        other._lock = self._lock
        other._load_limit = self._limit if at_most is None else at_most
        return other

    @property
    def loads_whole(self) -> bool:
        """True if a store may load all of its rows at once."""
        return self._load_limit > 0

    def excess(self, store: object, used: int) -> int:
        """Note the bytes that a store uses; return how many of them it has to evict."""
        with self._lock:
            self._used[store] = used
            over = sum(self._used.values()) - self._limit
            share = self._limit // len(self._used)
        return max(0, min(over, used - share))

    def may_load(self, store: object, rows: int) -> bool:
        """Return whether a store may load all of its rows, which have `rows` bytes, at once."""
        with self._lock:
            used_by_others = sum(used for other, used in self._used.items() if other != store)
        return rows <= self._load_limit and used_by_others + rows <= self._limit

    def forget(self, store: object) -> None:
        """Note that a store is closed."""
        with self._lock:
            self._used.pop(store, None)
