"""`Server`: a thread of this process that answers queries, from before the application starts until it has stopped."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import uvicorn

from kstreams.config import Config
from kstreams.errors import ConfigError
from kstreams.runtime.native.stores.metadata import HostInfo
from kstreams.runtime.native.streams import KafkaStreams
from kstreams.server.application import HOSTS, QueryApplication, application
from kstreams.server.endpoint import Endpoint
from kstreams.server.instances import Instance, Instances
from kstreams.server.limits import Limits
from kstreams.server.web.connection import HttpConnection

_EVERY_ADDRESS = ("0.0.0.0", "[::]", "::")
_STOP_S = 5.0


class Server:
    """A query server. It binds its address when it is created, so that the application can announce the address.

    Parameters
    ----------
    address : str
        `host:port`. Port 0 takes a free port.
    config : Config
    limits : Limits

    Attributes
    ----------
    config : Config
        The settings for the application. `application.server` is set to the address.

    Raises
    ------
    ConfigError
        If the address is malformed, in use, or not an address of this machine, or if only one of the two settings of
        TLS is set.
    """

    def __init__(self, address: str, config: Config, limits: Limits | None = None) -> None:
        requested = HostInfo.of(address)
        if requested is None or requested.port > 65_535 or requested.path:
            raise ConfigError(f"{address!r} is not an address of a server: write HOST:PORT, with port 0 for a free one")
        if (config["server.tls.certificate"] is None) != (config["server.tls.key"] is None):
            raise ConfigError("server.tls.certificate and server.tls.key belong together: set both, or neither")
        self._socket = _listening_socket(requested)
        self._limits = limits or Limits()
        self.address = HostInfo(requested.host, self._socket.getsockname()[1])
        announced = config["application.server"] or ("" if requested.host in _EVERY_ADDRESS else str(self.address))
        if not announced:
            self._socket.close()
            raise ConfigError(
                f"other processes cannot reach {requested.host}: set application.server to the address of this process"
            )
        self.config = config.replace({"application.server": announced})

    @property
    def url(self) -> str:
        """The URL of the server."""
        return f"{'https' if self.config['server.tls.key'] else 'http'}://{self.config['application.server']}/v1"

    @contextmanager
    def serving(
        self,
        streams: KafkaStreams,
        on_start: Callable[[str], None] = lambda token: None,
        endpoints: Sequence[Endpoint] = (),
    ) -> Iterator[None]:
        """Answer queries during the `with` block, also before the application runs. `on_start` gets the token."""
        announced = HostInfo.of(self.config["application.server"])
        own_hosts = [self.address.host, *([announced.host] if announced else [])]
        hosts = {*HOSTS, *own_hosts, *self.config["server.allowed.hosts"]}
        certificate = str(self.config["server.tls.certificate"] or "")
        instance = Instance(self.config.application_id, self.config["application.server"], os.getpid(), certificate)
        with self._socket, Instances(self.config).registered(instance) as token:
            app = application(streams, token, hosts=hosts, limits=self._limits, further_endpoints=endpoints)
            server = uvicorn.Server(self._settings(app))
            thread = threading.Thread(target=server.run, args=([self._socket],), name="kstreams-server", daemon=True)
            thread.start()
            on_start(token)
            try:
                yield
            finally:
                server.should_exit = True
                thread.join(_STOP_S)
                app.close()

    def _settings(self, app: QueryApplication) -> uvicorn.Config:
        certificate = self.config["server.tls.certificate"]
        key = self.config["server.tls.key"]
        return uvicorn.Config(
            app,
            http=partial(HttpConnection, self._limits, app.key_responses),  # type: ignore[arg-type]
            loop="auto",
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=self._limits.connections,
            timeout_keep_alive=self._limits.idle_s,
            timeout_graceful_shutdown=1,
            ssl_certfile=certificate,
            ssl_keyfile=key,
        )


def _listening_socket(address: HostInfo) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    # asyncio sets TCP_NODELAY only if the protocol is named. Without it, an answer waits 40 ms for an acknowledgement.
    server_socket = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        server_socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server_socket.bind((address.host.strip("[]"), address.port))
        server_socket.listen(128)
    except OSError as error:
        server_socket.close()
        raise ConfigError(f"the server cannot listen at {address}: {error.strerror or error}") from error
    return server_socket
