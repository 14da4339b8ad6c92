"""`Page`: rows of a store with their position and instances, as JSON or as an Arrow stream."""

from __future__ import annotations

from typing import Any

import msgspec
import pyarrow as pa
from starlette.requests import Request
from starlette.responses import Response

from kstreams.serdes.non_finite import with_numbers
from kstreams.server.http_error import HttpError
from kstreams.state.api import StoreBuilder

ARROW = "application/vnd.apache.arrow.stream"
JSON = "application/json"


class Page(msgspec.Struct):
    """Rows of a store.

    Parameters
    ----------
    rows : list of dict
        Rows with the columns `key` and `value`, and those of `timestamp`, `window_start`, `window_end`, `valid_from`
        and `valid_to` that the store has.
    position : dict of str to int
        The last processed offset of each input partition (`topic-0`); from a standby, the last offset of each
        changelog partition.
    instances : dict of str to str
        The instance that has answered for each partition.
    isolation : str
    next : str or None
        The cursor of the next page. None on the last page.
    """

    rows: list[dict[str, Any]]
    position: dict[str, int]
    instances: dict[str, str]
    isolation: str
    next: str | None = None


class EntryCount(msgspec.Struct):
    """The number of entries of a store.

    Parameters
    ----------
    count : int
    is_estimate : bool
        True if the count is approximate: RocksDB counts each change of a key until it merges them.
    instances, position
        As in `Page`.
    """

    count: int
    is_estimate: bool
    instances: dict[str, str]
    position: dict[str, int]


def as_response(page: Page, request: Request, store: StoreBuilder) -> Response:
    """Return the page in the format that a request accepts.

    Raises
    ------
    HttpError
        If the request accepts an Arrow stream, and the values are of several types.
    """
    if ARROW in dict(request.scope["headers"]).get(b"accept", b"").decode("latin-1"):
        return Response(arrow_stream(page, store), media_type=ARROW)
    return Response(msgspec.json.encode(page, enc_hook=str), media_type=JSON)


def arrow_stream(page: Page, store: StoreBuilder) -> bytes:
    """Return the rows as an Arrow IPC stream. Its schema has the other fields of the page as JSON in `kstreams`."""
    rows = _with_numbers(msgspec.to_builtins(page.rows, enc_hook=str), store)
    try:
        table = pa.Table.from_pylist(rows)
    except (pa.ArrowException, OverflowError):
        raise HttpError(406, "the values have several types, which no Arrow column can hold: ask for JSON") from None
    other_fields = {name: getattr(page, name) for name in page.__struct_fields__ if name != "rows"}
    table = table.replace_schema_metadata({"kstreams": msgspec.json.encode(other_fields)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _with_numbers(rows: list[dict[str, Any]], store: StoreBuilder) -> list[dict[str, Any]]:
    """Replace the texts that JSON has for infinite numbers and NaN by the numbers."""
    types = {
        "key": None if store.key is None else store.key.type,
        "value": store.result_type or (None if store.value is None else store.value.type),
    }
    conversions = {column: with_numbers(column_type) for column, column_type in types.items()}
    return [{**row, **{column: convert(row[column]) for column, convert in conversions.items()}} for row in rows]
