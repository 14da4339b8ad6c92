"""`HttpConnection`: one connection of HTTP, which is given up when its other end is slow or sends too much."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from kstreams.server.limits import Limits
from kstreams.server.web.key_answers import KeyAnswers

_LEAST_BYTES = 4_096  # that a reader takes of what waits for it, from one look to the next


class HttpConnection(HttpToolsProtocol):
    """What uvicorn makes of a socket, with a time limit wherever it waits for the other end.

    Uvicorn itself limits only the idle time between two requests.

    Parameters
    ----------
    limits : Limits
    key_answers : KeyAnswers
        Asked first: what it answers needs no task of the event loop.
    **given
        What uvicorn gives.
    """

    def __init__(self, limits: Limits, key_answers: KeyAnswers, **options: Any) -> None:
        super().__init__(**options)
        self._limits = limits
        self._key_answers = key_answers
        self._has_head = False
        self._head_bytes = 0
        self._is_answered = False
        self._has_asked = False
        self._last_request_s = self.loop.time()
        self._head_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request, though not for long; at the limit, a connection without a request gives way."""
        super().connection_made(transport)
        if len(self.connections) >= self._limits.connections:
            self._take_a_place()
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait for nothing more."""
        super().connection_lost(exc)
        _end(self._head_timer)
        _end(self._write_timer)

    def data_received(self, data: bytes) -> None:
        """Take a part of a request, or several requests."""
        super().data_received(data)
        if self._has_head and self.timeout_keep_alive_task is None and self._is_answered:
            self._is_answered = False
            self.timeout_keep_alive_task = self.loop.call_later(self._limits.idle_s, self.timeout_keep_alive_handler)
        if self._has_head and (self.timeout_keep_alive_task is not None or not self._is_idle()):
            _end(self._head_timer)
            self._head_timer = None
            return
        self._head_bytes += len(data)
        if self._head_bytes > self._limits.target_bytes + self._limits.header_bytes:
            self.transport.abort()
        elif self._head_timer is None:
            self._await_head()

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        super().on_message_begin()
        self._has_head = False
        self._head_bytes = 0

    def on_headers_complete(self) -> None:
        """All but the body is there."""
        self._has_head = True
        self._has_asked = True
        self._last_request_s = self.loop.time()
        answer = self._key_answer() if self._is_idle() and not self.flow.write_paused else None
        self._is_answered = answer is not None
        if answer is None:
            super().on_headers_complete()
        else:
            self.transport.write(answer)

    def on_message_complete(self) -> None:
        """The body is there too."""
        if not self._is_answered:
            super().on_message_complete()

    def _key_answer(self) -> bytes | None:
        parser = self.parser
        is_plain = parser.get_method() == b"GET" and parser.get_http_version() == "1.1" and parser.should_keep_alive()
        if not is_plain or len(self.connections) >= self._limits.connections:
            return None
        return self._key_answers.answer(self.url, self.headers, self.server_state.default_headers)

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _take_a_place(self) -> None:
        """Close the connection that has the least claim to be answered, if one of the others waits for nothing."""
        other_connections: Iterable[Any] = self.connections - {self}
        idle = [connection for connection in other_connections if connection._may_be_closed()]
        if idle:
            idle_connection = min(idle, key=HttpConnection._claim)
            idle_connection.transport.abort()
            self.connections.discard(
                idle_connection
            )  # now: the loop calls connection_lost later, and uvicorn counts before

    def _may_be_closed(self) -> bool:
        return self._is_idle() and not self.transport.get_write_buffer_size()

    def _claim(self) -> tuple[bool, float]:
        """Least for connections that never sent a request, then for those whose last request is long ago."""
        return self._has_asked, self._last_request_s

    def pause_writing(self) -> None:
        """More waits to be written than is to be kept for a reader."""
        super().pause_writing()
        self._await_reader()

    def resume_writing(self) -> None:
        """The reader has read."""
        super().resume_writing()
        _end(self._write_timer)

    def timeout_keep_alive_handler(self) -> None:
        """Nothing was asked for a while; what is not read by now never is."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        super().timeout_keep_alive_handler()

    def _unsupported_upgrade_warning(self) -> None:
        """It is no news that only HTTP is spoken here."""

    def _await_head(self) -> None:
        self._head_timer = self.loop.call_later(self._limits.header_s, self.transport.abort)

    def _await_reader(self, timeout_s: int | None = None) -> None:
        """Look from time to time whether what waits becomes less."""
        now = self.transport.get_write_buffer_size()
        if timeout_s is not None and now > timeout_s - _LEAST_BYTES:
            self.transport.abort()
        else:
            self._write_timer = self.loop.call_later(self._limits.write_s, self._await_reader, now)


def _end(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
