"""`application`: the queries of a running application as an ASGI application."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from importlib.metadata import version

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kstreams.errors import ConfigError
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
from kstreams.server.question import refuse_unknown
from kstreams.server.refusal import Refusal
from kstreams.server.store_routes import StoreRoutes

logger = logging.getLogger(__name__)

HOSTS = ("127.0.0.1", "localhost", "[::1]")
_LEAST_TOKEN = 16
_DEFAULT_LIMITS = Limits()


def application(
    streams: KafkaStreams,
    token: str,
    *,
    hosts: Collection[str] = HOSTS,
    limits: Limits = _DEFAULT_LIMITS,
    further: Sequence[Endpoint] = (),
) -> Starlette:
    """The queries of a running application, to be mounted in an ASGI application or run by an ASGI server.

    Parameters
    ----------
    streams : KafkaStreams
    token : str
        What each request has to bring, as `Authorization: Bearer TOKEN`; at least 16 characters.
    hosts : collection of str
        The names by which the server may be addressed, without ports.
    limits : Limits
    further : sequence of Endpoint
        Routes beside those of stores, of the application and for operations.

    Returns
    -------
    Starlette

    Raises
    ------
    ConfigError
        When the token is too short.

    Examples
    --------
    >>> from kstreams import KafkaStreams, StreamsBuilder
    >>> streams = KafkaStreams(StreamsBuilder(), {"application.id": "app"})
    >>> [route.path for route in application(streams, token="a-secret-that-is-long").routes][:2]
    ['/v1/stores', '/v1/stores/{store}']
    """
    if len(token) < _LEAST_TOKEN or not token.isascii():
        raise ConfigError(f"the token of the server needs at least {_LEAST_TOKEN} characters, all of them ASCII")
    certificate = streams.config["server.tls.certificate"]
    asking = Asking(streams, Peers(token, certificate), limits)
    groups = StoreRoutes(asking), ApplicationRoutes(asking), OperationRoutes(asking)
    endpoints = [*(endpoint for group in groups for endpoint in group.endpoints()), *further]
    stores = sorted(name for name, store in streams.topology.stores.items() if store.queryable)
    endpoints.append(_document(endpoints, stores))
    made = Starlette(
        routes=[_route(endpoint) for endpoint in endpoints],
        exception_handlers={Refusal: _refused, HTTPException: _not_found, Exception: _failed},
    )
    made.router.redirect_slashes = False
    open_paths = [endpoint.path for endpoint in endpoints if endpoint.is_open]
    made.add_middleware(Guard, token=token, hosts=hosts, open_paths=open_paths, limits=limits)
    made.state.asking = asking
    return made


def _document(endpoints: Sequence[Endpoint], stores: Sequence[str]) -> Endpoint:
    async def answer(request: Request) -> Response:
        return Response(content, media_type=JSON)

    document = Endpoint("/v1/openapi.json", "This document.", answer)
    content = msgspec.json.encode(openapi([*endpoints, document], version("kstreams-dsl"), stores))
    return document


def _route(endpoint: Endpoint) -> Route:
    route = Route(endpoint.path, _checked(endpoint), methods=["GET"])
    route.methods = {"GET"}  # without HEAD, which Starlette adds
    return route


def _checked(endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        refuse_unknown(request, endpoint.parameters)
        return await endpoint.answer(request)

    return answer


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return error.response()


def _not_found(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 404)
    return Refusal(status, "there is no such route" if status == 404 else "only GET is known here").response()


def _failed(request: Request, error: Exception) -> Response:
    logger.error("a request failed", exc_info=error)
    return Refusal(500, "the question failed; the log of the application says why").response()
