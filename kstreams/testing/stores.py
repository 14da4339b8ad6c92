"""How a test looks into state stores: by kind, with an error that names what there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from kstreams.errors import StateError
from kstreams.record import ValueAndTimestamp
from kstreams.state.api import StoreBuilder, StoreKind
from kstreams.state.values_with_headers import without_headers


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
        self._builders = builders
        self._stores = stores

    def get(self, name: str, wanted: StoreKind, *other_kinds: StoreKind) -> Any:
        """The store of this name, of the kind that is wanted, or of another that will do."""
        store = self.any(name)
        kind = self._builders[name].kind
        if kind not in (wanted, *other_kinds):
            raise StateError(f"The state store {name!r} is a {kind.name} store, not a {wanted.name} store.")
        return store

    def seen_as(self, name: str, kind: StoreKind, *other_kinds: StoreKind) -> Any:
        """A store of a kind, or of one that keeps more beside its values, which is not seen."""
        store = self.get(name, kind, *other_kinds)
        if self._builders[name].kind is kind:
            return store
        return WithoutHeaders(store) if kind.timestamped else ValuesOnly(store)

    def any(self, name: str) -> Any:
        """The store of this name, whatever its kind."""
        if name not in self._stores:
            names = ", ".join(sorted(self._stores)) or "none"
            raise StateError(f"The topology has no state store {name!r}; it has: {names}.")
        return self._stores[name]


class ValuesOnly:
    """A store read as if it kept neither timestamps nor headers; has the reading methods of its kind."""

    _lacks = "timestamps"

    def __init__(self, store: Any) -> None:
        self._store = store
        self._view = store.builder.kind.view

    def __getattr__(self, method: str) -> Callable[..., Any]:
        if not hasattr(self._view, method):
            name = self._store.name
            lacks = self._lacks
            raise AttributeError(f"the store {name} cannot be asked for {method!r} without its {lacks}")
        read = getattr(self._store, method)
        return lambda *where: self._answer(read(*where))

    def _answer(self, value: Any) -> Any:
        """An answer of a store: a value, an iterator of entries, or a number."""
        views = self._seen
        return ((key, views(row)) for key, row in value) if isinstance(value, Iterator) else views(value)

    def _seen(self, row: Any) -> Any:
        bare = without_headers(row)
        return bare.value if isinstance(bare, ValueAndTimestamp) else bare


class WithoutHeaders(ValuesOnly):
    """A store read as if it kept no headers."""

    _lacks = "headers"

    def _seen(self, row: Any) -> Any:
        return without_headers(row)
