"""`StoreQuery`: what a request asks of a store, read from its address and checked."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, get_args
from urllib.parse import urlencode

import msgspec
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
from kstreams.server.readings import READINGS, RowPlace, StoreQueryArguments, StoreReading
from kstreams.server.refusal import Refusal
from kstreams.server.web.readers import Reader
from kstreams.state.api import StoreBuilder

_ISOLATIONS: Mapping[str, Isolation] = {level: level for level in reversed(get_args(Isolation))}
_ORDERS = {"ascending": False, "descending": True}
_FLAGS = {"true": True, "false": False}
_PAGE_ROWS = 100
_KNOWN = 256
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
_OWN_NAMES = {"from": "from_ms", "to": "to_ms", "as_of": "as_of_ms", "order": "descending"}


class Cursor(msgspec.Struct, frozen=True):
    """Where a page ended: a partition, and a row of it or its beginning."""

    partition: int
    after: RowPlace | None

    def text(self) -> str:
        """As it stands in an address."""
        return base64.urlsafe_b64encode(msgspec.json.encode(self)).decode().rstrip("=")

    @staticmethod
    def of(text: str) -> Cursor:
        """The cursor that a text stands for."""
        try:
            return decode_json(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)), Cursor)
        except (msgspec.DecodeError, binascii.Error, ValueError, RecursionError):
            raise Refusal(400, NO_CURSOR) from None


class StoreQuery(msgspec.Struct, frozen=True):
    """A request of rows.

    Parameters
    ----------
    store : StoreBuilder
    reading : StoreReading
    asked : Asked
    isolation : Isolation
    partition : int or None
    stale : bool
    seconds : float
        How long the answer may take.
    limit : int
    cursor : Cursor or None
    is_local : bool
        Whether no other instance is asked.
    given : mapping of str to str
        The parameters with which another instance is asked.
    path : str
        Where it is asked.
    """

    store: StoreBuilder
    reading: StoreReading
    asked: StoreQueryArguments
    isolation: Isolation
    partition: int | None
    stale: bool
    seconds: float
    limit: int
    cursor: Cursor | None
    is_local: bool
    given: Mapping[str, str]
    path: str = ""

    def of_partition(self, number: int, after: RowPlace | None, most: int) -> dict[str, str]:
        """The parameters with which another instance is asked for rows of one of its partitions."""
        cursor = {} if after is None else {"cursor": Cursor(number, after).text()}
        own = {"partition": str(number), "limit": str(most), "local": "true", **cursor}
        return {**{name: text for name, text in self.given.items() if name != "cursor"}, **own}

    def of_partition_alone(self, number: int) -> dict[str, str]:
        """The parameters with which another instance is asked about one of its partitions, where there are no rows."""
        return {**self.given, "partition": str(number), "local": "true"}

    def of_key(self, text: str) -> StoreQuery:
        """The same of a key, as it stands in an address."""
        key = _key(self.store, text)
        return msgspec.structs.replace(self, asked=self.asked._replace(key=key))


class StoreQueryParser:
    """Reads requests, and remembers what the last few hundred sets of parameters meant.

    Parameters
    ----------
    topology : Topology
    limits : Limits
    """

    def __init__(self, topology: Topology, limits: Limits) -> None:
        self._topology = topology
        self._limits = limits
        self._read = lru_cache(_KNOWN)(self._parameters)

    def store(self, request: Request) -> StoreBuilder:
        """The store in the path."""
        return self._store(request.path_params["store"], request.scope[READER])

    def of(self, request: Request) -> StoreQuery:
        """What a request asks of the store in its path; raises Refusal where that makes no sense."""
        store = self.store(request)
        scope = request.scope
        key = request.path_params.get("key")
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        question = self._read(store.name, scope["query_string"], key is not None)
        return msgspec.structs.replace(question if key is None else question.of_key(key), path=path)

    def watched(self, request: Request) -> StoreQuery:
        """The rows that a watch looks at: other instances are asked for them where rows are asked for."""
        question = self.of(request)
        given = dict(question.given)
        key = given.pop("key", None)
        place = f"/v1/stores/{question.store.name}"
        path = f"{place}/rows" if key is None else f"{place}/keys/{key}"
        return msgspec.structs.replace(question, given=given, path=path)

    def key(self, name: str, key: str, reader: Reader) -> tuple[StoreBuilder, Any]:
        """The store of a name and a key of it; raises Refusal where there is none."""
        store = self._store(name, reader)
        return store, _key(store, key)

    def of_keys(self, request: Request, keys: Sequence[str]) -> list[StoreQuery]:
        """The question of each of several keys of the store in the path."""
        store = self.store(request)
        if not READINGS[store.kind.name].is_point:
            raise Refusal(400, f"a {store.kind.name} store is asked key by key")
        pairs = request.query_params.multi_items()
        read = self._read(store.name, urlencode([pair for pair in pairs if pair[0] != "key"]).encode(), True)
        place = f"/v1/stores/{store.name}/keys/"
        return [msgspec.structs.replace(read.of_key(key), path=place + key) for key in keys]

    def _store(self, name: str, reader: Reader) -> StoreBuilder:
        """One that is not declared queryable, or not for a reader, is as if it were not there."""
        builder = self._topology.stores.get(name)
        if builder is None or not (builder.queryable and reader.may_read(name)):
            raise Refusal(404, "there is no such store, or it is not declared queryable")
        return builder

    def _parameters(self, store: str, query: bytes, has_key: bool) -> StoreQuery:
        return _question(self._topology.stores[store], QueryParams(query), self._limits, has_key)


def read_question(store: StoreBuilder, given: Mapping[str, str], limits: Limits, key: str | None = None) -> StoreQuery:
    """What parameters ask of a store, or of a key of it; raises Refusal where that makes no sense."""
    question = _question(store, given, limits, key is not None)
    return question if key is None else question.of_key(key)


def _question(store: StoreBuilder, given: Mapping[str, str], limits: Limits, has_key: bool) -> StoreQuery:
    """All but the key in the path."""
    reading = READINGS.get(store.kind.name)
    if reading is None:
        raise Refusal(400, f"a {store.kind.name} store has no rows to be asked for")
    cursor = Cursor.of(given["cursor"]) if "cursor" in given else None
    if cursor is not None and cursor.after is not None:
        _key(store, cursor.after.key, _deserialized, NO_CURSOR)
    isolation = _word(given, "isolation", _ISOLATIONS, "read_committed")
    if isolation == "read_committed" and store.store != "rocksdb":
        raise Refusal(
            400, "the store is kept in memory, where nothing says what is committed: ask isolation=read_uncommitted"
        )
    longest = round(1000 * limits.deadline_s)
    return StoreQuery(
        store,
        reading,
        _asked(given, store, reading, has_key),
        isolation,
        whole_number(given, "partition", None, 0, 2**31),
        _word(given, "stale", _FLAGS, "false"),
        (whole_number(given, "timeout_ms", longest, 1, longest) or longest) / 1000,
        whole_number(given, "limit", min(_PAGE_ROWS, limits.page_rows), 1, limits.page_rows) or 1,
        cursor,
        is_local(given),
        dict(given),
    )


def refuse_unknown(request: Request, parameters: tuple[QueryParameter, ...]) -> None:
    """Raise Refusal for a parameter that a route does not have, or that is given twice."""
    names = [name for name, _ in request.query_params.multi_items()]
    is_repeated = {parameter.name: parameter.is_repeated for parameter in parameters}
    if any(name not in is_repeated or (names.count(name) > 1 and not is_repeated[name]) for name in names):
        raise Refusal(400, f"each of these parameters may be given once: {', '.join(sorted(is_repeated)) or 'none'}")


def is_local(given: Mapping[str, str]) -> bool:
    """What `LOCAL` says; raises Refusal where that makes no sense."""
    is_local_only: bool = _word(given, LOCAL.name, _FLAGS, "false")
    return is_local_only


def _asked(given: Mapping[str, str], store: StoreBuilder, reading: StoreReading, has_key: bool) -> StoreQueryArguments:
    texts = {name: given.get(name) for name in ("key", "low", "high", "prefix")}
    keys = {name: _key(store, text) for name, text in texts.items() if text is not None}
    times = {_OWN_NAMES[name]: whole_number(given, name, None, -(2**62), 2**62) for name in ("from", "to", "as_of")}
    asked = StoreQueryArguments(**keys, **times, descending=_word(given, "order", _ORDERS, "ascending"))
    used_names = {*keys, *(name for name, value in times.items() if value is not None)} - {"key"}
    if not used_names <= reading.allowed or not (has_key or "key" in keys or reading.scan):
        raise Refusal(400, f"a {store.kind.name} store cannot be asked so")
    if "as_of_ms" in used_names and used_names & {"from_ms", "to_ms"}:
        raise Refusal(400, "`as_of` and `from` or `to` exclude each other")
    if asked.prefix is not None and (asked.descending or used_names & {"low", "high"}):
        raise Refusal(400, "`prefix` stands alone, without `low`, `high` and a descending order")
    return asked


def _deserialized(serde: Serde, data: bytes) -> Any:
    return serde.deserialize(data)


def _key(
    store: StoreBuilder, given: object, read: Callable[[Serde, Any], Any] = from_text, reason: str = _NO_KEY
) -> Any:
    if store.key is None:
        raise Refusal(400, "the keys of this store have no type that could be read from text")
    try:
        key = read(store.key, given)
        store.key.serialize(key)  # an integer of more than 64 bits, say, is none that a store can hold
        return key
    except (SerdeError, msgspec.ValidationError, ValueError):
        raise Refusal(400, reason) from None


def _word(given: Mapping[str, str], name: str, words: Mapping[str, Any], default: str) -> Any:
    word = given.get(name, default)
    if word not in words:
        raise Refusal(400, f"`{name}` is one of {', '.join(words)}")
    return words[word]


def whole_number(given: Mapping[str, str], name: str, default: int | None, low: int, high: int) -> int | None:
    """A parameter that is a whole number within bounds, or what holds without it; raises Refusal for any other one."""
    text = given.get(name)
    if text is None:
        return default
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20 and low <= int(text) <= high):
        raise Refusal(400, f"`{name}` is a whole number from {low} to {high}")
    return int(text)
