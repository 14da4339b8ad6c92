"""`OutputTopics`: the topics that the rows of a step go to; `RowWriter` takes what an attempt of a task writes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from typing import Protocol, Self

from kstreams.errors import LogError
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.log.api import Admin, Log, Producer
from kstreams.log.topic_types import TopicTypes, create_typed, note_types
from kstreams.runtime.spark.io.open_homes import HomePlace


class RowWriter(AbstractContextManager["RowWriter"], Protocol):
    """Takes the rows that one attempt of a task writes to topics, named as in the topology."""

    def send(self, batch: Batch) -> None:
        """Write rows of one partition."""
        ...

    def refused(self, batch: Batch) -> Mapping[int, LogError]:
        """The rows that their topic would never take, and why."""
        ...

    def prepare(self) -> list[str]:
        """Names of what holds all that was written, for the driver to commit; none when nothing was."""
        ...


class StepOutput(Protocol):
    """How the attempts of a step write; it is sent to the executors."""

    @property
    def topics(self) -> OutputTopics: ...

    def writer(self, name: str) -> RowWriter:
        """What one attempt writes with; `name` is that of its task."""
        ...


@dataclass(frozen=True)
class OutputTopics:
    """The topics that an application writes to.

    Parameters
    ----------
    home : HomePlace
    prefix : str
        Stands before the names of the topics.
    partitions : mapping of str to int
        Number of partitions that a topic (without the prefix) gets when it is made; `default` for all others.
    types : mapping of str to TopicTypes
        What is written to a topic (without the prefix), as far as it is known.
    """

    home: HomePlace
    prefix: str
    partitions: Mapping[str, int]
    default: int
    types: Mapping[str, TopicTypes] = field(default_factory=dict)

    def create(self, admin: Admin, topic: str) -> None:
        """Make a topic, if nobody has made it yet."""
        if self.prefix + topic not in admin.topics():
            count = self.partitions.get(topic, self.default)
            create_typed(admin, self.prefix + topic, count, types=self.types.get(topic))

    def prepare(self, log: Log, topics: Collection[str]) -> None:
        """Make the topics that do not exist yet, and note in their settings what is written; without the prefix."""
        with log.admin() as admin:
            for topic in topics:
                self.create(admin, topic)
                note_types(admin, self.prefix + topic, self.types.get(topic, TopicTypes()))


class OpenedTopics:
    """The topics as one attempt sees them: it opens a producer with its first rows, and makes a topic if need be.

    Parameters
    ----------
    topics : OutputTopics
    settings : mapping
        Of the producer.
    """

    def __init__(self, topics: OutputTopics, settings: Mapping[str, object]) -> None:
        self._topics = topics
        self._settings = settings
        self._resources = ExitStack()
        self._log = self._resources.enter_context(topics.home.opened())
        self._producer: Producer | None = None
        self._known = set[str]()

    @property
    def producer(self) -> Producer:
        """Opened when it is first asked for."""
        if self._producer is None:
            self._producer = self._resources.enter_context(self._log.producer(self._settings))
        return self._producer

    def named(self, batch: Batch) -> Batch:
        """The batch for the topic with its whole name, which is there then."""
        topic, partition = batch.source
        if topic not in self._known:
            with self._log.admin() as admin:
                self._topics.create(admin, topic)
            self._known.add(topic)
        source = TopicPartition(self._topics.prefix + topic, partition)
        return Batch(source, batch.offsets, batch.keys, batch.values, batch.timestamps, batch.headers)

    def refused(self, named: Batch) -> Mapping[int, LogError]:
        """The rows that their topic would never take, and why."""
        return self.producer.refused(named)

    def close(self) -> None:
        """Release the home; a transaction that is not prepared is aborted."""
        self._resources.close()


class NoTopics:
    """In the place of a writer: the rows of a global table's task go nowhere."""

    def __init__(self, name: str = "") -> None:
        pass

    def send(self, batch: Batch) -> None:
        """Drop them."""

    def refused(self, batch: Batch) -> Mapping[int, LogError]:
        """None is."""
        return {}

    def prepare(self) -> list[str]:
        """Nothing was written."""
        return []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        pass
