"""`MeasuredStore`: a store that counts look-ups and times its operations, for the store metrics of Kafka Streams.

Most look-ups are one subscript of a dict, so measuring would slow them down: a store is measured only on request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from time import perf_counter
from typing import Any

from kstreams.state.kinds.live_store import LiveStore
from kstreams.state.rows.store_measures import OperationTime, StoreOperation

_LOOK_UPS = {
    "get",
    "get_many",
    "get_values",
    "fetch",
    "fetch_session",
    "find_sessions",
    "list_sessions",
    "put_if_absent",
    "delete",
}
_BATCH_METHODS = {"get_many", "get_values", "put_many"}
_SCANS_OF_OPERATION = {
    StoreOperation.RANGE: ("range", "reverse_range"),
    StoreOperation.PREFIX_SCAN: ("prefix_scan",),
    StoreOperation.ALL: ("all", "reverse_all", "backward_all"),
    StoreOperation.FETCH: (
        *("fetch", "backward_fetch", "fetch_all", "backward_fetch_all", "fetch_range", "backward_fetch_range"),
        *("find_sessions", "backward_find_sessions", "find_sessions_range", "backward_find_sessions_range"),
    ),
}
_METHODS_OF_OPERATION = {
    StoreOperation.GET: ("get", "get_many", "get_values"),
    StoreOperation.FETCH: ("fetch_session", "list_sessions"),
    StoreOperation.PUT: ("put", "put_many"),
    StoreOperation.PUT_IF_ABSENT: ("put_if_absent",),
    StoreOperation.PUT_ALL: ("put_all",),
    StoreOperation.DELETE: ("delete",),
    StoreOperation.REMOVE: ("remove",),
    StoreOperation.FLUSH: ("write",),
    StoreOperation.RESTORE: ("restore",),
}


class MeasuredStore:
    """A store whose operations are measured. Attributes that are not measured are those of the store itself.

    Parameters
    ----------
    store : LiveStore

    Attributes
    ----------
    times : dict of StoreOperation to OperationTime
        The measured time of each operation that the store has.
    """

    has_plain_frames = False  # frames would bypass `get`

    def __init__(self, store: LiveStore) -> None:
        self._store = store
        self._reads = store.reads
        self.times: dict[StoreOperation, OperationTime] = {}
        for methods, timed in ((_METHODS_OF_OPERATION, self._timed), (_SCANS_OF_OPERATION, self._timed_scan)):
            for operation, names in methods.items():
                for name in names:
                    if hasattr(store, name):
                        time = self.times.setdefault(operation, OperationTime())
                        setattr(self, name, self._counted(name, timed(name, getattr(store, name), time)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def _counted(self, name: str, read: Callable[..., Any]) -> Callable[..., Any]:
        if name not in _LOOK_UPS:
            return read
        reads = self._reads
        is_batch = name in _BATCH_METHODS

        def count_and_read(*arguments: Any, **named: Any) -> Any:
            reads.look_ups += len(arguments[0]) if is_batch else 1
            return read(*arguments, **named)

        return count_and_read

    def _timed(self, name: str, call: Callable[..., Any], time: OperationTime) -> Callable[..., Any]:
        is_batch = name in _BATCH_METHODS

        def timed_call(*arguments: Any, **named: Any) -> Any:
            started_at = perf_counter()
            result = call(*arguments, **named)
            time.took(perf_counter() - started_at, len(arguments[0]) if is_batch else 1)
            return result

        return timed_call

    def _timed_scan(self, name: str, call: Callable[..., Iterable[Any]], time: OperationTime) -> Callable[..., Any]:
        """Measure a scan from its start to its end, including the time that the caller spends on the rows."""

        def timed_rows(rows: Iterable[Any], started_at: float) -> Iterator[Any]:
            try:
                yield from rows
            finally:
                time.took(perf_counter() - started_at)

        def timed_scan(*arguments: object, **named: object) -> Iterator[Any]:
            started_at = perf_counter()
            return timed_rows(call(*arguments, **named), started_at)

        return timed_scan
