"""Exception handlers: their arguments, their responses, and the built-in handlers."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, TypeAlias

from kstreams.config import Config
from kstreams.errors import ConfigError
from kstreams.kernel.batch import Batch, rows_of_headers
from kstreams.kernel.timestamps import LATEST_MS
from kstreams.record import Headers, ProducerRecord

KINDS = ("deserialization", "processing", "production")

EXCEPTION = "__streams.errors.exception"
MESSAGE = "__streams.errors.message"
STACKTRACE = "__streams.errors.stacktrace"
TOPIC = "__streams.errors.topic"
PARTITION = "__streams.errors.partition"
OFFSET = "__streams.errors.offset"
OPERATOR = "__streams.errors.operator"
REASON = "__streams.errors.reason"


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorHandlerContext:
    """The place of a failure. Kafka Streams: `ErrorHandlerContext`.

    Parameters
    ----------
    topic : str or None
        Topic of the input record; None if there is no input record, as in a punctuator.
    partition, offset : int
        Partition and offset of the input record; -1 if there is none.
    headers : sequence of (str, bytes or None)
    timestamp : int
        Event time of the processed record in milliseconds; in a punctuator, the time of the call.
    processor_node_id : str
        Name of the operator, as `describe()` prints it.
    task_id : str
        `<sub-topology>_<partition>`.
    source_raw_key, source_raw_value : bytes or None
        Key and value of the input record as it was read.
    origin : "key", "value" or None
        In a production failure, the part that could not be serialized; None if the topic refused the record.
    emitted_key : object
        The key of the update that a flush of the record cache forwarded, before a commit; None elsewhere.

    Examples
    --------
    >>> context = ErrorHandlerContext(topic="in", offset=3, partition=0, source_raw_value=b"x")
    >>> letter = context.dead_letter("failures", ValueError("no number"))
    >>> letter.topic, letter.value, letter.headers[0]
    ('failures', b'x', ('__streams.errors.exception', b'ValueError: no number'))
    """

    topic: str | None = None
    partition: int = -1
    offset: int = -1
    headers: Headers = ()
    timestamp: int = 0
    processor_node_id: str = ""
    task_id: str = ""
    source_raw_key: bytes | None = None
    source_raw_value: bytes | None = None
    origin: Literal["key", "value"] | None = None
    emitted_key: object = None

    @classmethod
    def of_row(cls, batch: Batch, row: int, node: str, task_id: str) -> ErrorHandlerContext:
        """Return the context of one record of a batch at an operator."""
        headers = () if batch.headers is None else rows_of_headers(batch.headers.slice(row, 1))[0]
        return cls(
            topic=batch.source.topic,
            partition=batch.source.partition,
            offset=int(batch.offsets[row]),
            headers=headers,
            timestamp=batch.timestamps[row].as_py(),
            processor_node_id=node,
            task_id=task_id,
            source_raw_key=batch.keys[row].as_py(),
            source_raw_value=batch.values[row].as_py(),
        )

    def dead_letter(self, topic: str, error: BaseException) -> ProducerRecord:
        """Return the input record as it was read, for a dead-letter topic, with Kafka Streams' error headers."""
        trace = "".join(traceback.format_exception(error))
        error_headers = {EXCEPTION: described(error), MESSAGE: str(error), STACKTRACE: trace}
        headers = (
            *((name, text.encode(errors="backslashreplace")) for name, text in error_headers.items()),
            *self.place(),
        )
        return self._letter(topic, headers)

    def dropped_letter(self, topic: str, reason: str) -> ProducerRecord:
        """Return the dead letter of a record that an operator dropped without an error."""
        return self._letter(topic, (*self.place(), *self.cause(reason)))

    def place(self) -> tuple[tuple[str, bytes | None], ...]:
        """Return the headers with topic, partition and offset of the input record."""
        topic = None if self.topic is None else self.topic.encode()
        return (TOPIC, topic), (PARTITION, str(self.partition).encode()), (OFFSET, str(self.offset).encode())

    def cause(self, reason: str) -> tuple[tuple[str, bytes | None], ...]:
        """Return the headers with the operator that dropped a record, and the reason."""
        return (OPERATOR, self.processor_node_id.encode()), (REASON, reason.encode())

    def _letter(self, topic: str, headers: Headers) -> ProducerRecord:
        time_ms = self.timestamp if 0 <= self.timestamp <= LATEST_MS else 0
        return ProducerRecord(topic, self.source_raw_key, self.source_raw_value, time_ms, headers)


def outside_of_records(emitted_key: object) -> str:
    """Describe the place of an error without an input record: a punctuator, or a flush of the record cache.

    Examples
    --------
    >>> outside_of_records(None), outside_of_records("a")
    ('(none: outside of any record)', "(none: a flush of the record cache, key 'a')")
    """
    return f"(none: {'outside of any record' if emitted_key is None else _flush_of(emitted_key)})"


def _flush_of(key: object) -> str:
    return f"a flush of the record cache, key {key!r}"


def described(error: BaseException) -> str:
    """Describe an exception as Java's `toString` does.

    Examples
    --------
    >>> described(ValueError("no")), described(KeyError())
    ('ValueError: no', 'KeyError')
    """
    kind = type(error).__qualname__
    text = str(error)
    return f"{kind}: {text}" if text else kind


class Result(Enum):
    """The decision about a failure."""

    FAIL = "fail"
    RESUME = "resume"
    RETRY = "retry"


@dataclass(frozen=True, slots=True)
class Response:
    """The response of an exception handler. Kafka Streams: `Response` of its exception handlers.

    Examples
    --------
    >>> Response.resume().result, Response.retry() == Response.fail()
    (<Result.RESUME: 'resume'>, False)
    """

    result: Result
    dead_letter_records: tuple[ProducerRecord, ...] = ()

    @classmethod
    def fail(cls, dead_letter_records: Sequence[ProducerRecord] = ()) -> Response:
        """End the thread with the error, after writing the dead letters."""
        return cls(Result.FAIL, tuple(dead_letter_records))

    @classmethod
    def resume(cls, dead_letter_records: Sequence[ProducerRecord] = ()) -> Response:
        """Continue without the record, after writing the dead letters."""
        return cls(Result.RESUME, tuple(dead_letter_records))

    @classmethod
    def retry(cls) -> Response:
        """Try again, up to `task.timeout.ms`, if a topic refused a record for the time being; else fail."""
        return cls(Result.RETRY)


ExceptionHandler: TypeAlias = Callable[[ErrorHandlerContext, Any, Exception], Response]
"""`handler(context, record, error)`. In production, `record` is a `ProducerRecord`; its key or value is not serialized
yet if `context.origin` is set. Else `record` is a `Record`: of bytes in deserialization, the operator's input in
processing. A punctuator has no record (None)."""

_RESULTS = {"fail": Result.FAIL, "continue": Result.RESUME, "retry": Result.RETRY}


def handler_of(setting: Any, dead_letters_to: str | None, *, tells_reason: bool = False) -> ExceptionHandler:
    """Return the handler of a setting: the user's function, or a function that always gives the same response.

    Parameters
    ----------
    setting : str or callable
    dead_letters_to : str or None
        The topic to which the built-in handlers write the input record; None if they write no dead letters.
    tells_reason : bool
        True if their dead letters also name operator and reason.
    """
    if callable(setting):
        return _checked(setting)
    result = _RESULTS[setting]

    def handler(context: ErrorHandlerContext, record: object, error: Exception) -> Response:
        if dead_letters_to is None or result is Result.RETRY:
            return Response(result)
        letter = context.dead_letter(dead_letters_to, error)
        if tells_reason:
            letter = letter._replace(headers=(*letter.headers, *context.cause(reason_of(error))))
        return Response(result, (letter,))

    return handler


def writes_any_topic(config: Config) -> bool:
    """Return whether a handler is the user's own, which may return records for any topic."""
    return any(callable(config[f"{kind}.exception.handler"]) for kind in KINDS)


def reason_of(error: BaseException) -> str:
    """Return the reason by which a failed record is counted. It names only the error's type, so that reasons stay few.

    Examples
    --------
    >>> reason_of(ValueError("no number: 'x'"))
    'failed with ValueError'
    """
    return f"failed with {type(error).__qualname__}"


def _checked(function: Callable[..., Any]) -> ExceptionHandler:
    def handler(context: ErrorHandlerContext, record: object, error: Exception) -> Response:
        response = function(context, record, error)
        if not isinstance(response, Response):
            name = getattr(function, "__qualname__", repr(function))
            raise ConfigError(
                f"The exception handler {name} returned {response!r}: it must return Response.fail(), "
                "Response.resume() or Response.retry()."
            )
        return response

    return handler
