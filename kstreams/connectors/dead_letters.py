"""`DeadLetters`: writes the records that a sink cannot take to a dead-letter topic, with Kafka Connect's headers."""

from __future__ import annotations

import traceback
from dataclasses import dataclass

from kstreams.errors import ConnectorError
from kstreams.kernel.batch import Batch, Row, TopicPartition
from kstreams.log.api import Producer
from kstreams.record import Headers

PREFIX = "__connect.errors."


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that a sink cannot take.

    Parameters
    ----------
    source : TopicPartition
    offset : int
    row : Row
    stage : str
        The stage of Kafka Connect: VALUE_CONVERTER if the record does not decode, TASK_PUT if the target refuses it.
    error : Exception
    """

    source: TopicPartition
    offset: int
    row: Row
    stage: str
    error: Exception

    def headers(self, connector: str) -> Headers:
        """Return the headers of the record, and those that tell what happened."""
        kind = type(self.error)
        facts = {
            "topic": self.source.topic,
            "partition": str(self.source.partition),
            "offset": str(self.offset),
            "connector.name": connector,
            "task.id": str(self.source.partition),
            "stage": self.stage,
            "class.name": f"{kind.__module__}.{kind.__qualname__}",
            "exception.class.name": f"{kind.__module__}.{kind.__qualname__}",
            "exception.message": str(self.error),
            "exception.stacktrace": "".join(traceback.format_exception(self.error)),
        }
        return (*self.row.headers, *((f"{PREFIX}{name}", text.encode()) for name, text in facts.items()))


class DeadLetters:
    """The dead letters of one connector.

    Parameters
    ----------
    connector : str
        The name of the connector.
    topic : str
        The dead-letter topic. Empty if there is none: a record that a sink cannot take then ends the connector.
    producer : Producer
    """

    def __init__(self, connector: str, topic: str, producer: Producer) -> None:
        self._connector = connector
        self._topic = topic
        self._producer = producer
        self.count = 0
        """The number of dead letters."""

    def add(self, letter: DeadLetter) -> None:
        """Send a record to the dead-letter topic.

        Raises
        ------
        ConnectorError
            If there is no such topic.
        """
        if not self._topic:
            raise ConnectorError(
                f"{self._connector} cannot take the record {letter.source}@{letter.offset}: {letter.error}. Correct "
                "the types or the target, or name a topic for such records: errors.dead.letter.queue.topic.name."
            ) from letter.error
        row = letter.row
        headers = letter.headers(self._connector)
        self._producer.send(self._topic, row.key, row.value, timestamp=row.timestamp, headers=headers)
        self.count += 1

    def flush(self) -> None:
        """Wait until all dead letters are written."""
        self._producer.flush()


def row_at(batch: Batch, index: int) -> Row:
    """Return one row of a batch."""
    return next(batch.slice(index, index + 1).rows())
