"""The routes of stores: what there is, rows by key and by range, counts, and rows as they change."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response

from kstreams.serdes import Serde, type_name
from kstreams.server.endpoint import Endpoint
from kstreams.server.guard import READER
from kstreams.server.page import ARROW, JSON, as_response
from kstreams.server.refusal import Refusal, moving
from kstreams.server.store_query import HOW, KEYS, ONE_KEY, PAGES, SOME_KEYS, TIMES, StoreQueryParser
from kstreams.server.store_query_service import StoreQueryService
from kstreams.server.watching import EVENTS, Watch, too_many
from kstreams.state.api import StoreBuilder


class StoreRoutes:
    """Answers questions of stores.

    Parameters
    ----------
    service : StoreQueryService
    parser : StoreQueryParser
    """

    def __init__(self, service: StoreQueryService, parser: StoreQueryParser) -> None:
        self._service = service
        self._parser = parser
        self._watches = 0

    def endpoints(self) -> tuple[Endpoint, ...]:
        """The routes as data."""
        store = "/v1/stores/{store}"
        both = (JSON, ARROW)
        key = (*HOW, *PAGES, *TIMES)
        rows = (*HOW, *PAGES, *TIMES, *KEYS)
        watched = tuple(parameter for parameter in (*rows, ONE_KEY) if parameter.name not in ("cursor", "local"))
        endpoints = (
            Endpoint("/v1/stores", "The stores that may be asked, and their types.", self.stores),
            Endpoint(store, "A store, and which instance has each partition of it.", self.store),
            Endpoint(f"{store}/keys", "The rows of several keys.", self.keys, (*HOW, SOME_KEYS), both),
            Endpoint(f"{store}/keys/{{key:path}}", "The rows of a key.", self.rows, key, both),
            Endpoint(
                f"{store}/rows", "The rows of a range, a prefix, a time, or all, in pages.", self.rows, rows, both
            ),
            Endpoint(f"{store}/count", "How many entries there are, or roughly so many.", self.count, HOW),
            Endpoint(f"{store}/watch", "Rows as they change with commits.", self.watch, watched, (EVENTS,)),
        )
        return tuple(dataclasses.replace(parameter, is_of_stores=True) for parameter in endpoints)

    async def stores(self, request: Request) -> Response:
        """All that are declared queryable."""
        reader = request.scope[READER]
        builders = self._service.streams.topology.stores.values()
        described = [_described(store) for store in builders if store.queryable and reader.may_read(store.name)]
        return _json({"stores": sorted(described, key=lambda store: str(store["name"]))})

    async def store(self, request: Request) -> Response:
        """One of them."""
        store = self._parser.store(request)
        holders = self._service.holders(store.name)
        places = [
            {"partition": number, "active": _text(holder.active), "standbys": [str(host) for host in holder.standbys]}
            for number, holder in holders.items()
        ]
        return _json({**_described(store), "partitions": places})

    async def rows(self, request: Request) -> Response:
        """A page."""
        query = self._parser.of(request)
        page = self._service.at_once(query) or await self._service.page(query)
        return as_response(page, request, query.store)

    async def keys(self, request: Request) -> Response:
        """The rows of keys, in the order in which they are asked for."""
        keys = request.query_params.getlist("key")
        if not 0 < len(keys) <= self._service.limits.page_rows:
            raise Refusal(400, f"`key` is to be given from once to {self._service.limits.page_rows} times")
        queries = self._parser.of_keys(request, keys)
        return as_response(await self._service.pages(queries), request, queries[0].store)

    async def count(self, request: Request) -> Response:
        """A number."""
        count = await self._service.count(self._parser.of(request))
        return Response(msgspec.json.encode(count), media_type=JSON)

    async def watch(self, request: Request) -> Response:
        """Events, of no more rows than a page has."""
        limits = self._service.limits
        if self._watches >= limits.watches:
            raise moving("too many questions are watched: ask again")
        query = self._parser.watched(request)
        if "limit" not in query.parameters:
            query = replace(query, limit=limits.page_rows)
        self._watches += 1
        try:
            first = self._service.at_once(query) or await self._service.page(query)
            if first.next is not None:
                raise Refusal(400, too_many(query))
        except BaseException:
            self._end_watch()
            raise
        return Watch(self._service, query, first, self._end_watch)

    def _end_watch(self) -> None:
        self._watches -= 1


def _described(store: StoreBuilder) -> dict[str, Any]:
    types = {"key": _type(store.key), "value": _type(store.value)}
    return {"name": store.name, "kind": store.kind.name, **types, "kept_in": store.store}


def _type(serde: Serde | None) -> str | None:
    return None if serde is None else type_name(serde)


def _text(host: object) -> str | None:
    return None if host is None else str(host)


def _json(content: Mapping[str, Any]) -> Response:
    return Response(msgspec.json.encode(content, enc_hook=str), media_type=JSON)
