"""`WebServer`: an HTTP server in a thread, for requests of limited size. It needs the extra `server`."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TypeAlias

from kstreams.errors import ConnectorError, ConnectorUnavailableError

try:
    import uvicorn
    from starlette.requests import ClientDisconnect
    from starlette.requests import Request as ReceivedRequest
    from starlette.responses import PlainTextResponse
    from starlette.types import Receive, Scope, Send
except ModuleNotFoundError as error:
    raise ConnectorError(
        "a webhook needs Starlette and uvicorn: install them with `pip install 'kstreams-dsl[http,server]'`"
    ) from error

_BODY_S = 30.0
_STOP_S = 5.0
_MAX_CONNECTIONS = 1_000


@dataclass(frozen=True, slots=True)
class Request:
    """A request. The names of headers are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class TextResponse:
    """The response to a request, as text."""

    status: HTTPStatus
    text: str
    headers: Mapping[str, str] = field(default_factory=dict)


Answering: TypeAlias = Callable[[Request], Awaitable[TextResponse]]


class WebServer:
    """An HTTP server in a thread. It listens when it is created.

    Parameters
    ----------
    host : str
    port : int
    answer : callable
        Called in the thread of the server, once for each request.
    max_body_bytes : int
        Longer requests are answered 413.

    Raises
    ------
    ConnectorUnavailableError
        If the port is in use.
    """

    def __init__(self, host: str, port: int, answer: Answering, max_body_bytes: int) -> None:
        self._answer = answer
        self._max_body_bytes = max_body_bytes
        self._socket = _listening_socket(host, port)
        self._server = uvicorn.Server(_settings(self._serve))
        self._thread = threading.Thread(
            target=self._server.run, args=([self._socket],), name="kstreams-webhook", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop listening, and wait until the requests in progress are answered, at most 5 s."""
        self._server.should_exit = True
        self._thread.join(_STOP_S)
        self._socket.close()

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        received = ReceivedRequest(scope, receive)
        try:
            answer = await self._answer_to(received)
        except ClientDisconnect:
            return
        response = PlainTextResponse(answer.text + "\n", answer.status, dict(answer.headers))
        await response(scope, receive, send)

    async def _answer_to(self, received: ReceivedRequest) -> TextResponse:
        try:
            body = await asyncio.wait_for(self._body(received), _BODY_S)
        except TimeoutError:
            return TextResponse(HTTPStatus.REQUEST_TIMEOUT, "the body came too slowly", {"connection": "close"})
        if len(body) > self._max_body_bytes:
            too_long = f"the body is longer than {self._max_body_bytes:,} bytes"
            return TextResponse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, too_long, {"connection": "close"})
        return await self._answer(Request(received.method, received.scope["path"], received.headers, body))

    async def _body(self, received: ReceivedRequest) -> bytes:
        """Return the body, or its beginning if it is too long."""
        body = bytearray()
        async for part in received.stream():
            body += part
            if len(body) > self._max_body_bytes:
                break
        return bytes(body)


def _settings(application: Callable[[Scope, Receive, Send], Awaitable[None]]) -> uvicorn.Config:
    return uvicorn.Config(
        application,
        loop="asyncio",
        ws="none",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=_MAX_CONNECTIONS,
        timeout_graceful_shutdown=2,
    )


def _listening_socket(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    server_socket = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        server_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server_socket.bind((host, port))
        server_socket.listen(128)
    except OSError as error:
        server_socket.close()
        raise ConnectorUnavailableError(
            f"the webhook cannot listen at {host}:{port}: {error.strerror or error}"
        ) from error
    return server_socket
