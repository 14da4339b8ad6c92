"""What can be read from stores, and `ReadOnlyView`: a store as those see it who may look into it and must not write."""

from __future__ import annotations

from typing import Any

from kstreams.errors import StateError

LOOKUPS = frozenset({"get", "fetch_session"})
"""Methods that answer with one value."""

SCANS = frozenset(
    f"{prefix}{name}"
    for prefix in ("", "backward_", "reverse_")
    for name in (
        "all",
        "range",
        "prefix_scan",
        "fetch",
        "fetch_all",
        "fetch_range",
        "find_sessions",
        "find_sessions_range",
    )
)
"""Methods that answer with an iterator of entries."""

COUNTS = frozenset({"approximate_num_entries", "num_records", "num_bytes"})
"""Methods that count."""

_WRITES = frozenset({"put", "delete", "put_if_absent", "put_all", "put_many", "remove"})


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
        self._store, self.name = store, store.name

    def __getattr__(self, method: str) -> Any:
        if method in _WRITES:
            raise StateError(
                f"the global store {self.name!r} is read-only here: only the processor that fills it may {method}"
            )
        return getattr(self._store, method)
