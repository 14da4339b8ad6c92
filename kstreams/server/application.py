"""`application`: the queries of a running application as an ASGI application."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from importlib.metadata import version

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from kstreams.runtime.native.streams import KafkaStreams
from kstreams.server.application_routes import ApplicationRoutes
from kstreams.server.asking import Asking
from kstreams.server.endpoint import Endpoint
from kstreams.server.guard import Guard
from kstreams.server.limits import Limits
from kstreams.server.openapi import openapi
from kstreams.server.operation_routes import OperationRoutes
from kstreams.server.page import JSON
from kstreams.server.peers import Peers
from kstreams.server.question import Questions
from kstreams.server.store_routes import StoreRoutes
from kstreams.server.ui.activity_routes import ActivityRoutes
from kstreams.server.ui.assets import page_files
from kstreams.server.ui.topic_routes import TopicRoutes
from kstreams.server.web.key_answers import KeyAnswers
from kstreams.server.web.readers import Readers, readers_in
from kstreams.server.web.router import Router

HOSTS = ("127.0.0.1", "localhost", "[::1]")
_DEFAULT_LIMITS = Limits()


class QueryApplication:
    """What answers queries, as an ASGI application.

    Parameters
    ----------
    guard : Guard
    routes : sequence of Endpoint
    asking : Asking
    key_answers : KeyAnswers
    """

    def __init__(self, guard: Guard, routes: Sequence[Endpoint], asking: Asking, key_answers: KeyAnswers) -> None:
        self._guard = guard
        self.routes = tuple(routes)
        self._asking = asking
        self.key_answers = key_answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._guard(scope, receive, send)

    def close(self) -> None:
        """Answer no more."""
        self._asking.close()


def application(
    streams: KafkaStreams,
    token: str,
    *,
    hosts: Collection[str] = HOSTS,
    limits: Limits = _DEFAULT_LIMITS,
    further_endpoints: Sequence[Endpoint] = (),
) -> QueryApplication:
    """The queries of a running application, to be mounted in an ASGI application or run by an ASGI server.

    Parameters
    ----------
    streams : KafkaStreams
    token : str
        What each request has to bring, as `Authorization: Bearer TOKEN`; at least 16 characters. Those of
        `server.readers.file` read some stores.
    hosts : collection of str
        The names by which the server may be addressed, without ports.
    limits : Limits
    endpoints : sequence of Endpoint
        Routes beside those of stores, of the application and for operations.

    Returns
    -------
    QueryApplication

    Raises
    ------
    ConfigError
        When a token is too short, or `server.readers.file` is not as it should be.

    Examples
    --------
    >>> from kstreams import KafkaStreams, StreamsBuilder
    >>> streams = KafkaStreams(StreamsBuilder(), {"application.id": "app"})
    >>> [route.path for route in application(streams, token="a-secret-that-is-long").routes][:2]
    ['/v1/stores', '/v1/stores/{store}']
    """
    readers = Readers(token, readers_in(streams.config["server.readers.file"]))
    certificate = streams.config["server.tls.certificate"]
    asking = Asking(streams, Peers(token, certificate), limits)
    questions = Questions(streams.topology, limits)
    of_application = (ApplicationRoutes, OperationRoutes, ActivityRoutes, TopicRoutes)
    groups = StoreRoutes(asking, questions), *(routes(asking) for routes in of_application)
    endpoints = [*(endpoint for group in groups for endpoint in group.endpoints()), *page_files(), *further_endpoints]
    stores = sorted(name for name, store in streams.topology.stores.items() if store.queryable)
    endpoints.append(_document(endpoints, stores))
    open_paths = [endpoint.path for endpoint in endpoints if endpoint.is_open]
    guard = Guard(Router(endpoints), readers, hosts, open_paths, limits)
    return QueryApplication(guard, endpoints, asking, KeyAnswers(guard, questions, asking))


def _document(endpoints: Sequence[Endpoint], stores: Sequence[str]) -> Endpoint:
    async def answer(request: Request) -> Response:
        return Response(content, media_type=JSON)

    document = Endpoint("/v1/openapi.json", "This document.", answer)
    content = msgspec.json.encode(openapi([*endpoints, document], version("kstreams-dsl"), stores))
    return document
