"""`DeadLetters`: writes what a connector cannot take to a dead-letter topic, with Kafka Connect's headers."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from kstreams.connectors.api import UnreadableRow
from kstreams.errors import ConnectorError
from kstreams.kernel.batch import Batch, Row, TopicPartition
from kstreams.log.api import Producer
from kstreams.record import Headers

PREFIX = "__connect.errors."
_EXCERPT_BYTES = 80


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A record that a sink cannot take, or a row that a source cannot read.

    Parameters
    ----------
    row : Row
    place : str
        Where it is, for the message.
    origin : mapping of str to str
        Where it is, for the headers.
    task : int
    stage : str
        The stage of Kafka Connect: VALUE_CONVERTER if the bytes do not decode, TASK_PUT if the target refuses the row.
    error : Exception
    """

    row: Row
    place: str
    origin: Mapping[str, str]
    task: int
    stage: str
    error: Exception

    @classmethod
    def of_record(cls, batch: Batch, index: int, stage: str, error: Exception) -> DeadLetter:
        """Return the dead letter of a record of a topic."""
        source = batch.source
        offset = int(batch.offsets[index])
        origin = {"topic": source.topic, "partition": str(source.partition), "offset": str(offset)}
        row = next(batch.slice(index, index + 1).rows())
        return cls(row, f"the record {source}@{offset}", origin, source.partition, stage, error)

    @classmethod
    def of_unreadable(cls, row: UnreadableRow, split: str, target: TopicPartition, now_ms: int) -> DeadLetter:
        """Return the dead letter of a row of a source, which has no offset.

        Parameters
        ----------
        row : UnreadableRow
        split : str
        target : TopicPartition
            The topic of the source, and the number of the task.
        now_ms : int
        """
        origin = {
            "topic": target.topic,
            "partition": "-1",
            "offset": "-1",
            "source.partition": split,
            "source.offset": msgspec.json.encode(row.position).decode(),
        }
        place = f"{row.content[:_EXCERPT_BYTES]!r} of {split} at {row.position!r}"
        return cls(Row(None, row.content, now_ms, ()), place, origin, target.partition, "VALUE_CONVERTER", row.error)

    def headers(self, connector: str) -> Headers:
        """Return the headers of the record, and those that tell what happened."""
        kind = type(self.error)
        facts = {
            **self.origin,
            "connector.name": connector,
            "task.id": str(self.task),
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
        The dead-letter topic. Empty if there is none: a row that the connector cannot take then ends it.
    producer : Producer
        For a source, the one of its records: a dead letter is in the transaction of the records around its row.
    """

    def __init__(self, connector: str, topic: str, producer: Producer) -> None:
        self._connector = connector
        self._topic = topic
        self._producer = producer
        self.count = 0
        """The number of dead letters."""

    def add(self, letter: DeadLetter) -> None:
        """Send a row to the dead-letter topic.

        Raises
        ------
        ConnectorError
            If there is no such topic.
        """
        if not self._topic:
            raise ConnectorError(
                f"{self._connector} cannot take {letter.place}: {letter.error}. Correct the data, the types or the "
                "target, or name a topic for such rows: errors.dead.letter.queue.topic.name."
            ) from letter.error
        row = letter.row
        headers = letter.headers(self._connector)
        self._producer.send(self._topic, row.key, row.value, timestamp=row.timestamp, headers=headers)
        self.count += 1

    def flush(self) -> None:
        """Wait until all dead letters are written."""
        self._producer.flush()
