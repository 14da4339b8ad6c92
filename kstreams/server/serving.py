"""`Server`: answers queries of an application in a thread of this process, from before its start to after its end."""

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
    """Binds its address at once, so that the application can tell it to others.

    Parameters
    ----------
    address : str
        `host:port`; port 0 takes a free one.
    config : Config
    limits : Limits

    Attributes
    ----------
    config : Config
        The settings with which the application is to run: they have the address.

    Raises
    ------
    ConfigError
        When the address cannot be one, is taken, or is not of this machine; or one half of TLS is missing.
    """

    def __init__(self, address: str, config: Config, limits: Limits | None = None) -> None:
        requested = HostInfo.of(address)
        if requested is None or requested.port > 65_535 or requested.path:
            raise ConfigError(f"{address!r} is no address to answer at: write HOST:PORT, with port 0 for a free one")
        if (config["server.tls.certificate"] is None) != (config["server.tls.key"] is None):
            raise ConfigError("server.tls.certificate and server.tls.key belong together: set both, or neither")
        self._socket = _bound(requested)
        self._limits = limits or Limits()
        self.address = HostInfo(requested.host, self._socket.getsockname()[1])
        announced = config["application.server"] or ("" if requested.host in _EVERY_ADDRESS else str(self.address))
        if not announced:
            self._socket.close()
            raise ConfigError(
                f"others cannot reach {requested.host}: say by application.server where this process answers"
            )
        self.config = config.replace({"application.server": announced})

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"{'https' if self.config['server.tls.key'] else 'http'}://{self.config['application.server']}/v1"

    @contextmanager
    def serving(
        self,
        streams: KafkaStreams,
        on_start: Callable[[str], None] = lambda token: None,
        endpoints: Sequence[Endpoint] = (),
    ) -> Iterator[None]:
        """Answer inside, also before the application runs; `on_start` is told the token."""
        announced = HostInfo.of(self.config["application.server"])
        own = [self.address.host, *([announced.host] if announced else [])]
        hosts = {*HOSTS, *own, *self.config["server.allowed.hosts"]}
        certificate = str(self.config["server.tls.certificate"] or "")
        instance = Instance(self.config.application_id, self.config["application.server"], os.getpid(), certificate)
        with self._socket, Instances(self.config).joined(instance) as token:
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
            http=partial(HttpConnection, self._limits, app.key_answers),  # type: ignore[arg-type]
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


def _bound(address: HostInfo) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    # By its protocol asyncio knows it for TCP, and sends at once: else each answer waits 40 ms for an acknowledgement.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((address.host.strip("[]"), address.port))
        listening.listen(128)
    except OSError as error:
        listening.close()
        raise ConfigError(f"nothing can answer at {address}: {error.strerror or error}") from error
    return listening
