"""`StoreRoutes`: the routes for stores, their rows by key and by range, counts, and watches."""

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
from kstreams.server.http_error import HttpError, unavailable
from kstreams.server.page import ARROW, JSON, as_response
from kstreams.server.store_query import (
    PAGE_PARAMETERS,
    RANGE_PARAMETERS,
    READ_PARAMETERS,
    REPEATED_KEY,
    TIME_PARAMETERS,
    WATCHED_KEY,
    StoreQueryParser,
)
from kstreams.server.store_query_service import StoreQueryService
from kstreams.server.watching import EVENTS, Watch, too_many_rows
from kstreams.state.api import StoreBuilder


class StoreRoutes:
    """Routes for stores.

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
        """Return the routes."""
        store = "/v1/stores/{store}"
        formats = (JSON, ARROW)
        of_key = (*READ_PARAMETERS, *PAGE_PARAMETERS, *TIME_PARAMETERS)
        of_rows = (*of_key, *RANGE_PARAMETERS)
        of_watch = tuple(
            parameter for parameter in (*of_rows, WATCHED_KEY) if parameter.name not in ("cursor", "local")
        )
        of_keys = (*READ_PARAMETERS, REPEATED_KEY)
        endpoints = (
            Endpoint("/v1/stores", "The queryable stores and their types.", self.stores),
            Endpoint(store, "A store, and the instances that have each partition.", self.store),
            Endpoint(f"{store}/keys", "The rows of several keys.", self.keys, of_keys, formats),
            Endpoint(f"{store}/keys/{{key:path}}", "The rows of a key.", self.rows, of_key, formats),
            Endpoint(
                f"{store}/rows",
                "All rows, or those of a range, a prefix or a time, in pages.",
                self.rows,
                of_rows,
                formats,
            ),
            Endpoint(f"{store}/count", "The number of entries, exact or approximate.", self.count, READ_PARAMETERS),
            Endpoint(f"{store}/watch", "Rows as they change with commits.", self.watch, of_watch, (EVENTS,)),
        )
        return tuple(dataclasses.replace(endpoint, is_of_stores=True) for endpoint in endpoints)

    async def stores(self, request: Request) -> Response:
        """Return the queryable stores."""
        reader = request.scope[READER]
        builders = self._service.streams.topology.stores.values()
        stores = [_description(store) for store in builders if store.queryable and reader.may_read(store.name)]
        return _json({"stores": sorted(stores, key=lambda store: str(store["name"]))})

    async def store(self, request: Request) -> Response:
        """Return a store and the hosts of its partitions."""
        store = self._parser.store(request)
        partitions = [
            {"partition": number, "active": _text(hosts.active), "standbys": [str(host) for host in hosts.standbys]}
            for number, hosts in self._service.partition_hosts(store.name).items()
        ]
        return _json({**_description(store), "partitions": partitions})

    async def rows(self, request: Request) -> Response:
        """Return a page of rows."""
        query = self._parser.of(request)
        page = self._service.page_nowait(query) or await self._service.page(query)
        return as_response(page, request, query.store)

    async def keys(self, request: Request) -> Response:
        """Return the rows of several keys, in the order of the keys in the request."""
        keys = request.query_params.getlist("key")
        if not 0 < len(keys) <= self._service.limits.page_rows:
            raise HttpError(400, f"`key` has to occur from 1 to {self._service.limits.page_rows} times")
        queries = self._parser.of_keys(request, keys)
        return as_response(await self._service.pages(queries), request, queries[0].store)

    async def count(self, request: Request) -> Response:
        """Return the number of entries."""
        count = await self._service.count(self._parser.of(request))
        return Response(msgspec.json.encode(count), media_type=JSON)

    async def watch(self, request: Request) -> Response:
        """Return a stream of events. A watch has no more rows than a page."""
        limits = self._service.limits
        if self._watches >= limits.watches:
            raise unavailable("there are too many watches: ask again")
        query = self._parser.watched(request)
        if "limit" not in query.parameters:
            query = replace(query, limit=limits.page_rows)
        self._watches += 1
        try:
            first_page = self._service.page_nowait(query) or await self._service.page(query)
            if first_page.next is not None:
                raise HttpError(400, too_many_rows(query))
        except BaseException:
            self._end_watch()
            raise
        return Watch(self._service, query, first_page, self._end_watch)

    def _end_watch(self) -> None:
        self._watches -= 1


def _description(store: StoreBuilder) -> dict[str, Any]:
    types = {"key": _type(store.key), "value": _type(store.value)}
    return {"name": store.name, "kind": store.kind.name, **types, "kept_in": store.store}


def _type(serde: Serde | None) -> str | None:
    return None if serde is None else type_name(serde)


def _text(host: object) -> str | None:
    return None if host is None else str(host)


def _json(content: Mapping[str, Any]) -> Response:
    return Response(msgspec.json.encode(content, enc_hook=str), media_type=JSON)
