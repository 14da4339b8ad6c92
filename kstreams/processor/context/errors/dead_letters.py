"""`DeadLetters`: records for dead-letter topics, kept until the task sends its output: they are committed with it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import groupby

import pyarrow as pa

from kstreams.config import Config
from kstreams.errors import UnknownTopicError
from kstreams.kernel.batch import headers_column
from kstreams.log.naming import did_you_mean
from kstreams.processor.context.encoded_rows import EncodedRows
from kstreams.processor.topology.topology import Topology
from kstreams.record import ProducerRecord


def required_topics(topology: Topology, config: Config, prefix: str = "") -> list[str]:
    """The topics without which an application does not start: those that it reads, and that of its dead letters."""
    name = config["errors.deadletterqueue.topic.name"]
    return [*topology.source_topics, *([] if name is None else [prefix + name])]


def check_dead_letter_topic(config: Config, existing: Collection[str], prefix: str = "") -> None:
    """Raise UnknownTopicError when dead letters would go to a topic that is not there: nobody would look for it.

    Parameters
    ----------
    config : Config
    existing : collection of str
        All topics.
    prefix : str
        Stands before the names of topics that are written.
    """
    name = config["errors.dead.letter.queue.topic.name"]
    if name is not None and prefix + name not in existing:
        topic = prefix + name
        hint = did_you_mean(topic, existing) or f" Create it first: kstreams topics create {topic}"
        raise UnknownTopicError(f"There is no topic {topic!r}, which errors.dead.letter.queue.topic.name names.{hint}")


class DeadLetters:
    """The dead letters of one task.

    Parameters
    ----------
    send : callable
        `send` of the task's collector.
    """

    __slots__ = ("_send", "_waiting", "topics")

    def __init__(self, send: Callable[[str, EncodedRows], None]) -> None:
        self._send = send
        self._waiting: list[ProducerRecord] = []
        self.topics: set[str] = set()
        """Those that were written to."""

    def add(self, letters: Sequence[ProducerRecord]) -> None:
        """Keep letters."""
        self._waiting += letters

    def send(self) -> None:
        """Hand them over, in order by topic."""
        pending, self._waiting = self._waiting, []
        for topic, letters in groupby(sorted(pending, key=_topic), _topic):
            self.topics.add(topic)
            self._send(topic, _encoded(list(letters)))


def _topic(letter: ProducerRecord) -> str:
    return letter.topic


def _encoded(letters: Sequence[ProducerRecord]) -> EncodedRows:
    return EncodedRows(
        pa.array([letter.key for letter in letters], pa.binary()),
        pa.array([letter.value for letter in letters], pa.binary()),
        pa.array([letter.timestamp for letter in letters], pa.int64()),
        headers_column([letter.headers for letter in letters]),
    )
