"""`PartitionCounts`: how many partitions topics have, as one producer's client knows it; they may get more."""

from __future__ import annotations

from time import monotonic
from typing import Any, NamedTuple

from confluent_kafka import KafkaException

from kstreams.log.kafka.connection import Connection

_ASK_S = 1.0  # a producer that knows a number goes on with it when nobody answers


class _Count(NamedTuple):
    partitions: int
    since_s: float  # by the monotonic clock


class PartitionCounts:
    """How many partitions topics have.

    Parameters
    ----------
    client : confluent_kafka.Producer
    connection : Connection
    max_age_s : float
        After how long the cluster is asked again.
    """

    def __init__(self, client: Any, connection: Connection, max_age_s: float) -> None:
        self._client, self._connection, self._max_age_s = client, connection, max_age_s
        self._known: dict[str, _Count] = {}

    def of(self, topic: str, partition: int | None = None) -> int:
        """How many a topic has; UnknownTopicError when the wanted one is not among them."""
        known = self._known.get(topic)
        if known is None:
            known = self._known[topic] = _Count(self._connection.facts(topic).partitions, monotonic())
        elif monotonic() - known.since_s >= self._max_age_s:
            known = self._ask(topic, known)
        if partition is not None and not 0 <= partition < known.partitions:
            self._connection.require_partition(topic, partition)
            known = self._ask(topic, known)
        return known.partitions

    def _ask(self, topic: str, known: _Count) -> _Count:
        """Ask by the client, which then knows it too."""
        try:
            found = len(self._client.list_topics(topic, timeout=_ASK_S).topics[topic].partitions)
        except KafkaException:
            found = 0
        self._known[topic] = _Count(max(found, known.partitions), monotonic())
        return self._known[topic]
