"""An application that runs with its server, and who asks it."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from kstreams.config import Config
from kstreams.runtime.native.state.restore import OnRestore
from kstreams.runtime.native.stores.metadata import HostInfo
from kstreams.runtime.native.streams import KafkaStreams
from kstreams.server import Limits, Server
from tests.native.world import WAIT_S, World


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    """Asks one instance, each time over a connection of its own."""

    def __init__(self, host: HostInfo, token: str) -> None:
        self.host, self.token = host, token

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.host.host, self.host.port, timeout=WAIT_S)

    def raw(self, buffer_bytes: int | None = None) -> socket.socket:
        """A socket that is connected, with so small a buffer for what it has not read."""
        made = socket.socket()
        made.settimeout(WAIT_S)
        if buffer_bytes is not None:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
        made.connect(self.host[:2])
        return made

    def request(self, target: str, *headers: str) -> bytes:
        """The bytes of a request."""
        lines = (f"GET {target} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {self.token}", *headers, "", "")
        return "\r\n".join(lines).encode()

    def ask(self, target: str, method: str = "GET", **headers: str) -> Answer:
        """Headers have underscores for dashes; without `Authorization` the right token is sent."""
        given = {"Authorization": f"Bearer {self.token}", **{k.replace("_", "-"): v for k, v in headers.items()}}
        connection = self.connection()
        try:
            connection.request(method, target, headers={name: value for name, value in given.items() if value})
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read())
        finally:
            connection.close()

    def rows(self, target: str) -> list[dict[str, Any]]:
        """The rows of an answer; none while it says that it has none now."""
        answer = self.ask(target)
        if answer.status == 503:
            return []
        assert answer.status == 200, (target, answer)
        found: list[dict[str, Any]] = answer.json()["rows"]
        return found


@contextmanager
def served(
    world: World, topology: Any, limits: Limits | None = None, on_restore: OnRestore | None = None, **settings: Any
) -> Iterator[tuple[Client, KafkaStreams]]:
    """Run an application with a server at a free port."""
    given = {key.replace("_", "."): value for key, value in settings.items()}
    server = Server("127.0.0.1:0", Config.of({**world.settings, **given}), limits)
    tokens: list[str] = []
    streams = KafkaStreams(topology, server.config, on_restore=on_restore)
    with streams, server.serving(streams, tokens.append):
        streams.start()
        yield Client(server.address, tokens[0]), streams
