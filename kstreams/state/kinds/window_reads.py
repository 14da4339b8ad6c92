"""`WindowReads`: the reads of window stores, by one key or a range of keys, in either direction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from kstreams.record import Window, Windowed
from kstreams.state.api import StoreBuilder
from kstreams.state.codecs import ALL_KEYS, KeyRange
from kstreams.state.column_family import ColumnFamily
from kstreams.state.kinds.live_store import StoreWithRetention
from kstreams.state.live_budget import LiveBudget

WindowRows: TypeAlias = Iterator[tuple[Windowed, Any]]
"""Windows of any keys, with their values."""


class WindowReads(StoreWithRetention, ABC):
    """The reads of a `WindowStore` over several windows. Subclasses say where the rows are."""

    def __init__(self, builder: StoreBuilder, family: ColumnFamily, budget: LiveBudget) -> None:
        super().__init__(builder, family, budget)
        self._size_ms = builder.window_size_ms or 0

    @abstractmethod
    def _windows_of(self, key: object, from_ms: int, to_ms: int, *, backward: bool) -> Iterable[tuple[int, Any]]:
        """Return (start, value) of a key's windows that have not expired, with from_ms <= start <= to_ms.

        They are ordered by start, and values of one start by their puts. `backward` reverses the order.
        """

    @abstractmethod
    def _windows_between(self, keys: KeyRange, from_ms: int, to_ms: int, *, backward: bool) -> WindowRows:
        """Return the windows with from_ms <= start <= to_ms, expired windows too, in the order of `scan_order`."""

    def fetch(self, key: object, from_ms: int, to_ms: int) -> Iterator[tuple[int, Any]]:
        """Return (start, value) of a key's windows with from_ms <= start <= to_ms, ordered by start and put."""
        return iter(self._windows_of(key, from_ms, to_ms, backward=False))

    def backward_fetch(self, key: object, from_ms: int, to_ms: int) -> Iterator[tuple[int, Any]]:
        """Return the windows of `fetch` in the opposite order."""
        return iter(self._windows_of(key, from_ms, to_ms, backward=True))

    def fetch_all(self, from_ms: int, to_ms: int) -> WindowRows:
        """Return the windows of all keys with from_ms <= start <= to_ms, in the order of `scan_order`."""
        return self._unexpired(ALL_KEYS, from_ms, to_ms, backward=False)

    def backward_fetch_all(self, from_ms: int, to_ms: int) -> WindowRows:
        """Return the windows of `fetch_all` in the opposite order."""
        return self._unexpired(ALL_KEYS, from_ms, to_ms, backward=True)

    def fetch_range(self, low: object, high: object, from_ms: int, to_ms: int) -> WindowRows:
        """Return the windows of `fetch_all` of the keys from `low` to `high`.

        Both bounds are included. None is an open bound.
        """
        return self._unexpired(self._keys.span(low, high), from_ms, to_ms, backward=False)

    def backward_fetch_range(self, low: object, high: object, from_ms: int, to_ms: int) -> WindowRows:
        """Return the windows of `fetch_range` in the opposite order."""
        return self._unexpired(self._keys.span(low, high), from_ms, to_ms, backward=True)

    def all(self) -> WindowRows:
        """Return all windows in the order of `fetch_all`. A caching store includes expired windows."""
        return self._windows_between(ALL_KEYS, self._hidden_ms() + 1, self.observed_ms, backward=False)

    def backward_all(self) -> WindowRows:
        """Return the windows of `all` in the opposite order."""
        return self._windows_between(ALL_KEYS, self._hidden_ms() + 1, self.observed_ms, backward=True)

    def _unexpired(self, keys: KeyRange, from_ms: int, to_ms: int, *, backward: bool) -> WindowRows:
        return self._windows_between(keys, max(from_ms, self._expired_ms() + 1), to_ms, backward=backward)

    def _public_row(self, live_key: object, start_ms: int, live_value: object) -> tuple[Windowed, Any]:
        """Return a window and its value as callers know them."""
        key_to_public = self._keys.public
        to_public = self._values.public
        window = Window(start_ms, start_ms + self._size_ms)
        windowed = Windowed(live_key if key_to_public is None else key_to_public(live_key), window)
        return windowed, live_value if to_public is None else to_public(live_value)
