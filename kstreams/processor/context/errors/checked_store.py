"""`CheckedStore`: a store whose puts fail at once when keys or values do not encode, so that a handler can be asked.

By itself a store keeps values of immutable types as they are and encodes them at the next commit, when nobody knows any
more which record they came from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kstreams.state.kinds.live_store import LiveStore
from kstreams.state.kinds.measured_store import MeasuredStore
from kstreams.state.store_builder import Written


class CheckedStore:
    """A store with checks before each put; all else is that of the store itself.

    Parameters
    ----------
    store : LiveStore or MeasuredStore
        Of keys and values.
    """

    has_plain_frames = False  # frames would bypass `put`

    def __init__(self, store: Any) -> None:
        self._store: Any = store
        self._key = store.builder.key
        self._value = store.builder.value
        for method, written in store.builder.kind.writes.items():
            if written is not None:
                setattr(self, method, self._checked(getattr(store, method), written))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def put_all(self, entries: Iterable[tuple[object, object]]) -> None:
        """Put key-value pairs in order, each after a check."""
        for key, value in entries:
            self.put(key, value)

    def _checked(self, write: Callable[..., Any], written: Written) -> Callable[..., Any]:
        """A writing method that first serializes what it is given; raises SerdeError."""

        write_key, write_value = (_no_bytes if serde is None else serde.serialize for serde in (self._key, self._value))

        def check_and_write(*arguments: object) -> Any:
            key, value = written(*arguments)
            if key is not None:
                write_key(key)
            if value is not None:
                write_value(value)
            return write(*arguments)

        return check_and_write


def _no_bytes(item: object) -> bytes:
    """In place of a serde that is not known."""
    return b""


def checked(store: object) -> Any:
    """The store, checked where it can be; stores of other kinds are written by operators alone."""
    is_checked = isinstance(store, LiveStore | MeasuredStore) and any(store.builder.kind.writes.values())
    return CheckedStore(store) if is_checked else store
