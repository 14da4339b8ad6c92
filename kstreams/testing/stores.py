"""How a test looks into state stores: by kind, with an error that names what there is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kstreams.errors import StateError
from kstreams.state.api import StoreBuilder, StoreKind


class StoreViews:
    """The stores of a driver by name.

    Parameters
    ----------
    builders : mapping of str to StoreBuilder
        What kind each is.
    stores : mapping of str to StateStore
        The live ones.
    """

    def __init__(self, builders: Mapping[str, StoreBuilder], stores: Mapping[str, Any]) -> None:
        self._builders, self._stores = builders, stores

    def get(self, name: str, *kinds: StoreKind) -> Any:
        """The store of this name, of one of these kinds."""
        store, kind = self.any(name), self._builders[name].kind
        if kind not in kinds:
            wanted = " or ".join(wanted.value for wanted in kinds)
            raise StateError(f"The state store {name!r} is a {kind.value} store, not a {wanted} store.")
        return store

    def values_of(self, name: str, plain: StoreKind, timestamped: StoreKind) -> Any:
        """A plain store, or a timestamped one seen without its timestamps."""
        store = self.get(name, plain, timestamped)
        return store if self._builders[name].kind is plain else ValuesOnly(store)

    def any(self, name: str) -> Any:
        """The store of this name, whatever its kind."""
        if name not in self._stores:
            known = ", ".join(sorted(self._stores)) or "none"
            raise StateError(f"The topology has no state store {name!r}; it has: {known}.")
        return self._stores[name]


class ValuesOnly:
    """A timestamped key-value or window store, read as if it kept values alone."""

    def __init__(self, store: Any) -> None:
        self._store = store

    def get(self, *where: Any) -> Any:
        """The value of a key (and window start, in ms), or None."""
        found = self._store.get(*where)
        return None if found is None else found.value

    def all(self) -> Iterator[tuple[Any, Any]]:
        """All (key, value)."""
        return self._values(self._store.all())

    def range(self, low: Any = None, high: Any = None) -> Iterator[tuple[Any, Any]]:
        """(key, value) of a key-value store between two keys, both included."""
        return self._values(self._store.range(low, high))

    def fetch(self, key: Any, from_ms: int, to_ms: int) -> Iterator[tuple[int, Any]]:
        """(start, value) of a window store's key."""
        return self._values(self._store.fetch(key, from_ms, to_ms))

    @staticmethod
    def _values(rows: Iterator[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
        return ((key, found.value) for key, found in rows)
