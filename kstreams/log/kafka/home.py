"""`KafkaHome`: a cluster of Apache Kafka as a home of topics (see `kstreams.log.homes`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kstreams.clock import Clock, SystemClock
from kstreams.errors import ConfigError
from kstreams.log.kafka.client_settings import SECURITY_KEYS, SECURITY_PREFIXES
from kstreams.log.kafka.connection import Connection
from kstreams.log.kafka.log import KafkaLog

_REPLICATION = "replication.factor"
_ADMIN = "admin."


@dataclass(frozen=True, slots=True)
class KafkaHome:
    """A cluster by the addresses of some of its brokers; see `TopicHome`.

    Examples
    --------
    >>> KafkaHome("localhost:9092").address
    'kafka:localhost:9092'
    """

    servers: str
    settings: tuple[str, ...] = ("bootstrap.servers", _REPLICATION, *SECURITY_KEYS)
    folder: None = None
    files: None = None

    def __post_init__(self) -> None:
        if self.servers.startswith("//"):
            raise ConfigError(f"'kafka:{self.servers}' is no address: write kafka:{self.servers.lstrip('/')}")
        for server in self.servers.split(","):
            host, _, port = server.strip().rpartition(":")
            if not host or not port.isdigit():
                raise ConfigError(
                    f"{server!r} is no address of a Kafka broker: give host:port, such as localhost:9092."
                )

    @property
    def address(self) -> str:
        """`kafka:` and the addresses of the brokers."""
        return f"kafka:{self.servers}"

    def open(self, config: Mapping[str, Any] | None = None, *, clock: Clock | None = None) -> KafkaLog:
        """Connect; the first request finds out whether somebody is there."""
        given = {} if config is None else {key: config[key] for key in config if _is_read(key)}
        replication = int(given.pop(_REPLICATION, None) or -1)
        admin = {key.removeprefix(_ADMIN): given.pop(key) for key in list(given) if key.startswith(_ADMIN)}
        settings = {**given, "bootstrap.servers": self.servers}
        return KafkaLog(Connection(settings, admin, replication, clock or SystemClock()))

    def check(self, *, create: bool = False) -> None:
        """A cluster is there or it is not: whoever asks it first is told."""

    def topic_defaults(self) -> Mapping[str, str]:
        """The settings that a topic has when none are given, of those that are always shown."""
        return {"cleanup.policy": "delete"}

    def lock_file(self, application_id: str) -> None:
        """None: a cluster has no files here. The state folder is locked."""

    def __str__(self) -> str:
        return self.address


def _is_read(key: str) -> bool:
    return key in (*SECURITY_KEYS, _REPLICATION) or key.startswith((*SECURITY_PREFIXES, _ADMIN))
