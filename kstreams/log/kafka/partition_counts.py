"""`PartitionCounts`: how many partitions topics have, as one producer's client knows it; they may get more."""

from __future__ import annotations

from time import monotonic
from typing import Any, NamedTuple

from kstreams.log.kafka.connection import Connection, partitions_told

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
        self._client = client
        self._connection = connection
        self._max_age_s = max_age_s
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
            known = self._ask(topic, known, partition + 1)
        return known.partitions

    def _ask(self, topic: str, known: _Count, at_least: int = 0) -> _Count:
        """Ask by the client, which then knows it too."""
        partitions = self._connection.learnt_partitions(topic, at_least, lambda: self._told(topic))
        self._known[topic] = _Count(max(partitions, known.partitions), monotonic())
        return self._known[topic]

    def _told(self, topic: str) -> int:
        return partitions_told(self._client, topic, _ASK_S)
