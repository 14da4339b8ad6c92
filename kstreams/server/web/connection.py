"""`HttpConnection`: an HTTP connection that closes if the client is slow or sends too much."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from kstreams.server.limits import Limits
from kstreams.server.web.key_responses import KeyResponses

_MIN_READ_BYTES = 4_096
"""The number of bytes that a client has to read within `Limits.write_s`."""


class HttpConnection(HttpToolsProtocol):
    """The protocol of uvicorn, with a timeout for each wait for the client.

    Uvicorn itself limits only the idle time between two requests.

    Parameters
    ----------
    limits : Limits
    key_responses : KeyResponses
        Answers requests for keys before uvicorn starts a task of the event loop.
    **options
        The arguments of uvicorn.
    """

    def __init__(self, limits: Limits, key_responses: KeyResponses, **options: Any) -> None:
        super().__init__(**options)
        self._limits = limits
        self._key_responses = key_responses
        self._has_headers = False
        self._header_bytes = 0
        self._is_answered = False
        self._has_requested = False
        self._last_request_s = self.loop.time()
        self._header_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request, within a timeout. At the limit of connections, close an idle one."""
        super().connection_made(transport)
        if len(self.connections) >= self._limits.connections:
            self._close_idle_connection()
        self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timers."""
        super().connection_lost(exc)
        _cancel(self._header_timer)
        _cancel(self._write_timer)

    def data_received(self, data: bytes) -> None:
        """Process a part of a request, or several requests."""
        super().data_received(data)
        if self._has_headers and self.timeout_keep_alive_task is None and self._is_answered:
            self._is_answered = False
            self.timeout_keep_alive_task = self.loop.call_later(self._limits.idle_s, self.timeout_keep_alive_handler)
        if self._has_headers and (self.timeout_keep_alive_task is not None or not self._is_idle()):
            _cancel(self._header_timer)
            self._header_timer = None
            return
        self._header_bytes += len(data)
        if self._header_bytes > self._limits.target_bytes + self._limits.header_bytes:
            self.transport.abort()
        elif self._header_timer is None:
            self._await_headers()

    def on_message_begin(self) -> None:
        """Note that a request begins."""
        super().on_message_begin()
        self._has_headers = False
        self._header_bytes = 0

    def on_headers_complete(self) -> None:
        """Answer a request for a key now. Leave every other request to uvicorn."""
        self._has_headers = True
        self._has_requested = True
        self._last_request_s = self.loop.time()
        response = self._key_response() if self._is_idle() and not self.flow.write_paused else None
        self._is_answered = response is not None
        if response is None:
            super().on_headers_complete()
        else:
            self.transport.write(response)

    def on_message_complete(self) -> None:
        """Leave a request to uvicorn unless it is answered."""
        if not self._is_answered:
            super().on_message_complete()

    def _key_response(self) -> bytes | None:
        parser = self.parser
        is_plain = parser.get_method() == b"GET" and parser.get_http_version() == "1.1" and parser.should_keep_alive()
        if not is_plain or len(self.connections) >= self._limits.connections:
            return None
        return self._key_responses.response(self.url, self.headers, self.server_state.default_headers)

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _close_idle_connection(self) -> None:
        other_connections: Iterable[Any] = self.connections - {self}
        idle_connections = [connection for connection in other_connections if connection._may_be_closed()]
        if idle_connections:
            idle_connection = min(idle_connections, key=HttpConnection._priority)
            idle_connection.transport.abort()
            # uvicorn counts the connections before the event loop calls `connection_lost`
            self.connections.discard(idle_connection)

    def _may_be_closed(self) -> bool:
        return self._is_idle() and not self.transport.get_write_buffer_size()

    def _priority(self) -> tuple[bool, float]:
        """Return a sort key: connections without a request first, then those with the oldest last request."""
        return self._has_requested, self._last_request_s

    def pause_writing(self) -> None:
        """Start the timeout for the client to read: the write buffer is full."""
        super().pause_writing()
        self._await_client()

    def resume_writing(self) -> None:
        """Cancel the timeout: the client has read the write buffer."""
        super().resume_writing()
        _cancel(self._write_timer)

    def timeout_keep_alive_handler(self) -> None:
        """Close the idle connection, also if the client has not read the last response."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        super().timeout_keep_alive_handler()

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing: the server supports no upgrade on purpose."""

    def _await_headers(self) -> None:
        self._header_timer = self.loop.call_later(self._limits.header_s, self.transport.abort)

    def _await_client(self, last_buffer_bytes: int | None = None) -> None:
        """Close the connection unless the client has read enough since the last check."""
        buffer_bytes = self.transport.get_write_buffer_size()
        if last_buffer_bytes is not None and buffer_bytes > last_buffer_bytes - _MIN_READ_BYTES:
            self.transport.abort()
        else:
            self._write_timer = self.loop.call_later(self._limits.write_s, self._await_client, buffer_bytes)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
