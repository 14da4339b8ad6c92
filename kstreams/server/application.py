"""`application`: the ASGI application that answers queries of a running Kafka Streams application."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from importlib.metadata import version
from importlib.resources import files
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from kstreams.diagram.svg import stylesheet
from kstreams.errors import KStreamsError
from kstreams.metrics.prometheus import PrometheusCollector
from kstreams.runtime.native.lifecycle import State
from kstreams.runtime.native.stores.metadata import TaskMetadata
from kstreams.runtime.native.streams import KafkaStreams
from kstreams.server.endpoint import Endpoint
from kstreams.server.guard import Guard
from kstreams.server.http_error import unavailable
from kstreams.server.limits import Limits
from kstreams.server.page import JSON
from kstreams.server.peers import Peers
from kstreams.server.store_query import StoreQueryParser
from kstreams.server.store_query_service import StoreQueryService
from kstreams.server.store_routes import StoreRoutes
from kstreams.server.ui.activity import ActivityRoutes
from kstreams.server.ui.topic_routes import TopicRoutes
from kstreams.server.web.key_responses import KeyResponses
from kstreams.server.web.readers import Readers, readers_in
from kstreams.server.web.router import Router

Result = TypeVar("Result")


class ApplicationRoutes:
    """Routes for the state, the lag and the tasks of this instance.

    Parameters
    ----------
    service : StoreQueryService
    """

    def __init__(self, service: StoreQueryService) -> None:
        self._service = service

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return the routes."""
        return (
            Endpoint("/v1/status", "The state of this instance and its counters.", self.status),
            Endpoint("/v1/lag", "The input lag, and the changelog lag of each store partition.", self.lag),
            Endpoint("/v1/metadata", "The threads of this instance, their tasks and next offsets.", self.metadata),
        )

    async def status(self, request: Request) -> Response:
        """Return the state and the counters."""
        streams = self._service.streams
        progress = await self._run(streams.progress)
        status = {
            "application_id": streams.config.application_id,
            "instance": self._service.instance,
            "pid": os.getpid(),
            "state": streams.state.value,
            "paused": streams.is_paused,
            "records_in": progress.records_in,
            "commits": progress.commits,
            "lag": progress.lag,
            "restored": progress.restored,
            "stalls": progress.stalls,
            "records_out": dict(progress.records_out),
            "dropped": sum(progress.dropped.values()),
        }
        return _json(status)

    async def lag(self, request: Request) -> Response:
        """Return the lag of the input topics and of the stores."""
        streams = self._service.streams
        progress, store_lags = await self._run(lambda: (streams.progress(), streams.all_local_store_partition_lags()))
        stores = [
            {"store": name, "partition": number, "offset": lag.current_offset, "end": lag.end_offset, "lag": lag.lag}
            for name, partition_lags in store_lags.items()
            if streams.topology.stores[name].queryable
            for number, lag in partition_lags.items()
        ]
        return _json({"instance": self._service.instance, "lag": progress.lag, "stores": stores})

    async def metadata(self, request: Request) -> Response:
        """Return the threads and their tasks."""
        threads = [
            {"name": thread.name, "state": thread.state.value, "tasks": [_task(task) for task in thread.tasks]}
            for thread in await self._run(self._service.streams.metadata_for_local_threads)
        ]
        return _json({"instance": self._service.instance, "threads": threads})

    async def _run(self, function: Callable[[], Result]) -> Result:
        try:
            return await self._service.executor.run(function, self._service.limits.deadline_s)
        except KStreamsError:
            raise unavailable("the application does not answer now: ask again") from None


def _task(task: TaskMetadata) -> dict[str, Any]:
    return {"id": task.task_id, "next_offsets": {str(source): offset for source, offset in task.next_offsets.items()}}


def _json(content: dict[str, Any]) -> Response:
    return Response(msgspec.json.encode(content, enc_hook=str), media_type=JSON)


_STOPPED = (State.PENDING_ERROR, State.ERROR, State.PENDING_SHUTDOWN, State.NOT_RUNNING)


class OperationRoutes:
    """Routes for health checks and metrics. Health checks need no token, because they reveal nothing but the state.

    Parameters
    ----------
    service : StoreQueryService
    """

    def __init__(self, service: StoreQueryService) -> None:
        self._service = service
        self._registry = CollectorRegistry()
        self._registry.register(PrometheusCollector(service.streams))

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return the routes."""
        media_types = (CONTENT_TYPE_PLAIN_0_0_4,)
        return (
            Endpoint("/health/live", "Liveness: 503 if the process has to be replaced.", self.live, is_open=True),
            Endpoint("/health/ready", "Readiness: 503 while stores are restored.", self.ready, is_open=True),
            Endpoint("/metrics", "All metrics in the format of Prometheus.", self.metrics, media_types=media_types),
        )

    async def live(self, request: Request) -> Response:
        """Return 200 until an error or a stop ends the application."""
        return _health(self._service.streams.state not in _STOPPED, "live")

    async def ready(self, request: Request) -> Response:
        """Return 200 while all assigned tasks run."""
        return _health(self._service.streams.state is State.RUNNING, "ready")

    async def metrics(self, request: Request) -> Response:
        """Return the present metrics."""
        text = await self._service.executor.run(
            lambda: generate_latest(self._registry), self._service.limits.deadline_s
        )
        return Response(text, media_type=CONTENT_TYPE_PLAIN_0_0_4)


def _health(is_healthy: bool, word: str) -> Response:
    body = {"status": word if is_healthy else f"not {word}"}
    return Response(msgspec.json.encode(body), 200 if is_healthy else 503, media_type=JSON)


_MEDIA_TYPES = {"css": "text/css", "html": "text/html", "js": "text/javascript", "svg": "image/svg+xml"}
_FOLDER = files("kstreams.server.ui").joinpath("files")
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
PAGE_HEADERS = MappingProxyType(
    {
        "Content-Security-Policy": _POLICY,
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
    }
)
"""Headers with which a browser loads parts of the page from this server only, and shows it in no frame."""


def page_files() -> tuple[Endpoint, ...]:
    """Return a route for each file. The page itself is `/ui`."""
    texts = {file.name: file.read_text(encoding="utf-8") for file in _FOLDER.iterdir() if file.is_file()}
    page = _endpoint("/ui", texts.pop("index.html"), "html")
    return (page, *(_file(name, text) for name, text in sorted({**texts, "topology.css": stylesheet()}.items())))


def _file(name: str, text: str) -> Endpoint:
    return _endpoint(f"/ui/{name}", text, name.rpartition(".")[2])


def _endpoint(path: str, text: str, kind: str) -> Endpoint:
    async def answer(request: Request) -> Response:
        return Response(text, media_type=_MEDIA_TYPES[kind], headers=dict(PAGE_HEADERS))

    summary = "A part of the page that shows the application."
    return Endpoint(path, summary, answer, (), (_MEDIA_TYPES[kind],), is_open=True)


_ERROR_DESCRIPTIONS = {
    "400": "A parameter is missing, unknown or wrong.",
    "401": "The token is missing or wrong.",
    "403": "The header `Host` does not name this server, or the token does not cover this route.",
    "404": "There is no such store or partition.",
    "406": "The values are of several types, which an Arrow stream cannot hold.",
    "413": "The request has a body.",
    "414": "The URL is too long.",
    "431": "The headers are too long.",
    "500": "The request failed. The log of the application has the reason.",
    "503": "The application cannot answer now. Ask again after the seconds in `Retry-After`.",
    "504": "The application did not answer in time.",
}


def openapi(endpoints: Iterable[Endpoint], version: str, stores: Sequence[str] = ()) -> dict[str, Any]:
    """Return the OpenAPI document, which names the queryable stores.

    Examples
    --------
    >>> openapi([], "1")["openapi"]
    '3.1.0'
    """
    return {
        "openapi": "3.1.0",
        "info": {"title": "Stores of a kstreams application", "version": version},
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "paths": {
            endpoint.path.replace(":path}", "}"): {"get": _operation(endpoint, stores)} for endpoint in endpoints
        },
    }


def _operation(endpoint: Endpoint, stores: Sequence[str]) -> dict[str, Any]:
    values = {"store": stores}
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": _schema("string", values.get(name, ()))}
        for name in re.findall(r"{(\w+)", endpoint.path)
    ]
    in_query = [
        {
            "name": parameter.name,
            "in": "query",
            "description": parameter.about,
            "schema": _schema(parameter.kind, parameter.values),
        }
        for parameter in endpoint.parameters
    ]
    content: dict[str, Any] = {media_type: {} for media_type in endpoint.media_types}
    errors = {status: {"description": text} for status, text in _ERROR_DESCRIPTIONS.items()}
    return {
        "summary": endpoint.about,
        "parameters": [*in_path, *in_query],
        "security": [] if endpoint.is_open else [{"token": []}],
        "responses": {"200": {"description": "The answer.", "content": content}, **errors},
    }


def _schema(kind: str, values: Sequence[str]) -> dict[str, Any]:
    return {"type": kind, "enum": list(values)} if values else {"type": kind}


HOSTS = ("127.0.0.1", "localhost", "[::1]")
_DEFAULT_LIMITS = Limits()


class QueryApplication:
    """An ASGI application that answers queries.

    Parameters
    ----------
    guard : Guard
    routes : sequence of Endpoint
    service : StoreQueryService
    key_responses : KeyResponses
    """

    def __init__(
        self, guard: Guard, routes: Sequence[Endpoint], service: StoreQueryService, key_responses: KeyResponses
    ) -> None:
        self._guard = guard
        self.routes = tuple(routes)
        self._service = service
        self.key_responses = key_responses

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._guard(scope, receive, send)

    def close(self) -> None:
        """Stop answering queries."""
        self._service.close()


def application(
    streams: KafkaStreams,
    token: str,
    *,
    hosts: Collection[str] = HOSTS,
    limits: Limits = _DEFAULT_LIMITS,
    further_endpoints: Sequence[Endpoint] = (),
) -> QueryApplication:
    """Return an ASGI application that answers queries. An ASGI server runs it, or another application mounts it.

    Parameters
    ----------
    streams : KafkaStreams
    token : str
        The token that each request needs, as `Authorization: Bearer TOKEN`. It has at least 16 characters. The tokens
        in `server.readers.file` give access to some stores only.
    hosts : collection of str
        The names that the header `Host` of a request may have, without ports.
    limits : Limits
    further_endpoints : sequence of Endpoint
        Routes in addition to those of the package.

    Returns
    -------
    QueryApplication

    Raises
    ------
    ConfigError
        If a token is too short, or `server.readers.file` is missing, unsafe or malformed.

    Examples
    --------
    >>> from kstreams import KafkaStreams, StreamsBuilder
    >>> streams = KafkaStreams(StreamsBuilder(), {"application.id": "app"})
    >>> [route.path for route in application(streams, token="a-secret-that-is-long").routes][:2]
    ['/v1/stores', '/v1/stores/{store}']
    """
    readers = Readers(token, readers_in(streams.config["server.readers.file"]))
    certificate = streams.config["server.tls.certificate"]
    service = StoreQueryService(streams, Peers(token, certificate), limits)
    parser = StoreQueryParser(streams.topology, limits)
    groups = (
        StoreRoutes(service, parser),
        ApplicationRoutes(service),
        OperationRoutes(service),
        ActivityRoutes(service),
        TopicRoutes(service),
    )
    endpoints = [*(endpoint for group in groups for endpoint in group.endpoints()), *page_files(), *further_endpoints]
    stores = sorted(name for name, store in streams.topology.stores.items() if store.queryable)
    endpoints.append(_document(endpoints, stores))
    open_paths = [endpoint.path for endpoint in endpoints if endpoint.is_open]
    guard = Guard(Router(endpoints), readers, hosts, open_paths, limits)
    return QueryApplication(guard, endpoints, service, KeyResponses(guard, parser, service))


def _document(endpoints: Sequence[Endpoint], stores: Sequence[str]) -> Endpoint:
    async def answer(request: Request) -> Response:
        return Response(content, media_type=JSON)

    document = Endpoint("/v1/openapi.json", "This document.", answer)
    content = msgspec.json.encode(openapi([*endpoints, document], version("kstreams-dsl"), stores))
    return document
