"""A real HTTP server in this process, which can go away and come back, and break connections."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope

Handler = Callable[[Request], Awaitable[Response]]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class HttpServer:
    """A server for one handler, with all paths and methods."""

    def __init__(self, handler: Handler) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        methods = ["GET", "POST", "PUT", "DELETE"]
        self._app = Starlette(routes=[Route("/{path:path}", handler, methods=methods)])

    async def _with_transport(self, scope: Scope, receive: Receive, send: Any) -> None:
        scope["transport"] = send.__self__.transport  # uvicorn's request cycle has it
        await self._app(scope, receive, send)

    def start(self) -> None:
        settings = uvicorn.Config(
            self._with_transport,
            host="127.0.0.1",
            port=self.port,
            log_level="critical",
            lifespan="off",
            interface="asgi3",
            proxy_headers=False,
            timeout_graceful_shutdown=0,
        )
        self._server = uvicorn.Server(settings)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        while not self._server.started:
            time.sleep(0.005)

    def stop(self) -> None:
        """Go away. Open connections are closed."""
        self._server.should_exit = True
        self._server.force_exit = True
        self._thread.join(10)
        assert not self._thread.is_alive()


@contextmanager
def serving(handler: Handler) -> Iterator[HttpServer]:
    server = HttpServer(handler)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def reset(request: Request) -> None:
    """Break the connection of a request: its client reads ECONNRESET."""
    transport = request.scope["transport"]
    connection = transport.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()


async def slowly(response: Response, seconds: float) -> Response:
    await asyncio.sleep(seconds)
    return response
