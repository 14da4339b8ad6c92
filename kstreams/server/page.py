"""`Page`: rows of a store with where they come from, as JSON and as an Arrow stream."""

from __future__ import annotations

from typing import Any

import msgspec
import pyarrow as pa
from starlette.requests import Request
from starlette.responses import Response

from kstreams.serdes.non_finite import with_numbers
from kstreams.server.refusal import Refusal
from kstreams.state.api import StoreBuilder

ARROW = "application/vnd.apache.arrow.stream"
JSON = "application/json"


class Page(msgspec.Struct):
    """An answer.

    Parameters
    ----------
    rows : list of dict
        With `key` and `value`; `timestamp`, `window_start`, `window_end`, `valid_from`, `valid_to` where a store has
        such.
    position : dict of str to int
        What the answer stands for: of each input partition (`topic-0`) the last offset whose record took part;
        from a standby, of each changelog partition that it follows.
    instances : dict of str to str
        By partition: which instance has answered.
    isolation : str
    next : str or None
        The cursor of the page that follows; None where there is none.
    """

    rows: list[dict[str, Any]]
    position: dict[str, int]
    instances: dict[str, str]
    isolation: str
    next: str | None = None


class EntryCount(msgspec.Struct):
    """How many entries a store has.

    Parameters
    ----------
    count : int
    is_estimate : bool
        Whether it is roughly so many: RocksDB counts each change of a key until it merges them.
    instances, position
        As of a `Page`.
    """

    count: int
    is_estimate: bool
    instances: dict[str, str]
    position: dict[str, int]


def as_response(page: Page, request: Request, store: StoreBuilder) -> Response:
    """The form that the request accepts.

    Raises
    ------
    Refusal
        When it accepts an Arrow stream, and the values are of several types.
    """
    if ARROW in dict(request.scope["headers"]).get(b"accept", b"").decode("latin-1"):
        return Response(arrow_stream(page, store), media_type=ARROW)
    return Response(msgspec.json.encode(page, enc_hook=str), media_type=JSON)


def arrow_stream(page: Page, store: StoreBuilder) -> bytes:
    """The rows as an Arrow IPC stream; the metadata of its schema (`kstreams`) is the rest of the page as JSON."""
    rows = _with_numbers(msgspec.to_builtins(page.rows, enc_hook=str), store)
    try:
        table = pa.Table.from_pylist(rows)
    except (pa.ArrowException, OverflowError):
        raise Refusal(406, "the values are of several types, which no Arrow column holds: ask for JSON") from None
    other_fields = {name: getattr(page, name) for name in page.__struct_fields__ if name != "rows"}
    table = table.replace_schema_metadata({"kstreams": msgspec.json.encode(other_fields)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def _with_numbers(rows: list[dict[str, Any]], store: StoreBuilder) -> list[dict[str, Any]]:
    """Rows with the numbers for which JSON has words alone."""
    kinds = {
        "key": None if store.key is None else store.key.type,
        "value": store.result_type or (None if store.value is None else store.value.type),
    }
    read = {name: with_numbers(kind) for name, kind in kinds.items()}
    return [{**row, **{name: of_text(row[name]) for name, of_text in read.items()}} for row in rows]
