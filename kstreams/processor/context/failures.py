"""`Failures`: the handling of failed and dropped records in a task: call the handlers, write dead letters.

Records that do not fail cost no time: with the default handlers and without a dead-letter topic, closures are bound as
if there were no policies.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Literal

import pyarrow as pa

from kstreams.config import Config
from kstreams.errors import (
    ConfigError,
    FencedError,
    LogError,
    ProcessingError,
    RegistryError,
    SerdeError,
    StateError,
    UnknownTopicError,
)
from kstreams.kernel.batch import headers_column
from kstreams.kernel.clock import Clock
from kstreams.kernel.durations import time_ms
from kstreams.kernel.timestamps import InvalidTimestampError
from kstreams.log.naming import did_you_mean
from kstreams.processor.api.dead_letters import STAGES, connect_headers
from kstreams.processor.api.error_handlers import (
    KINDS,
    ErrorHandlerContext,
    Response,
    Result,
    handler_of,
    outside_of_records,
    reason_of,
)
from kstreams.processor.context.encoded_rows import EncodedRows
from kstreams.processor.topology.operator import Forward
from kstreams.processor.topology.topology import Topology
from kstreams.record import ProducerRecord, Record

logger = logging.getLogger("kstreams.processor")


@dataclass(frozen=True, slots=True)
class ErrorPolicies:
    """The handlers of an application and its dead-letter topic.

    Parameters
    ----------
    handlers : mapping of str to object
        The setting of each kind of handler.
    dead_letter_topic : str or None
    keeps_dropped : bool
        True if dropped records get a dead letter too.
    handles_global : bool
        True if the processing handler also decides about global tables.
    connect_name : str or None
        The application id, if dead letters also have the headers of Kafka Connect. Otherwise None.

    Examples
    --------
    >>> ErrorPolicies.of(Config.of({"processing.exception.handler": "continue"})).handlers["processing"]
    'continue'
    """

    handlers: Mapping[str, object]
    dead_letter_topic: str | None
    keeps_dropped: bool
    handles_global: bool
    connect_name: str | None = None

    @classmethod
    def of(cls, config: Config) -> ErrorPolicies:
        """Return the policies of a configuration.

        Raises
        ------
        ConfigError
            If dropped records are to get a dead letter, but no topic for them is set.
        """
        topic, keeps_dropped = (config[f"errors.dead.letter.queue.{key}"] for key in ("topic.name", "dropped.records"))
        if keeps_dropped and not topic:
            raise ConfigError(
                "errors.dead.letter.queue.dropped.records needs a topic: name it in errors.dead.letter.queue.topic.name"
            )
        handlers = {kind: config[f"{kind}.exception.handler"] for kind in KINDS}
        has_connect_headers = config["errors.dead.letter.queue.connect.headers"]
        return cls(
            handlers,
            topic,
            keeps_dropped,
            config["processing.exception.handler.global.enabled"],
            (config["application.id"] or "") if has_connect_headers else None,
        )

    def of_global_tables(self) -> ErrorPolicies:
        """Return the policies of tasks that fill global tables, which write no topics."""
        handlers = dict(self.handlers) if self.handles_global else {**self.handlers, "processing": "fail"}
        return replace(self, handlers=handlers, dead_letter_topic=None, keeps_dropped=False)


def required_topics(topology: Topology, config: Config, prefix: str = "") -> list[str]:
    """Return the topics without which an application does not start: its sources, and its dead-letter topic."""
    name = config["errors.deadletterqueue.topic.name"]
    return [*topology.source_topics, *([] if name is None else [prefix + name])]


def check_dead_letter_topic(config: Config, existing: Collection[str], prefix: str = "") -> None:
    """Raise UnknownTopicError if the dead-letter topic does not exist: nobody would look for the letters.

    Parameters
    ----------
    config : Config
    existing : collection of str
        The names of all topics.
    prefix : str
        The prefix of the names of written topics.
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
        """The topics that were written to."""

    def add(self, letters: Sequence[ProducerRecord]) -> None:
        """Buffer letters."""
        self._waiting += letters

    def send(self) -> None:
        """Send the buffered letters, topic by topic, in order."""
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


_MOST_MS = 30_000


class Drops:
    """The counts of dropped records by operator and reason, of one task or of a whole run.

    Parameters
    ----------
    who : str
        The task or run, which begins each log line.
    clock : Clock
    every_ms : int
        Least time between two log lines (`log.summary.interval.ms`), at most half a minute. If 0 or less, only
        `report` logs.

    Examples
    --------
    >>> from kstreams.kernel.clock import ManualClock
    >>> drops = Drops("task 0_0", ManualClock(), 1000)
    >>> for offset in (7, 9):
    ...     drops.add("COUNT", "null key", lambda: f"in-0@{offset}")
    >>> drops.counts["COUNT", "null key"], drops.unreported["COUNT", "null key"]
    (2, 1)
    """

    __slots__ = ("_clock", "_every_ms", "_reported_ms", "_who", "counts", "unreported")

    def __init__(self, who: str, clock: Clock, every_ms: int) -> None:
        self._who = who
        self._clock = clock
        self._every_ms = min(every_ms, _MOST_MS)
        self._reported_ms = clock.uptime_ms()
        self.counts: Counter[tuple[str, str]] = Counter()
        self.unreported: Counter[tuple[str, str]] = Counter()

    def add(self, node: str, reason: str, place: Callable[[], str], count: int = 1) -> None:
        """Count records. The first records of an operator and reason are logged at once, with their place."""
        kind = node, reason
        if kind not in self.counts:
            subject = "a record" if count == 1 else f"{count} records"
            logger.warning("%s: %s dropped %s at %s: %s", self._who, node, subject, place(), reason)
        else:
            self.unreported[kind] += count
        self.counts[kind] += count

    def report_if_due(self) -> None:
        """Log the counts if it is time. Cheap if nothing was dropped, so that it may be called often."""
        if self.unreported and 0 < self._every_ms <= self._clock.uptime_ms() - self._reported_ms:
            self.report()

    def report(self) -> None:
        """Log the counts that were not logged yet."""
        now_ms = self._clock.uptime_ms()
        for (node, reason), count in self.unreported.items():
            logger.warning("%s: %s dropped %d more records: %s", self._who, node, count, reason)
        self.unreported.clear()
        self._reported_ms = now_ms


UNHANDLED = (ProcessingError, FencedError, LogError, RegistryError, StateError)
"""Errors that no handler decides about: they were handled already, or the task cannot continue."""

Call = Callable[[int], None]


class Failures:
    """The error policies of one task, with the actions that follow from them.

    Parameters
    ----------
    policies : ErrorPolicies
    drops : Drops
        The counts of dropped records.
    letters : DeadLetters
        The buffer of dead letters.
    declared_at : mapping of str to (str or None)
        The line of the user's code that declared each operator.
    """

    def __init__(
        self, policies: ErrorPolicies, drops: Drops, letters: DeadLetters, declared_at: Mapping[str, str | None]
    ) -> None:
        self.drops = drops
        self.parked: Counter[str] = Counter()
        """The number of parked records by operator."""
        self._letters = letters
        self._declared_at = declared_at
        topic = policies.dead_letter_topic
        settings = policies.handlers
        self.keeps_dropped = policies.keeps_dropped
        self._topic = topic
        self._last_dropped: ProducerRecord | None = None
        handlers = {kind: handler_of(settings[kind], topic, tells_reason=self.keeps_dropped) for kind in KINDS}
        self._handlers = handlers
        self._connect_name = policies.connect_name
        guards = [settings[kind] not in ("fail", "retry") or topic is not None for kind in KINDS]
        self.guards_deserialization, self.guards_processing, self.guards_production = guards

    def guarded(self, node: str, process: Forward, context_of: Callable[[str, int], ErrorHandlerContext]) -> Forward:
        """Return the closure of an operator with errors passed to the handler."""

        def guard(key: object, value: object, timestamp: int) -> None:
            try:
                process(key, value, timestamp)
            except Exception as error:
                self.processing(context_of(node, timestamp), Record(key=key, value=value, timestamp=timestamp), error)

        return guard

    def guarded_call(self, node: str, call: Call, context_of: Callable[[str, int], ErrorHandlerContext]) -> Call:
        """Return a punctuator, which has no record, with errors passed to the handler."""

        def guard(time_ms: int) -> None:
            try:
                call(time_ms)
            except Exception as error:
                self.processing(context_of(node, time_ms), None, error)

        return guard

    def processing(self, context: ErrorHandlerContext, record: Record[object, object] | None, error: Exception) -> None:
        """Handle the failure of an operator. Returns if the operator's subtree is to be skipped.

        Raises
        ------
        ProcessingError
            If the task is to end; names operator, line and record.
        """
        if isinstance(error, UNHANDLED):
            raise error
        if record is not None:
            record = record.with_headers(context.headers)
        node = context.processor_node_id
        if self._is_over("processing", context, record, error):
            raise ProcessingError(node, self._declared_at.get(node), place_of(context), error) from error

    def deserialization(self, context: ErrorHandlerContext, record: Record, error: SerdeError) -> None:
        """Handle an input record that does not decode. Raises the error if the task is to end."""
        if self._is_over("deserialization", context, record, error):
            raise error

    def invalid_time(self, context: ErrorHandlerContext, record: Record, error: InvalidTimestampError) -> None:
        """Handle an input record with an invalid time.

        Raises
        ------
        ProcessingError
            If the task is to end, by the decision of the deserialization handler.
        """
        if self._is_over("deserialization", context, record, error):
            node = context.processor_node_id
            raise ProcessingError(node, self._declared_at.get(node), place_of(context), error) from error

    def serialization(
        self,
        context: ErrorHandlerContext,
        record: ProducerRecord,
        error: SerdeError,
        origin: Literal["key", "value"],
    ) -> None:
        """Handle a key or value that does not encode. Raises the error if the task is to end."""
        if self._is_over("production", replace(context, origin=origin), record, error):
            raise error

    def refused(self, context: ErrorHandlerContext, record: ProducerRecord, error: LogError) -> None:
        """Handle a record that a topic will never accept.

        Raises
        ------
        LogError
            If the task is to end; names operator, line and input record.
        """
        if self._is_over("production", context, record, error):
            node = context.processor_node_id
            declared = f" (declared at {self._declared_at[node]})" if self._declared_at.get(node) else ""
            source = f", which follows from {place_of(context)}" if context.topic is not None else ""
            raise LogError(
                f"{node}{declared} cannot write a record to topic {record.topic}{source}: {error}"
            ) from error

    def dropped(self, context: ErrorHandlerContext, reason: str, count: int = 1) -> None:
        """Count records that an operator dropped; the context is that of the last one."""
        self.drops.add(context.processor_node_id, reason, lambda: place_of(context), count)
        if self.keeps_dropped:
            self._keep(context, reason)

    def park(self, node: str, record: ProducerRecord) -> None:
        """Write a record to the parking topic of an operator."""
        self.parked[node] += 1
        self._letters.add((record,))

    def send_letters(self) -> None:
        """Send the buffered dead letters and parked records."""
        self._letters.send()

    @property
    def written_topics(self) -> frozenset[str]:
        """The topics to which dead letters were sent."""
        return frozenset(self._letters.topics)

    def _keep(self, context: ErrorHandlerContext, reason: str) -> None:
        """Write one dead letter per dropped record, even if the record is late for several windows."""
        if self._topic is None:
            return
        letter = context.dropped_letter(self._topic, reason)
        if self._connect_name is not None:
            headers = connect_headers(self._connect_name, STAGES["processing"], context, None, reason)
            letter = letter._replace(headers=(*letter.headers, *headers))
        if letter != self._last_dropped or context.topic is None:
            self._letters.add((letter,))
        self._last_dropped = letter

    def _is_over(self, kind: str, context: ErrorHandlerContext, record: object, error: Exception) -> bool:
        """Ask the handler about a failure that cannot be retried; return whether the task is to end."""
        response = self._ask(kind, context, record, error)
        if response.result is not Result.RESUME:
            self._letters.send()  # nothing is sent after the error
            return True
        self._count_skipped(context, response, error)
        return False

    def _ask(self, kind: str, context: ErrorHandlerContext, record: Any, error: Exception) -> Response:
        handler: Any = self._handlers[kind]
        try:
            response: Response = handler(context, record, error)
            letters = [letter._replace(timestamp=time_ms(letter.timestamp)) for letter in response.dead_letter_records]
        except Exception as failure:
            node = context.processor_node_id
            raise ProcessingError(node, self._declared_at.get(node), place_of(context), failure) from failure
        if self._connect_name is not None:
            headers = connect_headers(self._connect_name, STAGES[kind], context, error)
            letters = [letter._replace(headers=(*letter.headers, *headers)) for letter in letters]
        self._letters.add(letters)
        return response

    def _count_skipped(self, context: ErrorHandlerContext, response: Response, error: Exception) -> None:
        """Count a record that failed. If the handler wrote no dead letter, write the one of a dropped record."""
        if response.dead_letter_records:
            self.drops.add(context.processor_node_id, reason_of(error), lambda: place_of(context))
        else:
            self.dropped(context, reason_of(error))


def place_of(context: ErrorHandlerContext) -> str:
    """Return the place of the input record for errors and log lines."""
    if context.topic is None:
        return outside_of_records(context.emitted_key)
    return f"{context.topic}-{context.partition}@{context.offset}"
