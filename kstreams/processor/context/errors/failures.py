"""`Failures`: what a task does when something fails or a record is dropped: ask the handlers, write dead letters.

A record that does not fail costs nothing more: with the default handlers and without a dead-letter topic, closures are
bound as if there were no policies.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any, Literal

import pyarrow as pa

from kstreams.config import Config
from kstreams.errors import (
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
from kstreams.processor.context.errors.error_policies import ErrorPolicies
from kstreams.processor.topology.operator import Forward
from kstreams.processor.topology.topology import Topology
from kstreams.record import ProducerRecord, Record


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


logger = logging.getLogger("kstreams.processor")

_MOST_MS = 30_000


class Drops:
    """Counts by operator and reason, of one task or of a whole run.

    Parameters
    ----------
    who : str
        Begins the lines in the log.
    clock : Clock
    every_ms : int
        Least time between two sums (`log.summary.interval.ms`), half a minute at most; 0 or less: only a last one.

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
        """Count records; the first of an operator and reason are logged at once, with their place."""
        kind = node, reason
        if kind not in self.counts:
            subject = "a record" if count == 1 else f"{count} records"
            logger.warning("%s: %s dropped %s at %s: %s", self._who, node, subject, place(), reason)
        else:
            self.unreported[kind] += count
        self.counts[kind] += count

    def report_if_due(self) -> None:
        """Log the sums, if it is time. Cheap when nothing was dropped: to be called often."""
        if self.unreported and 0 < self._every_ms <= self._clock.uptime_ms() - self._reported_ms:
            self.report()

    def report(self) -> None:
        """Log the sums of what was not logged yet."""
        now_ms = self._clock.uptime_ms()
        for (node, reason), count in self.unreported.items():
            logger.warning("%s: %s dropped %d more records: %s", self._who, node, count, reason)
        self.unreported.clear()
        self._reported_ms = now_ms


UNHANDLED = (ProcessingError, FencedError, LogError, RegistryError, StateError)
"""What no handler is asked about: it has been handled already, or the task itself cannot go on."""

Call = Callable[[int], None]


class Failures:
    """The error policies of one task at work.

    Parameters
    ----------
    policies : ErrorPolicies
    drops : Drops
        Counts what is skipped.
    letters : DeadLetters
        Takes what goes to the dead-letter topic.
    declared_at : mapping of str to (str or None)
        The user's line by operator.
    """

    def __init__(
        self, policies: ErrorPolicies, drops: Drops, letters: DeadLetters, declared_at: Mapping[str, str | None]
    ) -> None:
        self.drops = drops
        self._letters = letters
        self._declared_at = declared_at
        topic = policies.dead_letter_topic
        settings = policies.handlers
        self.keeps_dropped = policies.keeps_dropped
        self._topic = topic
        self._last_dropped: ProducerRecord | None = None
        handlers = {kind: handler_of(settings[kind], topic, tells_reason=self.keeps_dropped) for kind in KINDS}
        self._deserialization, self._processing, self._production = handlers.values()
        guards = [settings[kind] not in ("fail", "retry") or topic is not None for kind in KINDS]
        self.guards_deserialization, self.guards_processing, self.guards_production = guards

    def guarded(self, node: str, process: Forward, context_of: Callable[[str, int], ErrorHandlerContext]) -> Forward:
        """The closure of an operator; the handler is asked about errors in it."""

        def guard(key: object, value: object, timestamp: int) -> None:
            try:
                process(key, value, timestamp)
            except Exception as error:
                self.processing(context_of(node, timestamp), Record(key=key, value=value, timestamp=timestamp), error)

        return guard

    def guarded_call(self, node: str, call: Call, context_of: Callable[[str, int], ErrorHandlerContext]) -> Call:
        """The same for a punctuator, which has no record."""

        def guard(time_ms: int) -> None:
            try:
                call(time_ms)
            except Exception as error:
                self.processing(context_of(node, time_ms), None, error)

        return guard

    def processing(self, context: ErrorHandlerContext, record: Record[object, object] | None, error: Exception) -> None:
        """An operator has failed: returns when its subtree is to be left out, raises when the task is to end.

        Raises
        ------
        ProcessingError
            When the handler says so; names operator, line and record.
        """
        if isinstance(error, UNHANDLED):
            raise error
        if record is not None:
            record = record.with_headers(context.headers)
        node = context.processor_node_id
        if self._is_over(self._processing, context, record, error):
            raise ProcessingError(node, self._declared_at.get(node), place_of(context), error) from error

    def deserialization(self, context: ErrorHandlerContext, record: Record[Any, Any], error: SerdeError) -> None:
        """Bytes of an input record do not decode; raises the error when the task is to end."""
        if self._is_over(self._deserialization, context, record, error):
            raise error

    def invalid_time(
        self, context: ErrorHandlerContext, record: Record[Any, Any], error: InvalidTimestampError
    ) -> None:
        """An input record has a time that none may have.

        Raises
        ------
        ProcessingError
            When the handler of deserialization says that the task ends.
        """
        if self._is_over(self._deserialization, context, record, error):
            node = context.processor_node_id
            raise ProcessingError(node, self._declared_at.get(node), place_of(context), error) from error

    def serialization(
        self,
        context: ErrorHandlerContext,
        record: ProducerRecord,
        error: SerdeError,
        origin: Literal["key", "value"],
    ) -> None:
        """A key or value does not encode; raises the error when the task is to end."""
        if self._is_over(self._production, replace(context, origin=origin), record, error):
            raise error

    def refused(self, context: ErrorHandlerContext, record: ProducerRecord, error: LogError) -> None:
        """A topic will never take a record.

        Raises
        ------
        LogError
            When the handler says that the task ends; names operator, line and input record.
        """
        if self._is_over(self._production, context, record, error):
            node = context.processor_node_id
            declared = f" (declared at {self._declared_at[node]})" if self._declared_at.get(node) else ""
            source = f", which follows from {place_of(context)}" if context.topic is not None else ""
            raise LogError(
                f"{node}{declared} cannot write a record to topic {record.topic}{source}: {error}"
            ) from error

    def dropped(self, context: ErrorHandlerContext, reason: str, count: int = 1) -> None:
        """An operator skips records, the last of which the context tells of."""
        self.drops.add(context.processor_node_id, reason, lambda: place_of(context), count)
        if self.keeps_dropped:
            self._keep(context, reason)

    def send_letters(self) -> None:
        """Hand over the dead letters that wait for the task's next output."""
        self._letters.send()

    @property
    def written_topics(self) -> frozenset[str]:
        """Where dead letters went so far."""
        return frozenset(self._letters.topics)

    def _keep(self, context: ErrorHandlerContext, reason: str) -> None:
        """Write one dead letter per dropped record, even if the record is late for several windows."""
        if self._topic is None:
            return
        letter = context.dropped_letter(self._topic, reason)
        if letter != self._last_dropped or context.topic is None:
            self._letters.add((letter,))
        self._last_dropped = letter

    def _is_over(self, handler: object, context: ErrorHandlerContext, record: object, error: Exception) -> bool:
        """Whether the answer to a failure that cannot be tried again is that the task ends."""
        response = self._ask(handler, context, record, error)
        if response.result is not Result.RESUME:
            self._letters.send()  # nothing is sent after this
            return True
        self._left_out(context, response, error)
        return False

    def _ask(self, handler: Any, context: ErrorHandlerContext, record: Any, error: Exception) -> Response:
        try:
            response: Response = handler(context, record, error)
            letters = [letter._replace(timestamp=time_ms(letter.timestamp)) for letter in response.dead_letter_records]
        except Exception as failure:
            node = context.processor_node_id
            raise ProcessingError(node, self._declared_at.get(node), place_of(context), failure) from failure
        self._letters.add(letters)
        return response

    def _left_out(self, context: ErrorHandlerContext, response: Response, error: Exception) -> None:
        """Count a record that failed; it has its dead letter, or it gets the one of every dropped record."""
        if response.dead_letter_records:
            self.drops.add(context.processor_node_id, reason_of(error), lambda: place_of(context))
        else:
            self.dropped(context, reason_of(error))


def place_of(context: ErrorHandlerContext) -> str:
    """Where the input record came from, as errors and log lines say it."""
    if context.topic is None:
        return outside_of_records(context.emitted_key)
    return f"{context.topic}-{context.partition}@{context.offset}"
