"""`ReadOnlyView`: a store as it is seen by those who may read it and must not write."""

from __future__ import annotations

from typing import Any

from kstreams.errors import StateError


class ReadOnlyView:
    """Has the reading methods of the store, and refuses the writing ones.

    Examples
    --------
    >>> from kstreams.state import Stores, open_task_state
    >>> totals = open_task_state([Stores.key_value("totals", key=str, value=int)]).stores["totals"]
    >>> totals.put("a", 1)
    >>> ReadOnlyView(totals).get("a")
    1
    >>> ReadOnlyView(totals).put("a", 2)
    Traceback (most recent call last):
    kstreams.errors.StateError: the global store 'totals' is read-only here: only the processor that fills it may put
    """

    __slots__ = ("_store", "name")

    def __init__(self, store: Any) -> None:
        self._store = store
        self.name = store.name

    def __getattr__(self, method: str) -> Any:
        if method in self._store.builder.kind.writes:
            raise StateError(
                f"the global store {self.name!r} is read-only here: only the processor that fills it may {method}"
            )
        return getattr(self._store, method)
