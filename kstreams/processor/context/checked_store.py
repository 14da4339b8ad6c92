"""`CheckedStore`: a store whose puts fail at once when keys or values do not encode, so that a handler can be asked.

By itself a store keeps values of immutable types as they are and encodes them at the next commit, when nobody knows any
more which record they came from.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kstreams.state.api import StoreKind
from kstreams.state.kinds.live_store import LiveStore

_TIMESTAMPED = (StoreKind.TIMESTAMPED_KEY_VALUE, StoreKind.TIMESTAMPED_WINDOW)
_CHECKED = (*_TIMESTAMPED, StoreKind.KEY_VALUE, StoreKind.WINDOW, StoreKind.SESSION, StoreKind.VERSIONED)


class CheckedStore:
    """All that the store itself offers, but for its ways to put something in.

    Parameters
    ----------
    store : LiveStore
        Of keys and values.
    """

    has_plain_frames = False  # the way around `put`

    def __init__(self, store: LiveStore) -> None:
        self._store: Any = store
        self._key, self._value = store.builder.key, store.builder.value
        self._is_timestamped = store.builder.kind in _TIMESTAMPED
        self._is_session = store.builder.kind is StoreKind.SESSION

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def put(self, key: Any, value: Any, *place: int) -> Any:
        """Put, after a check; raises SerdeError."""
        self._check(key, value)
        return self._store.put(key, value, *place)

    def put_if_absent(self, key: Any, value: Any) -> Any:
        """The same where there is no value yet."""
        self._check(key, value)
        return self._store.put_if_absent(key, value)

    def put_all(self, entries: Iterable[tuple[Any, Any]]) -> None:
        """The same for many, in order."""
        for key, value in entries:
            self.put(key, value)

    def _check(self, key: Any, value: Any) -> None:
        bare_key, bare_value = key[0] if self._is_session else key, value
        if self._is_timestamped and value is not None:
            bare_value = value[0]
        for serde, item in ((self._key, bare_key), (self._value, bare_value)):
            if serde is not None and item is not None:
                serde.serialize(item)


def checked(store: Any) -> Any:
    """The store, checked where it can be; stores of other kinds are written by operators alone."""
    return CheckedStore(store) if isinstance(store, LiveStore) and store.builder.kind in _CHECKED else store
