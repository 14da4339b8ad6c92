"""`CountedStore`: a store that counts how often operators look up keys, for the hit ratio of its live values.

A look-up is mostly one subscript of a dict: so it is counted on request alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kstreams.state.kinds.live_store import LiveStore

_ONE = ("get", "fetch", "fetch_session", "find_sessions", "touched", "put_if_absent", "delete")
_MANY = ("get_many", "get_values")


class CountedStore:
    """A store with counted look-ups; all else is that of the store itself.

    Parameters
    ----------
    store : LiveStore
    """

    has_plain_frames = False  # frames would bypass `get`

    def __init__(self, store: LiveStore) -> None:
        self._store, self._reads = store, store.reads
        for names, counted in ((_ONE, self._counted), (_MANY, self._counted_many)):
            for name in names:
                if hasattr(store, name):
                    setattr(self, name, counted(getattr(store, name)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def _counted(self, read: Callable[..., Any]) -> Callable[..., Any]:
        reads = self._reads

        def count_and_read(*given: Any, **named: Any) -> Any:
            reads.look_ups += 1
            return read(*given, **named)

        return count_and_read

    def _counted_many(self, read: Callable[..., Any]) -> Callable[..., Any]:
        reads = self._reads

        def count_and_read(keys: list[Any], *given: Any) -> Any:
            reads.look_ups += len(keys)
            return read(keys, *given)

        return count_and_read
