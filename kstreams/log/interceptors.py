"""Interceptors: what a user has done to records as they are sent and read, and hears of deliveries and commits.

They lie around the clients of either home. An error that one of them raises is logged, and the record goes its way.
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
    """A record on its way; `timestamp` and `partition` are None where the producer chooses them."""

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    timestamp: Time | None
    headers: Headers


class ProducerInterceptor:
    """What a producer calls; the methods here do nothing. Kafka: `ProducerInterceptor`.

    Examples
    --------
    >>> class Tracing(ProducerInterceptor):
    ...     def on_send(self, record):
    ...         return record._replace(headers=(*record.headers, ("trace", b"1")))
    """

    def on_send(self, record: SentRecord) -> SentRecord:
        """The record to send instead: key, value, timestamp and headers may be others. Not called again on a retry."""
        return record

    def on_acknowledgement(self, delivery: Delivery) -> None:
        """A record or a batch was written, or could not be; in the order of sending."""

    def close(self) -> None:
        """The producer is closed."""


class ConsumerInterceptor:
    """What a consumer calls; the methods here do nothing. Kafka: `ConsumerInterceptor`.

    Examples
    --------
    >>> class Counting(ConsumerInterceptor):
    ...     count = 0
    ...     def on_consume(self, batches):
    ...         self.count += sum(map(len, batches))
    ...         return batches
    """

    def on_consume(self, batches: list[Batch]) -> list[Batch]:
        """What `poll` is to return instead. Positions move by what was read."""
        return batches

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """These offsets were committed by the consumer; those of a transaction are its producer's."""

    def close(self) -> None:
        """The consumer is closed."""


def producer_with(config: Mapping[str, Any] | None, make: Callable[[dict[str, Any]], Producer]) -> Producer:
    """A producer with the interceptors that its settings name.

    Parameters
    ----------
    config : mapping or None
        `interceptors`: objects, classes, or import paths such as `package.module:Tracing`; a text separates them by
        commas. All other settings go to `make`.
    make : callable
    """
    settings, interceptors = _taken(config)
    if not interceptors:
        return make(settings)
    only_errors = str(settings.pop(_ONLY_ERRORS, False)).lower() == "true"
    return cast("Producer", InterceptedProducer(make(settings), interceptors, only_errors=only_errors))


def consumer_with(config: Mapping[str, Any] | None, make: Callable[[dict[str, Any]], Consumer]) -> Consumer:
    """A consumer with the interceptors that its settings name, as for producers."""
    settings, interceptors = _taken(config)
    consumer = make(settings)
    return cast("Consumer", InterceptedConsumer(consumer, interceptors)) if interceptors else consumer


class InterceptedProducer:
    """A producer whose records pass through interceptors; see `kstreams.log.api.Producer`.

    Parameters
    ----------
    producer : Producer
        It reports every delivery.
    interceptors : sequence of ProducerInterceptor
    only_errors : bool
        Whether callers want to be told of failures alone.
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
        """Buffer one record, as the interceptors leave it."""
        sent = self._on_send(SentRecord(topic, partition, key, value, timestamp, tuple(headers)))
        report = self._report(on_delivery)
        try:
            self._producer.send(
                topic,
                sent.key,
                sent.value,
                timestamp=sent.timestamp,
                headers=sent.headers,
                partition=partition,
                on_delivery=report,
            )
        except LogError as error:
            at = TopicPartition(topic, -1 if partition is None else partition)
            self._acknowledged(Delivery(at, -1, 1, error))
            raise

    def send_batch(self, batch: Batch, on_delivery: OnDelivery | None = None) -> None:
        """Buffer a batch, each row as the interceptors leave it."""
        source = batch.source
        asked = (SentRecord(*source, row.key, row.value, row.timestamp, row.headers) for row in batch.rows())
        sent = list(map(self._on_send, asked))
        rows = [Row(each.key, each.value, checked_time(each.timestamp or 0), each.headers) for each in sent]
        self._producer.send_batch(Batch.of_rows(source, rows) if rows else batch, self._report(on_delivery))

    def close(self) -> None:
        """Flush and release, and close the interceptors."""
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
            changed = _guarded(interceptor.on_send, record, record)
            if (changed.topic, changed.partition) == (record.topic, record.partition):
                record = changed
            else:
                _logger.error("%r sends a record to another topic or partition: it stays as it was.", interceptor)
        return record

    def _report(self, on_delivery: OnDelivery | None) -> OnDelivery:
        def report(delivery: Delivery) -> None:
            self._acknowledged(delivery)
            if on_delivery is not None and (delivery.error is not None or not self._only_errors):
                on_delivery(delivery)

        return report

    def _acknowledged(self, delivery: Delivery) -> None:
        for interceptor in self._interceptors:
            _guarded(interceptor.on_acknowledgement, delivery, None)


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
        """What there is, as the interceptors leave it."""
        batches: list[Batch] = self._consumer.poll(timeout, max_records)
        if batches:
            for interceptor in self._interceptors:
                batches = _guarded(interceptor.on_consume, batches, batches)
        return batches

    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None) -> None:
        """Commit, and tell the interceptors what."""
        committed = self._positions() if offsets is None else offsets
        self._consumer.commit(committed)
        self._committed(committed)

    def commit_async(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
        on_commit: OnCommit | None = None,
    ) -> None:
        """Commit without an error here, and tell the interceptors what was committed."""

        def report(committed: Mapping[TopicPartition, OffsetAndMetadata], error: LogError | None) -> None:
            if error is None:
                self._committed(committed)
            if on_commit is not None:
                on_commit(committed, error)
            elif error is not None:
                _logger.warning("A commit failed: %s", error)

        self._consumer.commit_async(self._positions() if offsets is None else offsets, report)

    def close(self) -> None:
        """Release, and close the interceptors."""
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

    def _committed(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        for interceptor in self._interceptors if offsets else ():
            _guarded(interceptor.on_commit, offsets, None)


def _taken(config: Mapping[str, Any] | None) -> tuple[dict[str, Any], list[Any]]:
    settings = dict(config or {})
    given = settings.pop(INTERCEPTORS, None) or ()
    if isinstance(given, str):
        given = [path.strip() for path in given.split(",")]
    elif not isinstance(given, list | tuple):
        given = [given]
    return settings, [_interceptor(each) for each in given]


def _interceptor(given: Any) -> Any:
    found = _imported(given) if isinstance(given, str) else given
    return found() if isinstance(found, type) else found


def _imported(path: str) -> Any:
    module, _, name = path.rpartition(":" if ":" in path else ".")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(
            f"The interceptor {path!r} cannot be imported ({error}): give `package.module:Name`."
        ) from None


def _guarded(call: Callable[[Any], T], given: Any, otherwise: T) -> T:
    try:
        return call(given)
    except Exception:
        _logger.exception("An interceptor has failed in %s: it is passed over.", call.__qualname__)
        return otherwise


def _close(interceptors: Sequence[Any]) -> None:
    for interceptor in interceptors:
        try:
            interceptor.close()
        except Exception:
            _logger.exception("The interceptor %r could not be closed.", interceptor)
