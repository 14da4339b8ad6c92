"""`StoreQuery`: a request for rows of a store, parsed from its URL and checked."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, get_args
from urllib.parse import urlencode

import msgspec
from msgspec.structs import replace
from starlette.datastructures import QueryParams
from starlette.requests import Request

from kstreams.errors import SerdeError
from kstreams.kernel.decoders import decode_json
from kstreams.processor.topology.topology import Topology
from kstreams.runtime.native.local_stores import Isolation
from kstreams.serdes import Serde
from kstreams.serdes.byte_kinds import from_text
from kstreams.server.endpoint import QueryParameter
from kstreams.server.guard import READER
from kstreams.server.http_error import HttpError
from kstreams.server.limits import Limits
from kstreams.server.web.readers import Reader
from kstreams.state.store_builder import RowPlace, RowQuery, RowReader, StoreBuilder

_ISOLATIONS: Mapping[str, Isolation] = {level: level for level in reversed(get_args(Isolation))}
_ORDERS = {"ascending": False, "descending": True}
_FLAGS = {"true": True, "false": False}
_PAGE_ROWS = 100
_CACHED_QUERIES = 256
_INVALID_KEY = "the key cannot be read as one of this store"
INVALID_CURSOR = "`cursor` is not the `next` of a page of this query: begin with the first page again"

LOCAL = QueryParameter("local", "boolean", "Read the partitions of this instance only.")
READ_PARAMETERS = (
    QueryParameter(
        "isolation", "string", "Rows as of the last commit (default), or with all updates.", tuple(_ISOLATIONS)
    ),
    QueryParameter("partition", "integer", "Read this partition only."),
    QueryParameter("stale", "boolean", "Whether a standby may answer, which lags behind."),
    QueryParameter("timeout_ms", "integer", "The longest time to wait for the answer."),
    LOCAL,
)
PAGE_PARAMETERS = (
    QueryParameter("limit", "integer", "The greatest number of rows."),
    QueryParameter("cursor", "string", "The `next` of the page before."),
    QueryParameter("order", "string", "The order of keys within each partition.", ("ascending", "descending")),
)
TIME_PARAMETERS = (
    QueryParameter("from", "integer", "The first time (ms): of window starts, session ends, or valid versions."),
    QueryParameter("to", "integer", "The last time (ms): of window and session starts, or valid versions."),
    QueryParameter(
        "as_of", "integer", "A time (ms) that windows and sessions contain and at which versions were valid."
    ),
)
RANGE_PARAMETERS = (
    QueryParameter("low", "string", "The first key."),
    QueryParameter("high", "string", "The last key, included."),
    QueryParameter("prefix", "string", "The first characters of the keys."),
)
REPEATED_KEY = QueryParameter("key", "string", "A key. The parameter may be repeated.", is_repeated=True)
WATCHED_KEY = QueryParameter("key", "string", "The only key to watch.")
_TIME_FIELDS = {"from": "from_ms", "to": "to_ms", "as_of": "as_of_ms"}


class Cursor(msgspec.Struct, frozen=True):
    """The end of a page: a partition, and the place of the last row. `after` is None before the first row."""

    partition: int
    after: RowPlace | None

    def text(self) -> str:
        """Return the form for URLs."""
        return base64.urlsafe_b64encode(msgspec.json.encode(self)).decode().rstrip("=")

    @staticmethod
    def of(text: str) -> Cursor:
        """Return the cursor that a text from `text` represents; raises HttpError for any other text."""
        try:
            return decode_json(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), Cursor)
        except (msgspec.DecodeError, binascii.Error, ValueError, RecursionError):
            raise HttpError(400, INVALID_CURSOR) from None


class StoreQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A request for rows of a store.

    Parameters
    ----------
    store : StoreBuilder
    rows : RowQuery
        The query for each partition, without `after` and `limit`.
    isolation : Isolation
    partition : int or None
        The only partition to read. None for all.
    stale : bool
        Whether standbys may answer.
    timeout_s : float
    limit : int
        The greatest number of rows of a page.
    cursor : Cursor or None
        The end of the page before. None for the first page.
    is_local : bool
        Whether to read the partitions of this instance only.
    parameters : mapping of str to str
        The parameters with which another instance is asked for the same rows.
    path : str
        The path with which another instance is asked.
    """

    store: StoreBuilder
    rows: RowQuery
    isolation: Isolation
    partition: int | None
    stale: bool
    timeout_s: float
    limit: int
    cursor: Cursor | None
    is_local: bool
    parameters: Mapping[str, str]
    path: str = ""

    def page_parameters(self, number: int, after: RowPlace | None, limit: int) -> dict[str, str]:
        """Return the parameters of a request to another instance for rows of one partition."""
        parameters = {name: text for name, text in self.parameters.items() if name != "cursor"}
        parameters |= {"partition": str(number), "limit": str(limit), "local": "true"}
        if after is not None:
            parameters["cursor"] = Cursor(number, after).text()
        return parameters

    def count_parameters(self, number: int) -> dict[str, str]:
        """Return the parameters of a request to another instance for the number of entries of one partition."""
        return {**self.parameters, "partition": str(number), "local": "true"}

    def of_key(self, text: str) -> StoreQuery:
        """Return this query for one key in the text form of URLs."""
        return replace(self, rows=replace(self.rows, key=_key(self.store, text)))


class StoreQueryParser:
    """A parser of requests. It caches the queries of the last few hundred query strings.

    Parameters
    ----------
    topology : Topology
    limits : Limits
    """

    def __init__(self, topology: Topology, limits: Limits) -> None:
        self._topology = topology
        self._limits = limits
        self._parsed = lru_cache(_CACHED_QUERIES)(self._parse)

    def store(self, request: Request) -> StoreBuilder:
        """Return the store in the path of a request."""
        return self._store(request.path_params["store"], request.scope[READER])

    def of(self, request: Request) -> StoreQuery:
        """Return the query of a request; raises HttpError if the store in the path cannot answer it."""
        store = self.store(request)
        scope = request.scope
        key = request.path_params.get("key")
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        query = self._parsed(store.name, scope["query_string"])
        return replace(query if key is None else query.of_key(key), path=path)

    def watched(self, request: Request) -> StoreQuery:
        """Return the query for the rows of a watch. Its path is that of the rows, because peers are asked for rows."""
        query = self.of(request)
        parameters = dict(query.parameters)
        key = parameters.pop("key", None)
        store_path = f"/v1/stores/{query.store.name}"
        path = f"{store_path}/rows" if key is None else f"{store_path}/keys/{key}"
        return replace(query, parameters=parameters, path=path)

    def key(self, name: str, key: str, reader: Reader) -> tuple[StoreBuilder, Any]:
        """Return a store by name, and one of its keys; raises HttpError if there is no such store or key."""
        store = self._store(name, reader)
        return store, _key(store, key)

    def of_keys(self, request: Request, keys: Sequence[str]) -> list[StoreQuery]:
        """Return one query for each of several keys of the store in the path."""
        store = self.store(request)
        if not _reader(store).is_lookup:
            raise HttpError(400, f"a {store.kind.name} store may have several rows per key: ask for one key at a time")
        other_parameters = [pair for pair in request.query_params.multi_items() if pair[0] != "key"]
        query = self._parsed(store.name, urlencode(other_parameters).encode())
        return [replace(query.of_key(key), path=f"/v1/stores/{store.name}/keys/{key}") for key in keys]

    def _store(self, name: str, reader: Reader) -> StoreBuilder:
        """Return a store by name. A store that a reader may not read is refused as if it did not exist."""
        builder = self._topology.stores.get(name)
        if builder is None or not (builder.queryable and reader.may_read(name)):
            raise HttpError(404, "there is no such store, or it is not declared queryable")
        return builder

    def _parse(self, store: str, query_string: bytes) -> StoreQuery:
        return parse_store_query(self._topology.stores[store], QueryParams(query_string), self._limits)


def parse_store_query(store: StoreBuilder, parameters: Mapping[str, str], limits: Limits) -> StoreQuery:
    """Return the query that the parameters of a request describe.

    Parameters
    ----------
    store : StoreBuilder
    parameters : mapping of str to str
        Without the key in the path, which `StoreQuery.of_key` adds.
    limits : Limits

    Raises
    ------
    HttpError
        If a parameter is wrong, or the store does not support it.
    """
    reader = _reader(store)
    cursor = Cursor.of(parameters["cursor"]) if "cursor" in parameters else None
    if cursor is not None and cursor.after is not None:
        _key(store, cursor.after.key, _deserialized, INVALID_CURSOR)
    isolation = _word(parameters, "isolation", _ISOLATIONS, "read_committed")
    if isolation == "read_committed" and store.store != "rocksdb":
        raise HttpError(400, "the store is in memory, which has no committed state: set isolation=read_uncommitted")
    longest_ms = round(1000 * limits.deadline_s)
    return StoreQuery(
        store=store,
        rows=_row_query(parameters, store, reader),
        isolation=isolation,
        partition=whole_number(parameters, "partition", None, 0, 2**31),
        stale=_word(parameters, "stale", _FLAGS, "false"),
        timeout_s=(whole_number(parameters, "timeout_ms", longest_ms, 1, longest_ms) or longest_ms) / 1000,
        limit=whole_number(parameters, "limit", min(_PAGE_ROWS, limits.page_rows), 1, limits.page_rows) or 1,
        cursor=cursor,
        is_local=is_local(parameters),
        parameters=dict(parameters),
    )


def check_parameters(request: Request, parameters: tuple[QueryParameter, ...]) -> None:
    """Raise HttpError for a parameter that the route does not have, or that the request repeats."""
    names = [name for name, _ in request.query_params.multi_items()]
    is_repeated = {parameter.name: parameter.is_repeated for parameter in parameters}
    if any(name not in is_repeated or (names.count(name) > 1 and not is_repeated[name]) for name in names):
        permitted = ", ".join(sorted(is_repeated)) or "none"
        raise HttpError(400, f"a parameter is unknown or repeated; each of these may occur once: {permitted}")


def is_local(parameters: Mapping[str, str]) -> bool:
    """Return the value of the parameter `LOCAL`; raises HttpError if it is neither true nor false."""
    is_local_only: bool = _word(parameters, LOCAL.name, _FLAGS, "false")
    return is_local_only


def _reader(store: StoreBuilder) -> RowReader:
    reader = store.kind.rows
    if reader is None:
        raise HttpError(400, f"the rows of a {store.kind.name} store cannot be read")
    return reader


def _row_query(parameters: Mapping[str, str], store: StoreBuilder, reader: RowReader) -> RowQuery:
    texts = {name: parameters.get(name) for name in ("key", "low", "high", "prefix")}
    keys = {name: _key(store, text) for name, text in texts.items() if text is not None}
    times: dict[str, Any] = {
        field: whole_number(parameters, name, None, -(2**62), 2**62) for name, field in _TIME_FIELDS.items()
    }
    query = RowQuery(reader=reader, **keys, **times, descending=_word(parameters, "order", _ORDERS, "ascending"))
    bounds = {*keys, *(field for field, time in times.items() if time is not None)} - {"key"}
    if unsupported := bounds - reader.bounds:
        names = ", ".join(f"`{field.removesuffix('_ms')}`" for field in sorted(unsupported))
        raise HttpError(400, f"a {store.kind.name} store cannot be queried by {names}")
    if "as_of_ms" in bounds and bounds & {"from_ms", "to_ms"}:
        raise HttpError(400, "`as_of` excludes `from` and `to`: leave it out, or the others")
    if query.prefix is not None and (query.descending or bounds & {"low", "high"}):
        raise HttpError(400, "`prefix` excludes `low`, `high` and a descending order: leave it out, or the others")
    return query


def _deserialized(serde: Serde, data: bytes) -> Any:
    return serde.deserialize(data)


def _key(
    store: StoreBuilder,
    encoded_key: object,
    decode: Callable[[Serde, Any], Any] = from_text,
    reason: str = _INVALID_KEY,
) -> Any:
    if store.key is None:
        raise HttpError(400, "the store does not declare the type of its keys, so that no key can be read from text")
    try:
        key = decode(store.key, encoded_key)
        store.key.serialize(key)  # refuses keys that the store cannot hold, such as an integer of more than 64 bits
        return key
    except (SerdeError, msgspec.ValidationError, ValueError):
        raise HttpError(400, reason) from None


def _word(parameters: Mapping[str, str], name: str, words: Mapping[str, Any], default: str) -> Any:
    word = parameters.get(name, default)
    if word not in words:
        raise HttpError(400, f"`{name}` has to be one of {', '.join(words)}")
    return words[word]


def whole_number(parameters: Mapping[str, str], name: str, default: int | None, low: int, high: int) -> int | None:
    """Return a parameter as a number from `low` to `high`, or the default; raises HttpError for any other text."""
    text = parameters.get(name)
    if text is None:
        return default
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20 and low <= int(text) <= high):
        raise HttpError(400, f"`{name}` has to be a whole number from {low} to {high}")
    return int(text)
