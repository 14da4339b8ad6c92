"""`WindowReads`: the reads of window stores: each is one of two reads with a range of starts and a direction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from kstreams.record import Window, Windowed
from kstreams.state.api import StoreBuilder
from kstreams.state.codecs import ALL_KEYS, KeyRange
from kstreams.state.column_family import ColumnFamily
from kstreams.state.kinds.store_with_retention import StoreWithRetention
from kstreams.state.live_budget import LiveBudget

WindowRows: TypeAlias = Iterator[tuple[Windowed, Any]]
"""Windows of any keys, with their values."""


class WindowReads(StoreWithRetention, ABC):
    """The reads of a `WindowStore` over several windows; the kinds differ in where their rows lie."""

    def __init__(self, builder: StoreBuilder, family: ColumnFamily, budget: LiveBudget) -> None:
        super().__init__(builder, family, budget)
        self._size_ms = builder.window_size_ms or 0

    @abstractmethod
    def _windows_of(self, key: object, from_ms: int, to_ms: int, *, backward: bool) -> Iterable[tuple[int, Any]]:
        """Return (start, value) of a key's windows that have not expired, with from_ms <= start <= to_ms, by start.

        Values of one start are in the order of their puts. `backward` reverses the order.
        """

    @abstractmethod
    def _windows_between(self, keys: KeyRange, from_ms: int, to_ms: int, *, backward: bool) -> WindowRows:
        """Return the windows with from_ms <= start <= to_ms, expired ones too, in the order of `scan_order`."""

    def fetch(self, key: Any, from_ms: int, to_ms: int) -> Iterator[tuple[int, Any]]:
        """(start, value) of a key with from <= start <= to, ascending; values of one start in order of their puts."""
        return iter(self._windows_of(key, from_ms, to_ms, backward=False))

    def backward_fetch(self, key: Any, from_ms: int, to_ms: int) -> Iterator[tuple[int, Any]]:
        """`fetch` in the opposite order."""
        return iter(self._windows_of(key, from_ms, to_ms, backward=True))

    def fetch_all(self, from_ms: int, to_ms: int) -> WindowRows:
        """All keys, from <= start <= to, in the order of the store (see `scan_order`)."""
        return self._unexpired(ALL_KEYS, from_ms, to_ms, backward=False)

    def backward_fetch_all(self, from_ms: int, to_ms: int) -> WindowRows:
        """`fetch_all` in the opposite order."""
        return self._unexpired(ALL_KEYS, from_ms, to_ms, backward=True)

    def fetch_range(self, low: object, high: object, from_ms: int, to_ms: int) -> WindowRows:
        """As `fetch_all`, of the keys from `low` to `high`, both included and None for open."""
        return self._unexpired(self._keys.span(low, high), from_ms, to_ms, backward=False)

    def backward_fetch_range(self, low: object, high: object, from_ms: int, to_ms: int) -> WindowRows:
        """`fetch_range` in the opposite order."""
        return self._unexpired(self._keys.span(low, high), from_ms, to_ms, backward=True)

    def all(self) -> WindowRows:
        """All windows, in the order of `fetch_all`; a caching store shows expired windows too."""
        return self._windows_between(ALL_KEYS, self._hidden_ms() + 1, self.observed_ms, backward=False)

    def backward_all(self) -> WindowRows:
        """`all` in the opposite order."""
        return self._windows_between(ALL_KEYS, self._hidden_ms() + 1, self.observed_ms, backward=True)

    def _unexpired(self, keys: KeyRange, from_ms: int, to_ms: int, *, backward: bool) -> WindowRows:
        return self._windows_between(keys, max(from_ms, self._expired_ms() + 1), to_ms, backward=backward)

    def _shown(self, live_key: object, start_ms: int, live_value: object) -> tuple[Windowed, Any]:
        """Return a row as callers know it."""
        key_of = self._keys.public
        value_of = self._values.public
        window = Window(start_ms, start_ms + self._size_ms)
        windowed = Windowed(live_key if key_of is None else key_of(live_key), window)
        return windowed, live_value if value_of is None else value_of(live_value)
