"""`answer_of`: SQL over the stores of an application that answers queries, whichever instances have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from kstreams.errors import StateError

if TYPE_CHECKING:
    import pyarrow as pa

    from kstreams.cli.running import RunningApplication

_TIMES = ("timestamp", "window_start", "window_end", "valid_from", "valid_to")


def answer_of(application: RunningApplication, query: str, as_of_ms: int | None) -> pa.Table:
    """The result of a SELECT over stores that are declared queryable.

    Each store that the query names is read page by page; a page is of one commit, and the next perhaps of a later one.

    Raises
    ------
    StateError
        When DuckDB is not installed or cannot answer, or a store cannot be read.
    """
    from kstreams.state.tables.sql import answer

    parameters = {} if as_of_ms is None else {"as_of": str(as_of_ms)}
    stores = [store["name"] for store in application.ask("/v1/stores")["stores"]]
    return answer(query, stores, lambda store: _table(application, store, parameters))


def _table(application: RunningApplication, store: str, parameters: Mapping[str, str]) -> pa.Table:
    import pyarrow as pa

    rows: list[dict[str, Any]] = list(application.rows(store, None, parameters, None))
    if not rows:
        return pa.table({"key": pa.nulls(0), "value": pa.nulls(0)} | {name: pa.nulls(0, pa.int64()) for name in _TIMES})
    try:
        return pa.Table.from_pylist(rows)
    except pa.ArrowException as error:
        raise StateError(
            f"the values of the store {store!r} are of several types, which no table holds: {error}"
        ) from None
