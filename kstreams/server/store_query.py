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
from kstreams.server.limits import Limits
from kstreams.server.refusal import Refusal
from kstreams.server.web.readers import Reader
from kstreams.state.store_builder import RowPlace, RowQuery, RowReader, StoreBuilder

_ISOLATIONS: Mapping[str, Isolation] = {level: level for level in reversed(get_args(Isolation))}
_ORDERS = {"ascending": False, "descending": True}
_FLAGS = {"true": True, "false": False}
_PAGE_ROWS = 100
_CACHED_QUERIES = 256
_NO_KEY = "the key cannot be read as one of this store"
NO_CURSOR = "`cursor` is none that a page of this question gave as `next`: begin with the first page again"

LOCAL = QueryParameter("local", "boolean", "Ask this instance alone.")
HOW = (
    QueryParameter(
        "isolation", "string", "As of the last commit (default), or all that is processed.", tuple(_ISOLATIONS)
    ),
    QueryParameter("partition", "integer", "Ask this partition alone."),
    QueryParameter("stale", "boolean", "Whether a standby may answer, which lags behind."),
    QueryParameter("timeout_ms", "integer", "For how long to wait for the answer."),
    LOCAL,
)
PAGES = (
    QueryParameter("limit", "integer", "Greatest number of rows."),
    QueryParameter("cursor", "string", "Go on behind the page that gave it as `next`."),
    QueryParameter("order", "string", "Of keys, within each partition.", ("ascending", "descending")),
)
TIMES = (
    QueryParameter("from", "integer", "Windows that start, sessions that end, versions that hold from this time (ms)."),
    QueryParameter("to", "integer", "Windows and sessions that start, versions that hold up to this time (ms)."),
    QueryParameter("as_of", "integer", "Windows and sessions that contain this time, the version that held then (ms)."),
)
KEYS = (
    QueryParameter("low", "string", "First key."),
    QueryParameter("high", "string", "Last key, included."),
    QueryParameter("prefix", "string", "Only keys that begin so."),
)
SOME_KEYS = QueryParameter("key", "string", "A key; may be given many times.", is_repeated=True)
ONE_KEY = QueryParameter("key", "string", "Only this key.")
_TIME_FIELDS = {"from": "from_ms", "to": "to_ms", "as_of": "as_of_ms"}


class Cursor(msgspec.Struct, frozen=True):
    """Where a page ended: a partition, and the place of its last row. `after` is None at the first row."""

    partition: int
    after: RowPlace | None

    def text(self) -> str:
        """Return the form for URLs."""
        return base64.urlsafe_b64encode(msgspec.json.encode(self)).decode().rstrip("=")

    @staticmethod
    def of(text: str) -> Cursor:
        """Return the cursor of a text that `text` returned; raises Refusal for any other text."""
        try:
            return decode_json(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), Cursor)
        except (msgspec.DecodeError, binascii.Error, ValueError, RecursionError):
            raise Refusal(400, NO_CURSOR) from None


class StoreQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A request for rows of a store.

    Parameters
    ----------
    store : StoreBuilder
    rows : RowQuery
        The query of each partition, without the page.
    isolation : Isolation
    partition : int or None
        The only partition to read. None for all.
    stale : bool
        Whether standbys may answer.
    timeout_s : float
    limit : int
        The greatest number of rows of a page.
    cursor : Cursor or None
        Where the page before ended. None for the first page.
    is_local : bool
        Whether this instance answers alone.
    parameters : mapping of str to str
        The parameters of a request for the same rows to another instance.
    path : str
        The path of such a request.
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
        cursor = {} if after is None else {"cursor": Cursor(number, after).text()}
        own = {"partition": str(number), "limit": str(limit), "local": "true", **cursor}
        return {**{name: text for name, text in self.parameters.items() if name != "cursor"}, **own}

    def count_parameters(self, number: int) -> dict[str, str]:
        """Return the parameters of a request to another instance for the number of entries of one partition."""
        return {**self.parameters, "partition": str(number), "local": "true"}

    def of_key(self, text: str) -> StoreQuery:
        """Return this query for one key, which is in the form that URLs have."""
        return replace(self, rows=replace(self.rows, key=_key(self.store, text)))


class StoreQueryParser:
    """Parses requests. It caches the queries of the last few hundred sets of parameters.

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
        """Return the query of a request; raises Refusal if it is none of the store in the path."""
        store = self.store(request)
        scope = request.scope
        key = request.path_params.get("key")
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        query = self._parsed(store.name, scope["query_string"])
        return replace(query if key is None else query.of_key(key), path=path)

    def watched(self, request: Request) -> StoreQuery:
        """Return the query for the rows of a watch. Other instances are sent the path of rows, not of watches."""
        query = self.of(request)
        parameters = dict(query.parameters)
        key = parameters.pop("key", None)
        store_path = f"/v1/stores/{query.store.name}"
        path = f"{store_path}/rows" if key is None else f"{store_path}/keys/{key}"
        return replace(query, parameters=parameters, path=path)

    def key(self, name: str, key: str, reader: Reader) -> tuple[StoreBuilder, Any]:
        """Return a store by name, and one of its keys; raises Refusal if there is no such store or key."""
        store = self._store(name, reader)
        return store, _key(store, key)

    def of_keys(self, request: Request, keys: Sequence[str]) -> list[StoreQuery]:
        """Return one query for each of several keys of the store in the path."""
        store = self.store(request)
        if not _reader(store).is_lookup:
            raise Refusal(400, f"a {store.kind.name} store is asked key by key")
        other_parameters = [pair for pair in request.query_params.multi_items() if pair[0] != "key"]
        query = self._parsed(store.name, urlencode(other_parameters).encode())
        return [replace(query.of_key(key), path=f"/v1/stores/{store.name}/keys/{key}") for key in keys]

    def _store(self, name: str, reader: Reader) -> StoreBuilder:
        """Return a store by name. One that a reader may not read is refused as if it did not exist."""
        builder = self._topology.stores.get(name)
        if builder is None or not (builder.queryable and reader.may_read(name)):
            raise Refusal(404, "there is no such store, or it is not declared queryable")
        return builder

    def _parse(self, store: str, query_string: bytes) -> StoreQuery:
        return parse_store_query(self._topology.stores[store], QueryParams(query_string), self._limits)


def parse_store_query(store: StoreBuilder, parameters: Mapping[str, str], limits: Limits) -> StoreQuery:
    """Return the query that the parameters of a request describe; raises Refusal if they describe none.

    Parameters
    ----------
    store : StoreBuilder
    parameters : mapping of str to str
        Without the key in the path, which `StoreQuery.of_key` adds.
    limits : Limits
    """
    reader = _reader(store)
    cursor = Cursor.of(parameters["cursor"]) if "cursor" in parameters else None
    if cursor is not None and cursor.after is not None:
        _key(store, cursor.after.key, _deserialized, NO_CURSOR)
    isolation = _word(parameters, "isolation", _ISOLATIONS, "read_committed")
    if isolation == "read_committed" and store.store != "rocksdb":
        raise Refusal(
            400, "the store is kept in memory, where nothing says what is committed: ask isolation=read_uncommitted"
        )
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


def refuse_unknown(request: Request, parameters: tuple[QueryParameter, ...]) -> None:
    """Raise Refusal for a parameter that a route does not have, or that a request has twice."""
    names = [name for name, _ in request.query_params.multi_items()]
    is_repeated = {parameter.name: parameter.is_repeated for parameter in parameters}
    if any(name not in is_repeated or (names.count(name) > 1 and not is_repeated[name]) for name in names):
        raise Refusal(400, f"each of these parameters may be given once: {', '.join(sorted(is_repeated)) or 'none'}")


def is_local(parameters: Mapping[str, str]) -> bool:
    """Return the value of `LOCAL`; raises Refusal if it is no truth value."""
    is_local_only: bool = _word(parameters, LOCAL.name, _FLAGS, "false")
    return is_local_only


def _reader(store: StoreBuilder) -> RowReader:
    reader = store.kind.rows
    if reader is None:
        raise Refusal(400, f"a {store.kind.name} store has no rows to be asked for")
    return reader


def _row_query(parameters: Mapping[str, str], store: StoreBuilder, reader: RowReader) -> RowQuery:
    texts = {name: parameters.get(name) for name in ("key", "low", "high", "prefix")}
    keys = {name: _key(store, text) for name, text in texts.items() if text is not None}
    times: dict[str, Any] = {
        field: whole_number(parameters, name, None, -(2**62), 2**62) for name, field in _TIME_FIELDS.items()
    }
    query = RowQuery(reader=reader, **keys, **times, descending=_word(parameters, "order", _ORDERS, "ascending"))
    bounds = {*keys, *(field for field, time in times.items() if time is not None)} - {"key"}
    if not bounds <= reader.bounds:
        raise Refusal(400, f"a {store.kind.name} store cannot be asked so")
    if "as_of_ms" in bounds and bounds & {"from_ms", "to_ms"}:
        raise Refusal(400, "`as_of` and `from` or `to` exclude each other")
    if query.prefix is not None and (query.descending or bounds & {"low", "high"}):
        raise Refusal(400, "`prefix` stands alone, without `low`, `high` and a descending order")
    return query


def _deserialized(serde: Serde, data: bytes) -> Any:
    return serde.deserialize(data)


def _key(
    store: StoreBuilder, form: object, read: Callable[[Serde, Any], Any] = from_text, reason: str = _NO_KEY
) -> Any:
    if store.key is None:
        raise Refusal(400, "the keys of this store have no type that could be read from text")
    try:
        key = read(store.key, form)
        store.key.serialize(key)  # an integer of more than 64 bits, say, is none that a store can hold
        return key
    except (SerdeError, msgspec.ValidationError, ValueError):
        raise Refusal(400, reason) from None


def _word(parameters: Mapping[str, str], name: str, words: Mapping[str, Any], default: str) -> Any:
    word = parameters.get(name, default)
    if word not in words:
        raise Refusal(400, f"`{name}` is one of {', '.join(words)}")
    return words[word]


def whole_number(parameters: Mapping[str, str], name: str, default: int | None, low: int, high: int) -> int | None:
    """Return a parameter that is a whole number from `low` to `high`, or its default; raises Refusal for any other."""
    text = parameters.get(name)
    if text is None:
        return default
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20 and low <= int(text) <= high):
        raise Refusal(400, f"`{name}` is a whole number from {low} to {high}")
    return int(text)
