"""`LiveBudget`: how much memory the live objects of all stores of a process may take, and who has to give some back."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from kstreams.config import MemoryShares

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class StateLimits:
    """Ceilings for the state of one process, in bytes.

    Parameters
    ----------
    live_max_bytes : int
        Live objects of stores: beyond it, entries that RocksDB holds too are evicted and read back.
    block_cache_bytes : int
        RocksDB's block cache, shared by all tasks.
    write_buffer_bytes : int
        RocksDB's memtables, shared by all tasks.
    restore_bytes : int
        Rows of a changelog that are gathered before they are written.
    load_max_bytes : int or None
        Rows that a store loads at once when it is first read, if it has no more; else it reads key by key. None: as
        many as live objects may take.
    """

    live_max_bytes: int = 256 * MIB
    block_cache_bytes: int = 64 * MIB
    write_buffer_bytes: int = 64 * MIB
    restore_bytes: int = 64 * MIB
    load_max_bytes: int | None = None

    @classmethod
    def of(cls, shares: MemoryShares) -> StateLimits:
        """The limits of the stores of a process."""
        return cls(shares.live, shares.block_cache, shares.write_buffers, shares.uncommitted)


class LiveBudget:
    """Shares a limit among stores: below it nobody gives way; beyond it, who has more than an equal share.

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
        """The same budget for stores each of which loads no more bytes at once; None: as many as there is room for."""
        other = LiveBudget(self._limit)
        other._used = self._used
        other._lock = self._lock
        other._load_limit = self._limit if at_most is None else at_most
        return other

    @property
    def loads_whole(self) -> bool:
        """Whether a store may load all of its rows at all."""
        return self._load_limit > 0

    def excess(self, store: object, used: int) -> int:
        """Note what a store uses and answer how many bytes it should give back."""
        with self._lock:
            self._used[store] = used
            over = sum(self._used.values()) - self._limit
            share = self._limit // len(self._used)
        return max(0, min(over, used - share))

    def may_load(self, store: object, rows: int) -> bool:
        """Whether a store may load all of its rows, `rows` bytes, at once."""
        with self._lock:
            used_by_others = sum(used for other, used in self._used.items() if other != store)
        return rows <= self._load_limit and used_by_others + rows <= self._limit

    def forget(self, store: object) -> None:
        """A store was closed."""
        with self._lock:
            self._used.pop(store, None)
