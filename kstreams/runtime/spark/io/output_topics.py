"""`OutputTopics`: the topics that an application writes to; `RowWriter`: the writer of one attempt of a task."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from kstreams.errors import LogError
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.log.api import Admin, Log, Producer
from kstreams.log.topic_types import TopicTypes, create_typed, store_types
from kstreams.runtime.spark.io.open_homes import HomeAddress


class RowWriter(AbstractContextManager["RowWriter"], Protocol):
    """The writer of one attempt of a task. Topics have their names in the topology."""

    def send(self, batch: Batch) -> None:
        """Write rows of one partition."""
        ...

    def refused(self, batch: Batch) -> Mapping[int, LogError]:
        """Return the rows that the topic refuses, with the reason."""
        ...

    def prepare(self) -> list[str]:
        """Finish writing, and return the names of the transactions or objects that the driver is to commit."""
        ...


class StepOutput(Protocol):
    """The output of a step, which is sent to the executors."""

    @property
    def topics(self) -> OutputTopics: ...

    def writer(self, name: str) -> RowWriter:
        """Create the writer of one attempt at the task of this name."""
        ...


@dataclass(frozen=True)
class OutputTopics:
    """The topics that an application writes to.

    Parameters
    ----------
    home : HomeAddress
    prefix : str
        The prefix of the names of the topics.
    partitions : mapping of str to int
        By topic without the prefix: the number of partitions of a new topic.
    default : int
        The number of partitions of other new topics.
    types : mapping of str to TopicTypes
        By topic without the prefix: the types of its keys and values, if they are known.
    """

    home: HomeAddress
    prefix: str
    partitions: Mapping[str, int]
    default: int
    types: Mapping[str, TopicTypes] = field(default_factory=dict)

    def create(self, admin: Admin, topic: str) -> None:
        """Create a topic if it does not exist."""
        if self.prefix + topic not in admin.topics():
            count = self.partitions.get(topic, self.default)
            create_typed(admin, self.prefix + topic, count, types=self.types.get(topic))

    def prepare(self, log: Log, topics: Collection[str]) -> None:
        """Create missing topics and write the types to their settings; `topics` are names without the prefix."""
        with log.admin() as admin:
            for topic in topics:
                self.create(admin, topic)
                store_types(admin, self.prefix + topic, self.types.get(topic, TopicTypes()))


class OpenedTopics:
    """The topics and the producer of one attempt. The producer is opened, and topics are created, at the first row.

    Parameters
    ----------
    topics : OutputTopics
    settings : mapping
        The settings of the producer.
    """

    def __init__(self, topics: OutputTopics, settings: Mapping[str, object]) -> None:
        self._topics = topics
        self._settings = settings
        self._resources = ExitStack()
        self._log = self._resources.enter_context(topics.home.opened())
        self._producer: Producer | None = None
        self._existing = set[str]()

    @property
    def producer(self) -> Producer:
        """The producer, which the first access opens."""
        if self._producer is None:
            self._producer = self._resources.enter_context(self._topics.home.writer(self._settings))
        return self._producer

    def with_name_in_log(self, batch: Batch) -> Batch:
        """Create the topic if necessary, and return the batch with the topic's name in the log."""
        topic, partition = batch.source
        if topic not in self._existing:
            with self._log.admin() as admin:
                self._topics.create(admin, topic)
            self._existing.add(topic)
        source = TopicPartition(self._topics.prefix + topic, partition)
        return Batch(source, batch.offsets, batch.keys, batch.values, batch.timestamps, batch.headers)

    def refused(self, renamed: Batch) -> Mapping[int, LogError]:
        """Return the rows that the topic refuses, with the reason."""
        return self.producer.refused(renamed)

    def close(self, *exc: Any) -> None:
        """Close home and producer. A transaction that is not prepared is aborted.

        A producer without transactions stays open for the next attempt, unless an exception ended this one.
        """
        self._resources.__exit__(*exc)


class OpenedTopicsWriter:
    """What the writers to the topics of one attempt have in common.

    Parameters
    ----------
    topics : OpenedTopics
    """

    def __init__(self, topics: OpenedTopics) -> None:
        self._topics = topics
        self._begun = False

    def refused(self, batch: Batch) -> Mapping[int, LogError]:
        """Return the rows that the topic can never take, with the reason."""
        return self._topics.refused(self._topics.with_name_in_log(batch))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._topics.close(*exc)


class NoTopics:
    """The `RowWriter` of a global table's task, which writes to no topic."""

    def __init__(self, name: str = "") -> None:
        pass

    def send(self, batch: Batch) -> None:
        """Ignore the rows."""

    def refused(self, batch: Batch) -> Mapping[int, LogError]:
        """Return an empty mapping: no row is refused."""
        return {}

    def prepare(self) -> list[str]:
        """Return an empty list: there is nothing to commit."""
        return []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        pass
