"""`OutputTopics`: where the rows of a step go; each attempt of a task writes them in a transaction of its own.

The driver commits exactly the transactions that the reports of the step name. Those of all other attempts are aborted:
of attempts that died, that were run again, or that Spark had run beside another.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from kstreams.batch import Batch, TopicPartition
from kstreams.errors import LogError, UnknownTopicError
from kstreams.log.api import Admin, Producer
from kstreams.log.topic_types import TopicTypes, create_typed
from kstreams.runtime.spark.exchange.rows import ranges
from kstreams.runtime.spark.io.open_homes import OPEN_HOMES

_ROWS = 50_000  # the producer's buffer is bounded


class RowWriter(AbstractContextManager["RowWriter"], Protocol):
    """Takes the rows that one attempt of a task writes to topics, named as in the topology."""

    def send(self, batch: Batch) -> None:
        """Write rows of one partition."""
        ...

    def refused(self, batch: Batch) -> Mapping[int, LogError]:
        """The rows that their topic would never take, and why."""
        ...

    def prepare(self) -> str | None:
        """The transaction with all that was written, for the driver to commit; None when nothing was."""
        ...


@dataclass(frozen=True)
class OutputTopics:
    """The topics that an application writes to; it is sent to the executors.

    Parameters
    ----------
    home : str
        Address of the home of topics.
    settings : mapping
        Those of the home.
    prefix : str
        Stands before the names of the topics.
    partitions : mapping of str to int
        Number of partitions that a topic (without the prefix) gets when it is made; `default` for all others.
    types : mapping of str to TopicTypes
        What is written to a topic (without the prefix), as far as it is known.
    timeout_ms : int
        After this time a transaction that nobody has committed is aborted.
    token : str
        Of the coordinator that commits the step.
    """

    home: str
    settings: Mapping[str, Any]
    prefix: str
    partitions: Mapping[str, int]
    default: int
    timeout_ms: int
    types: Mapping[str, TopicTypes] = field(default_factory=dict)
    token: str = ""

    def create(self, admin: Admin, topic: str) -> None:
        """Make a topic, if nobody has made it yet."""
        try:
            admin.describe_topic(self.prefix + topic)
        except UnknownTopicError:
            count = self.partitions.get(topic, self.default)
            create_typed(admin, self.prefix + topic, count, types=self.types.get(topic))

    def writer(self) -> RowWriter:
        """What one attempt of a task writes with."""
        return _TransactionWriter(self)


class _TransactionWriter:
    """Begins its transaction with the first row; aborts it when it is left before it is prepared."""

    def __init__(self, topics: OutputTopics) -> None:
        self._topics, self._resources = topics, ExitStack()
        settings = tuple(sorted(topics.settings.items()))
        self._log = self._resources.enter_context(OPEN_HOMES.log(topics.home, settings))
        self._producer: Producer | None = None
        self._begun, self._known = False, set[str]()

    def send(self, batch: Batch) -> None:
        """Write rows of one partition; makes the topic if need be."""
        producer, named = self._opened(), self._named(batch)
        if not self._begun:
            producer.begin_transaction()
            self._begun = True
        for start, stop in ranges(0, len(named), _ROWS):
            producer.send_batch(named.slice(start, stop))

    def refused(self, batch: Batch) -> Mapping[int, LogError]:
        """The rows that their topic would never take, and why."""
        return self._opened().refused(self._named(batch))

    def prepare(self) -> str | None:
        """Write all out; the transaction for the driver to commit."""
        return self._opened().prepare_transaction() if self._begun else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._resources.close()

    def _opened(self) -> Producer:
        if self._producer is None:
            topics = self._topics
            joined = {"transaction.coordinator": topics.token, "transaction.timeout.ms": topics.timeout_ms}
            producer = self._log.producer({**joined, "linger.ms": -1})
            self._producer = self._resources.enter_context(producer)
        return self._producer

    def _named(self, batch: Batch) -> Batch:
        topic, partition = batch.source
        if topic not in self._known:
            with self._log.admin() as admin:
                self._topics.create(admin, topic)
            self._known.add(topic)
        source = TopicPartition(self._topics.prefix + topic, partition)
        return Batch(source, batch.offsets, batch.keys, batch.values, batch.timestamps, batch.headers)


class NoTopics:
    """In the place of a writer: the rows of a global table's task go nowhere."""

    def send(self, batch: Batch) -> None:
        """Drop them."""

    def refused(self, batch: Batch) -> Mapping[int, LogError]:
        """None is."""
        return {}

    def prepare(self) -> str | None:
        """Nothing was written."""
        return None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        pass
