"""`Connection`: the settings, the admin client, the group clients and the topic facts of one cluster."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from time import monotonic
from typing import Any, TypeVar

from confluent_kafka import Consumer as GroupClient
from confluent_kafka import IsolationLevel, KafkaError, KafkaException
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec

from kstreams.errors import LogError, UnknownTopicError
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.clock import Clock
from kstreams.log.kafka.broker_requests import BrokerRequests
from kstreams.log.kafka.client_settings import client_settings, create_client
from kstreams.log.kafka.failures import error_of, is_absent, is_transient
from kstreams.log.naming import did_you_mean
from kstreams.log.record_checks import TopicFacts
from kstreams.os.forks import of_one_process

logger = logging.getLogger("kstreams.log.kafka")

T = TypeVar("T")

_RETRY_BACKOFF_S = 0.1
ATTEMPT_TIMEOUT_S = 10
"""The timeout of one attempt at a request. The broker may die after it gets the request."""

TIMEOUT_S = 30
"""The timeout of a request to the cluster, with its retries."""

METADATA_LAG_S = 5.0
"""The time in which all brokers learn of topics and partitions that the controller has created."""

_METADATA_HINT = f"The brokers were asked for {METADATA_LAG_S:g} s, because they learn late of new ones."
_LOGIN_ERRORS = (KafkaError._AUTHENTICATION, KafkaError._SSL)
_ISOLATION = {True: IsolationLevel.READ_COMMITTED, False: IsolationLevel.READ_UNCOMMITTED}


class Connection:
    """The connection of one process to a cluster.

    Parameters
    ----------
    settings : mapping
        Addresses and security settings, by Kafka's names.
    admin_settings : mapping
        Settings of admin clients only.
    replication : int
        The replication factor of new topics. -1 for the default of the cluster.
    clock : Clock
    """

    def __init__(
        self, settings: Mapping[str, Any], admin_settings: Mapping[str, Any], replication: int, clock: Clock
    ) -> None:
        self.replication = replication
        self.clock = clock
        self._settings = dict(settings)
        self._admin_settings = dict(admin_settings)
        self._mutex = threading.RLock()
        self._admin: AdminClient | None = None
        self._groups: dict[str, GroupClient] = {}
        self._facts: dict[str, TopicFacts] = {}
        self._missing_partitions = set[
            tuple[str, int]
        ]()  # topics with numbers of partitions that did not appear in time
        self._login_error = ""
        of_one_process(self, "This log", LogError)

    @property
    def servers(self) -> str:
        """The addresses of the cluster."""
        return str(self._settings["bootstrap.servers"])

    def client(self, kind: str, create: Callable[[dict[str, Any]], Any], settings: Mapping[str, Any]) -> Any:
        """Create a client of confluent-kafka with these settings over those of the cluster."""
        all_settings = client_settings(self._settings, settings)
        callbacks = {"logger": logger, "error_cb": self._on_error}
        return create_client(kind, lambda checked: create({**checked, **callbacks}), all_settings)

    def broker_requests(self, server: str | None = None) -> BrokerRequests:
        """Open a connection to one server, or to any, for requests that Kafka's client does not offer."""
        settings = client_settings(self._settings, self._admin_settings)
        return BrokerRequests(
            settings if server is None else {**settings, "bootstrap.servers": server}, ATTEMPT_TIMEOUT_S
        )

    @property
    def admin(self) -> AdminClient:
        """The admin client, created at the first use."""
        with self._mutex:
            if self._admin is None:
                self._admin = self.client("admin", AdminClient, self._admin_settings)
            return self._admin

    def group(self, group: str) -> GroupClient:
        """Return a client that commits offsets for a group without being a member."""
        with self._mutex:
            if group not in self._groups:
                group_settings = {"group.id": group, "enable.auto.commit": False, "isolation.level": "read_committed"}
                self._groups[group] = self.client(
                    "consumer", lambda settings: GroupClient({**settings, **group_settings}), {}
                )
            return self._groups[group]

    def topic_partitions(self, name: str | None = None) -> dict[str, int]:
        """Return the number of partitions of each topic, or of one topic. Kafka's own topics are left out."""
        try:
            topics = self.retry(lambda: self._topics(name))
        except KafkaException as error:
            self.admin.poll(0)  # calls `_on_error` with the reason of a failed login
            reason = f" ({self._login_error})" if self._login_error else ""
            raise error_of(f"No broker of bootstrap.servers={self.servers} tells its topics{reason}", error) from None
        return {
            topic: len(metadata.partitions)
            for topic, metadata in topics.items()
            if metadata.error is None and not topic.startswith("__")
        }

    def topic_names(self, timeout: float) -> list[str]:
        """Return the names of the topics. Raises KafkaException if no broker answers in time."""
        return [name for name in self.admin.list_topics(timeout=timeout).topics if not name.startswith("__")]

    def await_partitions(self, name: str, at_least: int = 1, read: Callable[[], int] | None = None) -> int:
        """Return the number of partitions of a topic. 0 if the topic does not exist.

        Brokers learn late of new topics and partitions. While there are fewer than `at_least`, the number is read again
        for `METADATA_LAG_S`. The next call does not wait again for a number that did not appear in this time.

        Parameters
        ----------
        name : str
        at_least : int, default 1
        read : callable, default `topic_partitions`
            Reads the number by another client.
        """
        read = read or (lambda: self.topic_partitions(name).get(name, 0))
        deadline = monotonic() + (0 if (name, at_least) in self._missing_partitions else METADATA_LAG_S)
        while (partitions := read()) < at_least and monotonic() < deadline:
            self.clock.sleep(_RETRY_BACKOFF_S)
        if partitions < at_least:
            self._missing_partitions.add((name, at_least))
        else:
            self._missing_partitions.discard((name, at_least))
        return partitions

    def require(self, sources: Collection[TopicPartition]) -> None:
        """Raise UnknownTopicError for a partition that does not exist."""
        for source in sources:
            self.require_partition(source.topic, source.partition)

    def require_partition(self, topic: str, partition: int) -> None:
        """Raise UnknownTopicError if a topic does not have a partition, and does not get it in time."""
        if not 0 <= partition < self.facts(topic).partitions:
            self._require_now([(topic, partition)])

    def _require_now(self, sources: Iterable[tuple[str, int]]) -> None:
        """Raise UnknownTopicError for a partition that does not exist, without the cached facts of topics."""
        for topic, partition in sources:
            partitions = self.await_partitions(topic, partition + 1)
            self.drop_facts(topic)
            if not partitions:
                raise self.unknown_topic(topic)
            if not 0 <= partition < partitions:
                message = f"The topic {topic!r} has the partitions 0 to {partitions - 1}, not {partition}."
                raise UnknownTopicError(f"{message} {_METADATA_HINT}")

    def facts(self, name: str) -> TopicFacts:
        """Return the facts of a topic. UnknownTopicError names the nearest topic."""
        facts = self._facts.get(name)
        return self._read_facts(name) if facts is None else facts

    def drop_facts(self, name: str) -> None:
        """Drop the cached facts of a topic that has changed."""
        self._facts.pop(name, None)

    def configs(self, names: Collection[str]) -> dict[str, dict[str, Any]]:
        """Return the settings of topics, as entries of the admin client."""
        resources = [ConfigResource("topic", name) for name in names]
        if not resources:
            return {}
        configs = self._outcomes(
            "Settings of topics",
            lambda admin: admin.describe_configs(resources, request_timeout=ATTEMPT_TIMEOUT_S),
            [(name, 0) for name in names],
        )
        return {resource.name: entries for resource, entries in configs.items()}

    def offsets(
        self, sources: Iterable[TopicPartition], spec: OffsetSpec, *, committed_only: bool = True
    ) -> dict[TopicPartition, int]:
        """Return the offsets of partitions. -1 if no record matches `spec`."""
        return self._offsets({KafkaPartition(*source): spec for source in sources}, committed_only=committed_only)

    def _offsets(
        self, specs: Mapping[KafkaPartition, OffsetSpec], *, committed_only: bool
    ) -> dict[TopicPartition, int]:
        if not specs:
            return {}
        level = _ISOLATION[committed_only]
        results = self._outcomes(
            "Offsets of partitions",
            lambda admin: admin.list_offsets(specs, isolation_level=level, request_timeout=ATTEMPT_TIMEOUT_S),
            [(partition.topic, partition.partition) for partition in specs],
        )
        return {
            TopicPartition(partition.topic, partition.partition): result.offset for partition, result in results.items()
        }

    def beginnings(self, sources: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first offset of each partition."""
        return self.offsets(sources, OffsetSpec.earliest(), committed_only=False)

    def ends(self, sources: Iterable[TopicPartition], *, committed_only: bool = True) -> dict[TopicPartition, int]:
        """Return the end offsets. With `committed_only`, they are at most the offset of the first open transaction."""
        return self.offsets(sources, OffsetSpec.latest(), committed_only=committed_only)

    def offsets_at_times(
        self, times: Mapping[TopicPartition, int], *, committed_only: bool
    ) -> dict[TopicPartition, int]:
        """Return the first offset at or after a time (ms) in each partition. The end if there is none."""
        specs = {KafkaPartition(*source): OffsetSpec.for_timestamp(max(0, time)) for source, time in times.items()}
        offsets = self._offsets(specs, committed_only=committed_only)
        without_record = [source for source, offset in offsets.items() if offset < 0]
        return offsets | self.ends(without_record, committed_only=committed_only)

    def retry(self, call: Callable[[], T], partitions: Collection[tuple[str, int]] = ()) -> T:
        """Return the result of a call. Retry for `TIMEOUT_S` after transient errors.

        Parameters
        ----------
        call : callable
        partitions : collection of (topic, partition)
            The partitions of the request. One broker may learn of a partition later than another. If a partition is
            unknown, it is awaited before UnknownTopicError is raised.
        """
        deadline = monotonic() + TIMEOUT_S
        while True:
            try:
                return call()
            except KafkaException as error:
                is_unknown = is_absent(error) and len(partitions) > 0
                if not (is_unknown or is_transient(error)) or monotonic() > deadline:
                    raise
                if is_unknown:
                    self._require_now(partitions)
            self.clock.sleep(_RETRY_BACKOFF_S)

    def close(self) -> None:
        """Release the clients."""
        with self._mutex:
            for client in self._groups.values():
                client.close()
            self._groups.clear()
            self._admin = None

    def _on_error(self, error: KafkaError) -> None:
        """Log an error of a client's connection."""
        if error.code() in _LOGIN_ERRORS:
            self._login_error = error.str()
        logger.warning("%s (%s)", error.str(), error.name())

    def _topics(self, name: str | None) -> Any:
        topic = [name] if name else []
        return self.admin.list_topics(*topic, timeout=ATTEMPT_TIMEOUT_S).topics

    def _outcomes(
        self,
        subject: str,
        request: Callable[[AdminClient], Mapping[Any, Any]],
        partitions: Collection[tuple[str, int]],
    ) -> dict[Any, Any]:
        """Return the results of all futures of a request about partitions. Retry while a broker is unavailable."""

        def results() -> dict[Any, Any]:
            admin = self.admin
            try:
                futures = request(admin)
                return {key: future.result(timeout=ATTEMPT_TIMEOUT_S + 5) for key, future in futures.items()}
            except KafkaException:
                # A new client reads the leaders again. The old one was seen to send an old leader epoch.
                with self._mutex:
                    self._admin = None if self._admin is admin else self._admin
                raise

        try:
            return self.retry(results, partitions)
        except KafkaException as error:
            raise error_of(f"{subject} cannot be read from {self.servers}", error) from None
        except TimeoutError:
            raise LogError(f"{subject} cannot be read: {self.servers} gave no answer.") from None

    def _read_facts(self, name: str) -> TopicFacts:
        partitions = self.await_partitions(name)
        if not partitions:
            raise self.unknown_topic(name)
        config = self.configs([name])[name]
        policy = config["cleanup.policy"].value
        max_bytes = int(config["max.message.bytes"].value)
        self._facts[name] = TopicFacts(partitions, max_bytes, "compact" in policy)
        return self._facts[name]

    def unknown_topic(self, name: str) -> UnknownTopicError:
        """Return the error for a topic that does not exist."""
        hint = did_you_mean(name, self.topic_partitions())
        return UnknownTopicError(
            f"There is no topic {name!r} in the Kafka cluster {self.servers}.{hint} {_METADATA_HINT}"
        )


def client_partitions(client: GroupClient, topic: str, timeout: float) -> int:
    """Return the number of partitions of a topic that a client reads. 0 without an answer in time."""
    try:
        return len(client.list_topics(topic, timeout).topics[topic].partitions)
    except KafkaException:
        return 0


def outcome(failure: str, future: Any) -> Any:
    """Return the result of a future of the admin client. The message of a LogError begins with `failure`."""
    try:
        return future.result(timeout=TIMEOUT_S + 5)
    except KafkaException as error:
        raise error_of(failure, error) from None
    except TimeoutError:
        raise LogError(f"{failure}: the cluster gave no answer within {TIMEOUT_S} s.") from None
