"""`KafkaLog`: a Kafka cluster that makes producers, consumers and admins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

from kstreams.errors import LogError, UnsupportedError
from kstreams.forks import of_one_process
from kstreams.log.api import Ability, Consumer, Producer
from kstreams.log.interceptors import consumer_with, producer_with
from kstreams.log.kafka.admin import KafkaAdmin
from kstreams.log.kafka.connection import Connection
from kstreams.log.kafka.consumer import KafkaConsumer
from kstreams.log.kafka.group_consumer import KafkaGroupConsumer
from kstreams.log.kafka.producer import KafkaProducer


class KafkaLog:
    """See `kstreams.log.api.Log`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        of_one_process(self, "This log", LogError)

    @property
    def abilities(self) -> frozenset[Ability]:
        """Groups."""
        return frozenset({Ability.GROUPS})

    def producer(self, config: Mapping[str, Any] | None = None) -> Producer:
        """A new producer; idempotent, and transactional with a `transactional.id`."""
        return producer_with(config, lambda settings: KafkaProducer(self._connection, settings))

    def coordinator(self, transactional_id: str) -> NoReturn:
        """Kafka commits one transaction at a time: none is committed together with others."""
        raise UnsupportedError(
            "Kafka cannot commit the transactions of several producers as one, as the engine `spark` does with exactly "
            "once: use the native engine, or keep the topics in the embedded log (leave bootstrap.servers out)."
        )

    def consumer(self, config: Mapping[str, Any] | None = None) -> Consumer:
        """A new consumer; with a `group.id`, one of a group."""
        return consumer_with(config, self._consumer)

    def admin(self) -> KafkaAdmin:
        """A new admin."""
        return KafkaAdmin(self._connection)

    def tend(self) -> bool:
        """False: the brokers see to their files themselves."""
        return False

    def close(self) -> None:
        """Release the connection; close producers and consumers before."""
        self._connection.close()

    def __enter__(self) -> KafkaLog:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _consumer(self, settings: Mapping[str, Any]) -> Consumer:
        if settings.get("group.id") is not None:
            return KafkaGroupConsumer(self._connection, settings)
        return KafkaConsumer(self._connection, settings)
