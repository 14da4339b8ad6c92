"""`CheckedStore`: a store whose puts fail at once if keys or values do not encode, so that a handler can decide.

Without it, a store holds values of immutable types as objects and encodes them at the next commit, when the record
that led to a value is no longer known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kstreams.state.kinds.live_store import LiveStore
from kstreams.state.kinds.measured_store import MeasuredStore
from kstreams.state.store_builder import Written


class CheckedStore:
    """A store that checks keys and values before each put. All other methods are those of the store.

    Parameters
    ----------
    store : LiveStore or MeasuredStore
        The store of keys and values.
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
        """Return a write method that first serializes its arguments; it raises SerdeError."""

        write_key, write_value = (_no_bytes if serde is None else serde.serialize for serde in (self._key, self._value))

        def check_and_write(*arguments: object) -> object:
            key, value = written(*arguments)
            if key is not None:
                write_key(key)
            if value is not None:
                write_value(value)
            return write(*arguments)

        return check_and_write


def _no_bytes(item: object) -> bytes:
    """Return no bytes: the check for a side whose serde is not known."""
    return b""


def checked(store: object) -> Any:
    """Return the store with checks, if it can have them; other kinds are written only by operators."""
    is_checked = isinstance(store, LiveStore | MeasuredStore) and any(store.builder.kind.writes.values())
    return CheckedStore(store) if is_checked else store
