"""`DeadLetter`: what the headers of a dead letter say, whether kstreams, Kafka Streams or Kafka Connect wrote them."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import dataclass

from kstreams.processor.api.error_handlers import (
    EXCEPTION,
    MESSAGE,
    OFFSET,
    OPERATOR,
    PARTITION,
    REASON,
    STACKTRACE,
    TOPIC,
    ErrorHandlerContext,
)
from kstreams.record import Headers

_CONNECT = "__connect.errors."
STAGES: Mapping[str, str] = {
    "deserialization": "VALUE_CONVERTER",
    "processing": "TRANSFORMATION",
    "production": "KAFKA_PRODUCE",
}
"""The stages of Kafka Connect by the kinds of error handlers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """The failure of a record, from the headers of its dead letter.

    Parameters
    ----------
    topic : str or None
        The topic of the record that failed. None without a record.
    partition, offset : int
        -1 without a record.
    place : str
        The operator that failed. For Kafka Connect: connector, task and stage.
    exception : str
        The class of the exception. Empty for a record that was dropped without an error.
    message : str
        The message of the exception, or the reason for which the record was dropped.
    stacktrace : str
    source_row : str
        For a row that a source of the application could not read: its split and its position. Otherwise empty.

    Examples
    --------
    >>> letter = DeadLetter.of([("__connect.errors.topic", b"orders"), ("__connect.errors.offset", b"7"),
    ...     ("__connect.errors.connector.name", b"sink"), ("__connect.errors.stage", b"VALUE_CONVERTER")])
    >>> letter.topic, letter.offset, letter.place
    ('orders', 7, 'sink VALUE_CONVERTER')
    >>> DeadLetter.of([]) is None
    True
    """

    topic: str | None
    partition: int
    offset: int
    place: str
    exception: str
    message: str
    stacktrace: str
    source_row: str = ""

    @classmethod
    def of(cls, headers: Headers) -> DeadLetter | None:
        """Return the failure that headers describe, or None if they describe none."""
        texts = {name: value.decode(errors="replace") for name, value in headers if value is not None}
        if OFFSET in texts:
            return _of_streams(texts)
        return _of_connect(texts) if f"{_CONNECT}topic" in texts else None

    def __str__(self) -> str:
        source = "no record" if self.topic is None else f"{self.topic}-{self.partition}@{self.offset}"
        source = self.source_row or source
        error = ": ".join(filter(None, (self.exception, self.message)))
        return " ".join(filter(None, (source, self.place, error)))


def _of_streams(texts: Mapping[str, str]) -> DeadLetter:
    exception = texts.get(EXCEPTION, "").partition(":")[0]
    return DeadLetter(
        topic=texts.get(TOPIC),
        partition=_number(texts.get(PARTITION)),
        offset=_number(texts.get(OFFSET)),
        place=texts.get(OPERATOR, ""),
        exception=exception,
        message=texts.get(MESSAGE, texts.get(REASON, "")),
        stacktrace=texts.get(STACKTRACE, ""),
    )


def _of_connect(texts: Mapping[str, str]) -> DeadLetter:
    names = ("connector.name", "task.id", "stage")
    source_row = (texts.get(f"{_CONNECT}source.{name}", "") for name in ("partition", "offset"))
    return DeadLetter(
        topic=texts[f"{_CONNECT}topic"],
        partition=_number(texts.get(f"{_CONNECT}partition")),
        offset=_number(texts.get(f"{_CONNECT}offset")),
        place=" ".join(texts[f"{_CONNECT}{name}"] for name in names if f"{_CONNECT}{name}" in texts),
        exception=texts.get(f"{_CONNECT}exception.class.name", ""),
        message=texts.get(f"{_CONNECT}exception.message", ""),
        stacktrace=texts.get(f"{_CONNECT}exception.stacktrace", ""),
        source_row=" ".join(filter(None, source_row)),
    )


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.lstrip("-").isdigit() else -1


def connect_headers(
    application_id: str, stage: str, context: ErrorHandlerContext, error: BaseException | None, reason: str = ""
) -> Headers:
    """Return the headers that Kafka Connect gives a dead letter (`errors.deadletterqueue.context.headers.enable`).

    Parameters
    ----------
    application_id : str
        Stands for the name of the connector.
    stage : str
        One of `STAGES`.
    context : ErrorHandlerContext
    error : BaseException or None
        None for a record that was dropped without an error.
    reason : str
        The reason for which a record was dropped.
    """
    texts = {
        "topic": context.topic,
        "partition": str(context.partition),
        "offset": str(context.offset),
        "connector.name": application_id,
        "task.id": context.task_id,
        "stage": stage,
        "class.name": context.processor_node_id,
        "exception.class.name": None if error is None else type(error).__qualname__,
        "exception.message": reason or str(error),
        "exception.stacktrace": None if error is None else "".join(traceback.format_exception(error)),
    }
    return tuple(
        (f"{_CONNECT}{name}", text.encode(errors="backslashreplace"))
        for name, text in texts.items()
        if text is not None
    )
