"""`KafkaHome` and `KafkaLog`: a cluster of Apache Kafka as a home of topics (see `kstreams.log.homes`)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from kstreams.errors import ConfigError, LogError, UnsupportedError
from kstreams.kernel.clock import Clock, SystemClock
from kstreams.log.api import Ability, Consumer, Producer
from kstreams.log.interceptors import consumer_with, producer_with
from kstreams.log.kafka.admin import KafkaAdmin
from kstreams.log.kafka.client_settings import SECURITY_KEYS, SECURITY_PREFIXES
from kstreams.log.kafka.connection import Connection
from kstreams.log.kafka.consumer import KafkaConsumer
from kstreams.log.kafka.group_consumer import KafkaGroupConsumer
from kstreams.log.kafka.producer import KafkaProducer
from kstreams.os.forks import of_one_process

_REPLICATION = "replication.factor"
_ADMIN = "admin."


@dataclass(frozen=True, slots=True)
class KafkaHome:
    """A cluster with the addresses of some of its brokers. See `TopicHome`.

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
        """Return a log for the cluster. The first request connects to a broker."""
        settings = {} if config is None else {key: config[key] for key in config if _is_read(key)}
        replication = int(settings.pop(_REPLICATION, None) or -1)
        admin_keys = [key for key in settings if key.startswith(_ADMIN)]
        admin_settings = {key.removeprefix(_ADMIN): settings.pop(key) for key in admin_keys}
        settings["bootstrap.servers"] = self.servers
        return KafkaLog(Connection(settings, admin_settings, replication, clock or SystemClock()))

    def check(self, *, create: bool = False) -> None:
        """Do nothing: the first request raises if the cluster cannot be reached."""

    def topic_defaults(self) -> Mapping[str, str]:
        """Return the defaults of the settings that are always shown."""
        return {"cleanup.policy": "delete"}

    def lock_file(self, application_id: str) -> None:
        """Return None: a cluster has no files on this machine. The state folder is locked instead."""

    def __str__(self) -> str:
        return self.address


class KafkaLog:
    """See `kstreams.log.api.Log`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        of_one_process(self, "This log", LogError)

    @property
    def abilities(self) -> frozenset[Ability]:
        """The ability `GROUPS`."""
        return frozenset({Ability.GROUPS})

    def producer(self, config: Mapping[str, Any] | None = None) -> Producer:
        """Return a new idempotent producer, which is transactional with a `transactional.id`."""
        return producer_with(config, lambda settings: KafkaProducer(self._connection, settings))

    def coordinator(self, transactional_id: str) -> NoReturn:
        """Raise UnsupportedError: Kafka cannot commit several transactions as one."""
        raise UnsupportedError(
            "Kafka cannot commit the transactions of several producers as one, as the engine `spark` does with exactly "
            "once: use the native engine, or keep the topics in the embedded log (leave bootstrap.servers out)."
        )

    def consumer(self, config: Mapping[str, Any] | None = None) -> Consumer:
        """Return a new consumer, which is a group consumer with a `group.id`."""
        return consumer_with(config, self._consumer)

    def admin(self) -> KafkaAdmin:
        """Return a new admin."""
        return KafkaAdmin(self._connection)

    def do_housekeeping(self) -> bool:
        """Return False: brokers maintain their files."""
        return False

    def close(self) -> None:
        """Close the connection. Producers and consumers must be closed before."""
        self._connection.close()

    def __enter__(self) -> KafkaLog:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _consumer(self, settings: Mapping[str, Any]) -> Consumer:
        if settings.get("group.id") is not None:
            return KafkaGroupConsumer(self._connection, settings)
        return KafkaConsumer(self._connection, settings)


def _is_read(key: str) -> bool:
    return key in (*SECURITY_KEYS, _REPLICATION) or key.startswith((*SECURITY_PREFIXES, _ADMIN))
