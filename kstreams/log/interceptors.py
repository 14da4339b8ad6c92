"""Interceptors: objects of the user that change records before they are sent and after they are read.

They are also called after deliveries and commits. They wrap the clients of every home. If an interceptor raises an
error, the error is logged and the record does not change.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple, TypeVar, cast

from kstreams.errors import ConfigError, LogError
from kstreams.kernel.batch import Batch, Row, TopicPartition
from kstreams.kernel.durations import Time
from kstreams.log.api import Consumer, Delivery, OffsetAndMetadata, OnCommit, OnDelivery, Producer
from kstreams.log.record_checks import checked_time
from kstreams.record import Headers

INTERCEPTORS = "interceptors"

_logger = logging.getLogger("kstreams.interceptors")
_ONLY_ERRORS = "delivery.report.only.error"

T = TypeVar("T")


class SentRecord(NamedTuple):
    """A record before it is sent. `timestamp` and `partition` are None if the producer chooses them."""

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    timestamp: Time | None
    headers: Headers


class ProducerInterceptor:
    """An interceptor of a producer. The methods of this class change nothing. Kafka: `ProducerInterceptor`.

    Examples
    --------
    >>> class Tracing(ProducerInterceptor):
    ...     def on_send(self, record):
    ...         return record._replace(headers=(*record.headers, ("trace", b"1")))
    """

    def on_send(self, record: SentRecord) -> SentRecord:
        """Return the record to send instead, with the same topic and partition. Not called again on a retry."""
        return record

    def on_acknowledgement(self, delivery: Delivery) -> None:
        """React to the delivery or the failure of a record or a batch. Called in the order of sending."""

    def close(self) -> None:
        """Release resources. Called when the producer is closed."""


class ConsumerInterceptor:
    """An interceptor of a consumer. The methods of this class change nothing. Kafka: `ConsumerInterceptor`.

    Examples
    --------
    >>> class Counting(ConsumerInterceptor):
    ...     count = 0
    ...     def on_consume(self, batches):
    ...         self.count += sum(map(len, batches))
    ...         return batches
    """

    def on_consume(self, batches: list[Batch]) -> list[Batch]:
        """Return the batches that `poll` returns instead. Positions follow the batches that were read."""
        return batches

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """React to a commit of offsets by the consumer. Not called for commits in a producer's transaction."""

    def close(self) -> None:
        """Release resources. Called when the consumer is closed."""


def producer_with(config: Mapping[str, Any] | None, create: Callable[[dict[str, object]], Producer]) -> Producer:
    """Create a producer with the interceptors in its settings.

    Parameters
    ----------
    config : mapping or None
        `interceptors`: objects, classes, or import paths such as `package.module:Tracing`, separated by commas in a
        text. All other settings are passed to `create`.
    create : callable
    """
    settings, interceptors = _split_settings(config)
    if not interceptors:
        return create(settings)
    only_errors = str(settings.pop(_ONLY_ERRORS, False)).lower() == "true"
    return cast("Producer", InterceptedProducer(create(settings), interceptors, only_errors=only_errors))


def consumer_with(config: Mapping[str, Any] | None, create: Callable[[dict[str, object]], Consumer]) -> Consumer:
    """Create a consumer with the interceptors in its settings, as `producer_with`."""
    settings, interceptors = _split_settings(config)
    consumer = create(settings)
    return cast("Consumer", InterceptedConsumer(consumer, interceptors)) if interceptors else consumer


class InterceptedProducer:
    """A producer whose records pass through interceptors; see `kstreams.log.api.Producer`.

    Parameters
    ----------
    producer : Producer
        A producer that reports every delivery.
    interceptors : sequence of ProducerInterceptor
    only_errors : bool
        True if the callbacks of callers are called for failures only.
    """

    def __init__(self, producer: Producer, interceptors: Sequence[Any], *, only_errors: bool) -> None:
        self._producer = producer
        self._interceptors = interceptors
        self._only_errors = only_errors

    def __getattr__(self, name: str) -> Any:
        return getattr(self._producer, name)

    def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        *,
        timestamp: Time | None = None,
        headers: Headers = (),
        partition: int | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> None:
        """Buffer one record after the interceptors have changed it."""
        record = self._on_send(SentRecord(topic, partition, key, value, timestamp, tuple(headers)))
        report = self._report(on_delivery)
        try:
            self._producer.send(
                topic,
                record.key,
                record.value,
                timestamp=record.timestamp,
                headers=record.headers,
                partition=partition,
                on_delivery=report,
            )
        except LogError as error:
            source = TopicPartition(topic, -1 if partition is None else partition)
            self._notify_acknowledgement(Delivery(source, -1, 1, error))
            raise

    def send_batch(self, batch: Batch, on_delivery: OnDelivery | None = None) -> None:
        """Buffer a batch after the interceptors have changed its rows."""
        source = batch.source
        topic, partition = source
        records = (SentRecord(topic, partition, row.key, row.value, row.timestamp, row.headers) for row in batch.rows())
        sent = map(self._on_send, records)
        rows = [Row(record.key, record.value, checked_time(record.timestamp or 0), record.headers) for record in sent]
        self._producer.send_batch(Batch.of_rows(source, rows) if rows else batch, self._report(on_delivery))

    def close(self) -> None:
        """Close the producer, then the interceptors."""
        try:
            self._producer.close()
        finally:
            _close(self._interceptors)

    def __enter__(self) -> InterceptedProducer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _on_send(self, record: SentRecord) -> SentRecord:
        for interceptor in self._interceptors:
            changed = _call(interceptor.on_send, record, default=record)
            if (changed.topic, changed.partition) == (record.topic, record.partition):
                record = changed
            else:
                _logger.error("%r sends a record to another topic or partition: the change is ignored.", interceptor)
        return record

    def _report(self, on_delivery: OnDelivery | None) -> OnDelivery:
        def report(delivery: Delivery) -> None:
            self._notify_acknowledgement(delivery)
            if on_delivery is not None and (delivery.error is not None or not self._only_errors):
                on_delivery(delivery)

        return report

    def _notify_acknowledgement(self, delivery: Delivery) -> None:
        for interceptor in self._interceptors:
            _call(interceptor.on_acknowledgement, delivery, default=None)


class InterceptedConsumer:
    """A consumer whose records pass through interceptors; see `kstreams.log.api.GroupConsumer`.

    Parameters
    ----------
    consumer : Consumer
    interceptors : sequence of ConsumerInterceptor
    """

    def __init__(self, consumer: Any, interceptors: Sequence[Any]) -> None:
        self._consumer = consumer
        self._interceptors = interceptors

    def __getattr__(self, name: str) -> Any:
        return getattr(self._consumer, name)

    def poll(self, timeout: float = 0.0, max_records: int = 10_000) -> list[Batch]:
        """Return rows after the interceptors have changed them."""
        batches: list[Batch] = self._consumer.poll(timeout, max_records)
        if batches:
            for interceptor in self._interceptors:
                batches = _call(interceptor.on_consume, batches, default=batches)
        return batches

    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None) -> None:
        """Commit, then call the interceptors."""
        committed = self._positions() if offsets is None else offsets
        self._consumer.commit(committed)
        self._notify_commit(committed)

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
        on_commit: OnCommit | None = None,
    ) -> None:
        """Commit. The interceptors are called after a success."""

        def report(committed: Mapping[TopicPartition, OffsetAndMetadata], error: LogError | None) -> None:
            if error is None:
                self._notify_commit(committed)
            if on_commit is not None:
                on_commit(committed, error)
            elif error is not None:
                _logger.warning("A commit failed: %s", error)

        self._consumer.commit_async(self._positions() if offsets is None else offsets, report)

    def close(self) -> None:
        """Close the consumer, then the interceptors."""
        try:
            self._consumer.close()
        finally:
            _close(self._interceptors)

    def __enter__(self) -> InterceptedConsumer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _positions(self) -> dict[TopicPartition, OffsetAndMetadata]:
        return {source: OffsetAndMetadata(self._consumer.position(source)) for source in self._consumer.assignment()}

    def _notify_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        for interceptor in self._interceptors if offsets else ():
            _call(interceptor.on_commit, offsets, default=None)


def _split_settings(config: Mapping[str, Any] | None) -> tuple[dict[str, object], list[object]]:
    settings = dict(config or {})
    references = settings.pop(INTERCEPTORS, None) or ()
    if isinstance(references, str):
        references = [path.strip() for path in references.split(",")]
    elif not isinstance(references, list | tuple):
        references = [references]
    return settings, [_interceptor(reference) for reference in references]


def _interceptor(reference: Any) -> Any:
    """Return the interceptor for an object, a class or an import path."""
    target = _import(reference) if isinstance(reference, str) else reference
    return target() if isinstance(target, type) else target


def _import(path: str) -> Any:
    module, _, name = path.rpartition(":" if ":" in path else ".")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"The interceptor {path!r} cannot be imported ({error}): give `package.module:Name`."
        ) from None


def _call(method: Callable[[Any], T], argument: object, *, default: T) -> T:
    """Call a method of an interceptor. If it raises an error, log the error and return the default."""
    try:
        return method(argument)
    except Exception:
        _logger.exception("An interceptor has failed in %s: it is skipped.", method.__qualname__)
        return default


def _close(interceptors: Sequence[Any]) -> None:
    for interceptor in interceptors:
        try:
            interceptor.close()
        except Exception:
            _logger.exception("The interceptor %r could not be closed.", interceptor)
