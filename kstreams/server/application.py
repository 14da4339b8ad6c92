"""`application`: the queries of a running application as an ASGI application."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Sequence
from importlib.metadata import version
from importlib.resources import files
from types import MappingProxyType
from typing import Any

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
from kstreams.runtime.native.streams import KafkaStreams
from kstreams.server.endpoint import Endpoint
from kstreams.server.guard import Guard
from kstreams.server.limits import Limits
from kstreams.server.page import JSON
from kstreams.server.peers import Peers
from kstreams.server.refusal import moving
from kstreams.server.store_query import StoreQueryParser
from kstreams.server.store_query_service import StoreQueryService
from kstreams.server.store_routes import StoreRoutes
from kstreams.server.ui.activity import ActivityRoutes
from kstreams.server.ui.topic_routes import TopicRoutes
from kstreams.server.web.key_answers import KeyAnswers
from kstreams.server.web.readers import Readers, readers_in
from kstreams.server.web.router import Router


class ApplicationRoutes:
    """Answers questions of the application.

    Parameters
    ----------
    service : StoreQueryService
    """

    def __init__(self, service: StoreQueryService) -> None:
        self._service = service

    def endpoints(self) -> tuple[Endpoint, ...]:
        """The routes as data."""
        return (
            Endpoint("/v1/status", "The state of this instance and its counters.", self.status),
            Endpoint("/v1/lag", "Records that wait, and how far each store is in its changelog.", self.lag),
            Endpoint("/v1/metadata", "The threads of this instance, their tasks and next offsets.", self.metadata),
        )

    async def status(self, request: Request) -> Response:
        """State and counters."""
        streams = self._service.streams
        progress = await self._known(streams.progress)
        counts = {name: getattr(progress, name) for name in ("records_in", "commits", "lag", "restored", "stalls")}
        out = {"records_out": dict(progress.records_out), "dropped": sum(progress.dropped.values())}
        who = {"application_id": streams.config.application_id, "instance": self._service.instance, "pid": os.getpid()}
        return _json({**who, "state": streams.state.value, "paused": streams.is_paused, **counts, **out})

    async def lag(self, request: Request) -> Response:
        """What is left to do."""
        streams = self._service.streams
        progress, lags = await self._known(lambda: (streams.progress(), streams.all_local_store_partition_lags()))
        stores = [
            {"store": name, "partition": number, "offset": at.current_offset, "end": at.end_offset, "lag": at.lag}
            for name, places in lags.items()
            if streams.topology.stores[name].queryable
            for number, at in places.items()
        ]
        return _json({"instance": self._service.instance, "lag": progress.lag, "stores": stores})

    async def metadata(self, request: Request) -> Response:
        """Threads and tasks."""
        threads = [
            {"name": thread.name, "state": thread.state.value, "tasks": [_task(task) for task in thread.tasks]}
            for thread in await self._known(self._service.streams.metadata_for_local_threads)
        ]
        return _json({"instance": self._service.instance, "threads": threads})

    async def _known(self, ask: Any) -> Any:
        try:
            return await self._service.work.do(ask, self._service.limits.deadline_s)
        except KStreamsError:
            raise moving("the application does not answer now: ask again") from None


def _task(task: Any) -> dict[str, Any]:
    return {"id": task.task_id, "next_offsets": {str(source): offset for source, offset in task.next_offsets.items()}}


def _json(content: dict[str, Any]) -> Response:
    return Response(msgspec.json.encode(content, enc_hook=str), media_type=JSON)


_ENDED = (State.PENDING_ERROR, State.ERROR, State.PENDING_SHUTDOWN, State.NOT_RUNNING)


class OperationRoutes:
    """Answers who supervises and measures the process. Health needs no token: it tells one word.

    Parameters
    ----------
    service : StoreQueryService
    """

    def __init__(self, service: StoreQueryService) -> None:
        self._service = service
        self._registry = CollectorRegistry()
        self._registry.register(PrometheusCollector(service.streams))

    def endpoints(self) -> tuple[Endpoint, ...]:
        """The routes as data."""
        kinds = (CONTENT_TYPE_PLAIN_0_0_4,)
        return (
            Endpoint(
                "/health/live",
                "Whether the process is to go on: 503 when it is to be replaced.",
                self.live,
                is_open=True,
            ),
            Endpoint(
                "/health/ready", "Whether all its tasks run: 503 while stores are restored.", self.ready, is_open=True
            ),
            Endpoint("/metrics", "All metrics, as Prometheus reads them.", self.metrics, media_types=kinds),
        )

    async def live(self, request: Request) -> Response:
        """It lives until an error or a stop ends it."""
        return _health(self._service.streams.state not in _ENDED, "live")

    async def ready(self, request: Request) -> Response:
        """It is ready while all tasks that it was given run."""
        return _health(self._service.streams.state is State.RUNNING, "ready")

    async def metrics(self, request: Request) -> Response:
        """The metrics as they are now."""
        text = await self._service.work.do(lambda: generate_latest(self._registry), self._service.limits.deadline_s)
        return Response(text, media_type=CONTENT_TYPE_PLAIN_0_0_4)


def _health(holds: bool, word: str) -> Response:
    body = {"status": word if holds else f"not {word}"}
    return Response(msgspec.json.encode(body), 200 if holds else 503, media_type=JSON)


_TYPES = {"css": "text/css", "html": "text/html", "js": "text/javascript", "svg": "image/svg+xml"}
_FOLDER = files("kstreams.server.ui").joinpath("files")
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
HEADERS = MappingProxyType(
    {
        "Content-Security-Policy": _POLICY,
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
    }
)
"""What a browser may do with the page: load from its own server alone, and stand in no other page."""


def page_files() -> tuple[Endpoint, ...]:
    """A route for each file; the page itself is `/ui`."""
    texts = {file.name: file.read_text(encoding="utf-8") for file in _FOLDER.iterdir() if file.is_file()}
    page = _endpoint("/ui", texts.pop("index.html"), "html")
    return (page, *(_file(name, text) for name, text in sorted({**texts, "topology.css": stylesheet()}.items())))


def _file(name: str, text: str) -> Endpoint:
    return _endpoint(f"/ui/{name}", text, name.rpartition(".")[2])


def _endpoint(path: str, text: str, kind: str) -> Endpoint:
    async def answer(request: Request) -> Response:
        return Response(text, media_type=_TYPES[kind], headers=dict(HEADERS))

    return Endpoint(path, "A part of the page that shows the application.", answer, (), (_TYPES[kind],), is_open=True)


_REFUSALS = {
    "400": "The question makes no sense.",
    "401": "The token is missing or wrong.",
    "403": "The server is addressed by a name that it does not know.",
    "404": "There is no such store or partition.",
    "406": "The values are of several types, which no Arrow stream holds.",
    "413": "The request has a body.",
    "414": "The address is too long.",
    "431": "The headers are too long.",
    "500": "The question failed; the log of the application says why.",
    "503": "Not now: ask again after the seconds that Retry-After says.",
    "504": "There was no answer in time.",
}


def openapi(endpoints: Iterable[Endpoint], version: str, stores: Sequence[str] = ()) -> dict[str, Any]:
    """The document; it names the stores that may be asked.

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
    named = re.findall(r"{(\w+)", endpoint.path)
    parameters = {"store": stores}
    in_path = [
        {"name": name, "in": "path", "required": True, "schema": _schema("string", parameters.get(name, ()))}
        for name in named
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
    answers: dict[str, Any] = {kind: {} for kind in endpoint.media_types}
    refusals = {status: {"description": text} for status, text in _REFUSALS.items()}
    return {
        "summary": endpoint.about,
        "parameters": [*in_path, *in_query],
        "security": [] if endpoint.is_open else [{"token": []}],
        "responses": {"200": {"description": "The answer.", "content": answers}, **refusals},
    }


def _schema(kind: str, values: Sequence[str]) -> dict[str, Any]:
    return {"type": kind, "enum": list(values)} if values else {"type": kind}


HOSTS = ("127.0.0.1", "localhost", "[::1]")
_DEFAULT_LIMITS = Limits()


class QueryApplication:
    """What answers queries, as an ASGI application.

    Parameters
    ----------
    guard : Guard
    routes : sequence of Endpoint
    service : StoreQueryService
    key_answers : KeyAnswers
    """

    def __init__(
        self, guard: Guard, routes: Sequence[Endpoint], service: StoreQueryService, key_answers: KeyAnswers
    ) -> None:
        self._guard = guard
        self.routes = tuple(routes)
        self._service = service
        self.key_answers = key_answers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self._guard(scope, receive, send)

    def close(self) -> None:
        """Answer no more."""
        self._service.close()


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
    service = StoreQueryService(streams, Peers(token, certificate), limits)
    parser = StoreQueryParser(streams.topology, limits)
    of_application = (ApplicationRoutes, OperationRoutes, ActivityRoutes, TopicRoutes)
    groups = StoreRoutes(service, parser), *(routes(service) for routes in of_application)
    endpoints = [*(endpoint for group in groups for endpoint in group.endpoints()), *page_files(), *further_endpoints]
    stores = sorted(name for name, store in streams.topology.stores.items() if store.queryable)
    endpoints.append(_document(endpoints, stores))
    open_paths = [endpoint.path for endpoint in endpoints if endpoint.is_open]
    guard = Guard(Router(endpoints), readers, hosts, open_paths, limits)
    return QueryApplication(guard, endpoints, service, KeyAnswers(guard, parser, service))


def _document(endpoints: Sequence[Endpoint], stores: Sequence[str]) -> Endpoint:
    async def answer(request: Request) -> Response:
        return Response(content, media_type=JSON)

    document = Endpoint("/v1/openapi.json", "This document.", answer)
    content = msgspec.json.encode(openapi([*endpoints, document], version("kstreams-dsl"), stores))
    return document
