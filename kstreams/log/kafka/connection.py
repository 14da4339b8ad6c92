"""`Connection`: what clients of one cluster share: settings, an admin client, clients of groups, facts of topics."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from time import monotonic
from typing import Any, TypeVar

from confluent_kafka import Consumer as GroupClient
from confluent_kafka import IsolationLevel, KafkaError, KafkaException
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec

from kstreams.errors import LogError, UnknownTopicError
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.clock import Clock
from kstreams.log.kafka.client_settings import client_settings, made
from kstreams.log.kafka.failures import is_absent, passes, raised
from kstreams.log.naming import did_you_mean
from kstreams.log.record_checks import TopicFacts
from kstreams.os.forks import of_one_process

logger = logging.getLogger("kstreams.log.kafka")

T = TypeVar("T")

_PAUSE_S = 0.1
ASK_S = 10
"""How long one attempt at a request that is made again may take: the broker may have died after it came."""

TIMEOUT_S = 30
"""How long a request to the cluster may take."""

LAG_S = 5.0
"""How long brokers may take to learn of a topic, or of further partitions, that the controller has made."""

_WAITED = f"The brokers were asked for {LAG_S:g} s, as they learn of new ones late."
_NOT_LET_IN = (KafkaError._AUTHENTICATION, KafkaError._SSL)
_ISOLATION = {True: IsolationLevel.READ_COMMITTED, False: IsolationLevel.READ_UNCOMMITTED}


class Connection:
    """The connection of one process to a cluster.

    Parameters
    ----------
    settings : mapping
        Addresses and security, by Kafka's names.
    admin_settings : mapping
        What only admin clients get.
    replication : int
        Copies of the topics that are created; -1 for the default of the cluster.
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
        self._in_vain: set[tuple[str, int]] = set()  # topics that were waited for, with so many partitions
        self._refusal = ""  # why brokers did not let a client in
        of_one_process(self, "This log", LogError)

    @property
    def servers(self) -> str:
        """Where the cluster is."""
        return str(self._settings["bootstrap.servers"])

    def client(self, kind: str, make: Any, given: Mapping[str, Any]) -> Any:
        """A client of confluent-kafka with these settings over those of the cluster."""
        settings = client_settings(self._settings, given)
        return made(kind, lambda full: make({**full, "logger": logger, "error_cb": self._note}), settings)

    @property
    def admin(self) -> AdminClient:
        """The admin client, made when it is first asked for."""
        with self._mutex:
            if self._admin is None:
                self._admin = self.client("admin", AdminClient, self._admin_settings)
            return self._admin

    def group(self, group: str) -> GroupClient:
        """A client that commits offsets for a group without being a member of it."""
        with self._mutex:
            if group not in self._groups:
                ours = {"group.id": group, "enable.auto.commit": False, "isolation.level": "read_committed"}
                self._groups[group] = self.client("consumer", lambda full: GroupClient({**full, **ours}), {})
            return self._groups[group]

    def topic_partitions(self, name: str | None = None) -> dict[str, int]:
        """How many partitions each topic has, or one topic; those of Kafka's own are left out."""
        try:
            found = self.again(lambda: self._topics(name))
        except KafkaException as error:
            self.admin.poll(0)  # until then the client keeps to itself why it was not let in
            why = f" ({self._refusal})" if self._refusal else ""
            raise raised(f"No broker of bootstrap.servers={self.servers} tells its topics{why}", error) from None
        return {
            topic: len(known.partitions)
            for topic, known in found.items()
            if known.error is None and not topic.startswith("__")
        }

    def topics_now(self, timeout: float) -> list[str]:
        """Names of the topics, asked once; raises KafkaException when nobody answers in time."""
        return [name for name in self.admin.list_topics(timeout=timeout).topics if not name.startswith("__")]

    def learnt_partitions(self, name: str, at_least: int = 1, ask: Callable[[], int] | None = None) -> int:
        """How many partitions a topic has; 0 if there is no such topic.

        Brokers learn of what was made some time later: where there are fewer than `at_least`, they are asked again for
        a while. That is done once: a topic that was waited for in vain is missing.

        Parameters
        ----------
        name : str
        at_least : int, default 1
        ask : callable, default `topic_partitions`
            Gives the number, as another client has it.
        """
        look = ask or (lambda: self.topic_partitions(name).get(name, 0))
        until = monotonic() + (0 if (name, at_least) in self._in_vain else LAG_S)
        while (partitions := look()) < at_least and monotonic() < until:
            self.clock.sleep(_PAUSE_S)
        if partitions < at_least:
            self._in_vain.add((name, at_least))
        else:
            self._in_vain.discard((name, at_least))
        return partitions

    def require(self, sources: Collection[TopicPartition]) -> None:
        """Raise UnknownTopicError for a partition that is not there."""
        for source in sources:
            self.require_partition(*source)

    def require_partition(self, topic: str, partition: int) -> None:
        """Raise UnknownTopicError when a topic does not have a partition, nor gets it in a while."""
        if not 0 <= partition < self.facts(topic).partitions:
            self._require_now([(topic, partition)])

    def _require_now(self, sources: Iterable[tuple[str, int]]) -> None:
        """As `require`, whatever was known of the topics before."""
        for topic, partition in sources:
            partitions = self.learnt_partitions(topic, partition + 1)
            self.forget(topic)
            if not partitions:
                raise self.unknown(topic)
            if not 0 <= partition < partitions:
                has = f"The topic {topic!r} has the partitions 0 to {partitions - 1}, not {partition}."
                raise UnknownTopicError(f"{has} {_WAITED}")

    def facts(self, name: str) -> TopicFacts:
        """What a producer has to know of a topic; raises UnknownTopicError, which names the nearest known topic."""
        known = self._facts.get(name)
        return self._learn(name) if known is None else known

    def forget(self, name: str) -> None:
        """A topic has changed."""
        self._facts.pop(name, None)

    def configs(self, names: Collection[str]) -> dict[str, dict[str, Any]]:
        """The settings of topics, as entries of the admin client."""
        asked = [ConfigResource("topic", name) for name in names]
        if not asked:
            return {}
        found = self._outcomes(
            "Settings of topics",
            lambda admin: admin.describe_configs(asked, request_timeout=ASK_S),
            [(name, 0) for name in names],
        )
        return {resource.name: each for resource, each in found.items()}

    def offsets(
        self, sources: Iterable[TopicPartition], spec: OffsetSpec, *, committed_only: bool = True
    ) -> dict[TopicPartition, int]:
        """Offsets of partitions as the cluster knows them now; -1 where no record fits."""
        asked = {Place(*source): spec for source in sources}
        if not asked:
            return {}
        level = _ISOLATION[committed_only]
        found = self._outcomes(
            "Offsets of partitions",
            lambda admin: admin.list_offsets(asked, isolation_level=level, request_timeout=ASK_S),
            [(place.topic, place.partition) for place in asked],
        )
        return {TopicPartition(place.topic, place.partition): each.offset for place, each in found.items()}

    def beginnings(self, sources: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """First offset of each partition that is still there."""
        return self.offsets(sources, OffsetSpec.earliest(), committed_only=False)

    def ends(self, sources: Iterable[TopicPartition], *, committed_only: bool = True) -> dict[TopicPartition, int]:
        """Offset after the last record; with `committed_only`, at most that of the first open transaction."""
        return self.offsets(sources, OffsetSpec.latest(), committed_only=committed_only)

    def again(self, call: Callable[[], T], about: Collection[tuple[str, int]] = ()) -> T:
        """What a call gives, tried again while a coordinator moves or a transaction commits, for half a minute.

        Parameters
        ----------
        call : callable
        about : collection of (topic, partition)
            What it asks about: UnknownTopicError where that is not there. One broker may know of it later than another.
        """
        until = monotonic() + TIMEOUT_S
        while True:
            try:
                return call()
            except KafkaException as error:
                is_new = is_absent(error) and len(about) > 0
                if not (is_new or passes(error)) or monotonic() > until:
                    raise
                if is_new:
                    self._require_now(about)
            self.clock.sleep(_PAUSE_S)

    def close(self) -> None:
        """Release the clients."""
        with self._mutex:
            for client in self._groups.values():
                client.close()
            self._groups.clear()
            self._admin = None

    def _note(self, error: Any) -> None:
        """What a client tells of its connections."""
        if error.code() in _NOT_LET_IN:
            self._refusal = error.str()
        logger.warning("%s (%s)", error.str(), error.name())

    def _topics(self, name: str | None) -> Any:
        asked = self.admin.list_topics(name, timeout=ASK_S) if name else self.admin.list_topics(timeout=ASK_S)
        return asked.topics

    def _outcomes(
        self,
        what: str,
        ask: Callable[[AdminClient], Mapping[Any, Any]],
        about: Collection[tuple[str, int]],
    ) -> dict[Any, Any]:
        """What all futures of a request about partitions give, asked again while a broker is away for a moment."""

        def asked() -> dict[Any, Any]:
            admin = self.admin
            try:
                return {each: future.result(timeout=ASK_S + 5) for each, future in ask(admin).items()}
            except KafkaException:
                with self._mutex:  # another client asks anew who leads: this one was seen asking with an old epoch
                    self._admin = None if self._admin is admin else self._admin
                raise

        try:
            return self.again(asked, about)
        except KafkaException as error:
            raise raised(f"{what} cannot be read from {self.servers}", error) from None
        except TimeoutError:
            raise LogError(f"{what} cannot be read: {self.servers} gave no answer.") from None

    def _learn(self, name: str) -> TopicFacts:
        partitions = self.learnt_partitions(name)
        if not partitions:
            raise self.unknown(name)
        config = self.configs([name])[name]
        policy = config["cleanup.policy"].value
        most = int(config["max.message.bytes"].value)
        self._facts[name] = TopicFacts(partitions, most, "compact" in policy)
        return self._facts[name]

    def unknown(self, name: str) -> UnknownTopicError:
        """The error for a topic that is not there."""
        hint = did_you_mean(name, self.topic_partitions())
        return UnknownTopicError(f"There is no topic {name!r} in the Kafka cluster {self.servers}.{hint} {_WAITED}")


def partitions_told(client: Any, topic: str, timeout: float) -> int:
    """How many partitions a topic has, asked by a client, which then knows them; 0 when nobody tells it in time."""
    try:
        return len(client.list_topics(topic, timeout).topics[topic].partitions)
    except KafkaException:
        return 0


def outcome(what: str, future: Any) -> Any:
    """What a future of the admin client gives; raises a LogError that begins with `what`."""
    try:
        return future.result(timeout=TIMEOUT_S + 5)
    except KafkaException as error:
        raise raised(what, error) from None
    except TimeoutError:
        raise LogError(f"{what}: the cluster gave no answer within {TIMEOUT_S} s.") from None
