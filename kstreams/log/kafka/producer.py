"""`KafkaProducer`: an idempotent producer for a cluster, which is transactional with a `transactional.id`."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from itertools import repeat
from operator import index, length_hint
from time import monotonic
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import Producer as Client

from kstreams.errors import BufferFullError, ConfigError, FencedError, LogError, UncertainCommitError
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.kernel.durations import Time
from kstreams.kernel.murmur2 import partition_of
from kstreams.log import record_checks
from kstreams.log.api import Delivery, GroupMetadata, OffsetAndMetadata, OnDelivery, Throttling
from kstreams.log.kafka.connection import Connection, client_partitions
from kstreams.log.kafka.failures import error_of, is_fatal, log_error
from kstreams.log.kafka.quotas import ThrottleTimes
from kstreams.log.kafka.transactions import Transactions
from kstreams.log.settings import QUOTA_DELAYS
from kstreams.os.forks import of_one_process
from kstreams.record import Headers

_REQUEST_TIMEOUT_S = 1.0  # for a number of partitions. Without a response, the last known number is used.
_PURGED = (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)
_PRODUCER_DEFAULTS = {
    "compression.type": "lz4",
    "linger.ms": 20,
    "batch.size": 1_000_000,
    "message.max.bytes": 100_000_000,  # high, because the setting of the topic is the limit
    "queue.buffering.max.messages": 1_000_000,
    "enable.idempotence": True,
}
_MAX_LINGER_MS = 60_000
"""The value for `linger.ms=-1` (wait until the batch is full, or `flush`), which Kafka's client does not support."""
_POLL_S = 0.1
_Report: TypeAlias = "Callable[[KafkaError | None, Message], None] | None"
"""The callback for the delivery of a row."""
RECORD_FORMAT = record_checks.RecordFormat(
    record_bytes=91, header_bytes=10, takes_time_zero=False, takes_zero_in_names=False
)
"""The overhead of a batch with a single record: 61 bytes for the batch, 30 for the record."""


class KafkaProducer:
    """See `kstreams.log.api.Producer`.

    Parameters
    ----------
    connection : Connection
    config : mapping or None
        Settings of Kafka's producer, or of librdkafka. With `delivery.report.only.error`, callbacks are called for
        failures only, and sending takes half the time.
    """

    def __init__(self, connection: Connection, config: Mapping[str, Any] | None = None) -> None:
        settings = {**_PRODUCER_DEFAULTS, **(config or {})}
        if settings.pop("transaction.coordinator", None) is not None:
            raise ConfigError("Kafka has no `transaction.coordinator`: set a `transactional.id`, and commit with it.")
        self._block_s = int(settings.pop("max.block.ms", 60_000)) / 1000
        max_age_s = int(settings.pop("metadata.max.age.ms", 300_000)) / 1000
        if (memory := settings.pop("buffer.memory", None)) is not None:
            settings["queue.buffering.max.kbytes"] = max(1, int(memory) // 1024)
        if int(settings["linger.ms"]) < 0:
            settings["linger.ms"] = _MAX_LINGER_MS
        settings.pop(QUOTA_DELAYS, None)  # brokers delay their responses
        only_failures = str(settings.pop("delivery.report.only.error", False)).lower() == "true"
        self._connection = connection
        self._deliveries = Deliveries()
        self._throttle_times = ThrottleTimes()
        callbacks = {
            "on_delivery": self._deliveries.report,
            "delivery.report.only.error": only_failures,
            "throttle_cb": self._throttle_times.record,
        }
        self._batch_size = int(settings["batch.size"])
        self._client = connection.client("producer", lambda checked: Client({**checked, **callbacks}), settings)
        self._partitions = PartitionCounts(self._client, connection, max_age_s)
        of_one_process(self, "This producer", LogError)
        self._unflushed_bytes: Counter[str] = Counter()  # by topic with a small `max.message.bytes`
        self._records_without_key = 0
        self._closed = False
        self._is_abandoned = False
        name = settings.get("transactional.id")
        self._transactions = None if name is None else Transactions(self._client, name, self._block_s, connection)

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
        """Buffer one record. Without `partition`, murmur2 of the key chooses it.

        Raises
        ------
        UnknownTopicError, BufferFullError
        LogError
            If the record cannot be written: it is too large, has no key in a compacted topic, has the time 0 or a time
            of more than 64 bits, or has a header whose name is no text or contains the character 0. Also if a
            transactional producer has no open transaction.
        """
        facts = self._ready(topic)
        partitions = self._partitions.of(topic, partition)
        if (type(key), type(value)) not in record_checks.BYTES_OR_NONE:
            raise record_checks.not_bytes(key, value)
        sent_time = self._connection.clock.wall_ms() if timestamp is None else timestamp
        time = record_checks.checked_time(sent_time, takes_zero=False)
        checked = record_checks.checked_headers(headers, takes_zero=False)
        number = self._partition(key, partitions) if partition is None else index(partition)
        size = RECORD_FORMAT.record_size(key, value, checked)
        record_checks.check_record(repr(topic), key, size, facts)
        self._make_room(topic, size, facts)
        report = None
        if on_delivery is not None:
            pending = self._deliveries.expect(TopicPartition(topic, number), 1, on_delivery)
            report = partial(self._deliveries.report, pending=pending)
        self._produce(topic, value, key, number, report, time=time, headers=checked or None)

    def send_batch(self, batch: Batch, on_delivery: OnDelivery | None = None) -> None:
        """Buffer a batch for the partition that it names. If a row cannot be written, `flush` raises the error."""
        if not len(batch):
            return
        topic, partition = batch.source
        facts = self._ready(topic)
        self._partitions.of(topic, partition)
        pending = None if on_delivery is None else self._deliveries.expect(batch.source, len(batch), on_delivery)
        try:
            columns = _columns(batch)
            record_checks.check_batch(batch, facts, RECORD_FORMAT)
        except LogError as error:
            self._deliveries.add_error(error)
            if pending is not None:
                pending.fail(error)
            return
        report = None if pending is None else partial(self._deliveries.report, pending=pending)
        if facts.max_bytes < self._batch_size:
            for value, key, time, headers in zip(*columns, strict=True):
                self._make_room(topic, RECORD_FORMAT.record_size(key, value, headers or ()), facts)
                self._produce(topic, value, key, partition, report, time=time, headers=headers)
        else:
            self._produce_all(batch.source, columns, report)
        self._client.poll(0)

    def write_for(self, member: GroupMetadata) -> None:
        """Do nothing: brokers do not check the group of a producer without a `transactional.id`."""

    def refused(self, batch: Batch) -> dict[int, LogError]:
        """Return the rows of a batch that its topic refuses, with the reason."""
        return record_checks.refused_rows(batch, self._connection.facts(batch.source.topic), RECORD_FORMAT)

    def throttling(self) -> Throttling:
        """Return how the quotas of the brokers have delayed this producer."""
        return self._throttle_times.throttling()

    def abandon(self) -> None:
        """Drop the buffered records. A transactional producer does nothing: `abort_transaction` drops its records."""
        if self._transactions is None:
            self._is_abandoned = True
            self._client.purge(in_queue=True, in_flight=False)

    def flush(self, timeout: float | None = None) -> None:
        """Wait until all records are written. Raises the first error since the last flush.

        In a transaction, the longest wait is `max.block.ms`.
        """
        transactions = self._transactions
        is_in_transaction = timeout is None and transactions is not None and transactions.is_open
        if not self._is_written_within(self._block_s if is_in_transaction else timeout):
            if is_in_transaction and transactions is not None:
                raise transactions.no_answer("flush", "records were not acknowledged")
            raise LogError(f"Records were not written within {timeout} s.")
        self._unflushed_bytes.clear()
        failure = self._deliveries.take_error()
        try:
            self._deliveries.call_back()
        finally:
            if failure is not None:
                raise failure

    def begin_transaction(self) -> None:
        """Start a transaction. Raises FencedError if a newer producer has the transactional id."""
        self._transactional().begin()
        self._deliveries.error = self._deliveries.transaction_error = None

    def commit_transaction(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
        group: str | GroupMetadata | None = None,
    ) -> None:
        """Write the buffered records, then commit the records and the offsets of a group atomically.

        Raises
        ------
        FencedError
            If a newer producer has the transactional id. The transaction is aborted.
        UncertainCommitError
            If the cluster has not answered in time. This producer cannot be used any more.
        CommitFailedError, RebalanceInProgressError
            If the group refuses the commit of this member. The caller has to abort the transaction.
        LogError
            If a record could not be written. The caller has to abort the transaction.
        """
        if offsets and group is None:
            raise LogError("Offsets cannot be committed without a group: name the group.")
        transactions = self._transactional()
        transactions.require_open()
        if self._deliveries.transaction_error is None:
            self._flush_transaction()
        if self._deliveries.transaction_error is not None:
            raise self._deliveries.transaction_error
        committer = group if isinstance(group, GroupMetadata) else GroupMetadata(group or "")
        transactions.commit(offsets or {}, committer)

    def prepare_transaction(self) -> str:
        """Raise LogError: Kafka has no coordinator that commits the transactions of several producers."""
        raise LogError("Kafka has no coordinator that a transaction could be prepared for: commit the transaction.")

    def abort_transaction(self) -> None:
        """Abort the transaction: its records never become visible."""
        self._transactional().abort()
        self._deliveries.error = self._deliveries.transaction_error = None
        self._deliveries.call_back()

    def close(self) -> None:
        """Flush and release the client. An open transaction is aborted."""
        if self._closed:
            return
        self._closed = True
        transactions = self._transactions
        if transactions is None:
            ignored_errors = (LogError,) if self._is_abandoned else ()  # dropped records raise errors
            with suppress(*ignored_errors):
                self.flush()
        elif transactions.is_open and not transactions.has_failed:
            # A producer that has fenced this one has aborted the transaction. Without an answer, the next producer with
            # this transactional id aborts it, or the broker after `transaction.timeout.ms`.
            with suppress(FencedError, UncertainCommitError):
                self.abort_transaction()

    def __enter__(self) -> KafkaProducer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _ready(self, topic: str) -> record_checks.TopicFacts:
        if self._closed:
            raise LogError("This producer is closed: open another one.")
        if self._transactions is not None:
            self._transactions.require_open()
        return self._connection.facts(topic)

    def _transactional(self) -> Transactions:
        if self._transactions is None:
            raise LogError("Transactions need a producer with a `transactional.id`: set it.")
        return self._transactions

    def _is_written_within(self, timeout: float | None) -> bool:
        """Wait until the client has written everything. Return False after `timeout` seconds."""
        deadline = None if timeout is None else monotonic() + timeout
        try:
            while self._client.flush(_POLL_S) > 0:
                if deadline is not None and monotonic() > deadline:
                    return False
        except (KafkaException, SystemError) as error:
            raise error_of("Writing failed", error) from None
        return True

    def _flush_transaction(self) -> None:
        """Write the buffered records. The commit raises the errors of a transaction."""
        try:
            self.flush()
        except LogError:
            if self._deliveries.transaction_error is None:
                raise

    def _partition(self, key: bytes | None, partitions: int) -> int:
        if key is not None:
            return partition_of(key, partitions)
        self._records_without_key += 1
        return self._records_without_key % partitions

    def _make_room(self, topic: str, size: int, facts: record_checks.TopicFacts) -> None:
        """Flush before the buffered records of a topic exceed its `max.message.bytes`.

        The client fills batches up to `batch.size`, whatever the topic allows.
        """
        if facts.max_bytes >= self._batch_size:
            return
        if self._unflushed_bytes[topic] + size > facts.max_bytes:
            while self._client.flush(_POLL_S) > 0:
                pass
            self._unflushed_bytes.clear()
        self._unflushed_bytes[topic] += size

    def _produce_all(self, source: TopicPartition, columns: tuple[list[Any], ...], report: _Report) -> None:
        """Send rows by `map`, whose loop in C takes half the time per row."""
        values, keys, times, headers = columns
        produce = self._client.produce
        unsent_times = iter(times)
        topics = repeat(source.topic)
        partitions = repeat(source.partition)
        calls = map(produce, topics, values, keys, partitions, repeat(report), repeat(None), unsent_times, headers)
        while True:
            try:
                deque(calls, maxlen=0)
                return
            except (BufferError, KafkaException):  # `_produce` sends the row again, and waits or raises the error
                row = len(times) - length_hint(unsent_times) - 1
                self._produce(
                    source.topic,
                    values[row],
                    keys[row],
                    source.partition,
                    report,
                    time=times[row],
                    headers=headers[row],
                )

    def _produce(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int,
        report: _Report,
        *,
        time: int,
        headers: object,
    ) -> None:
        deadline = 0.0
        while True:
            try:
                # Keyword arguments would make the call 10 % slower.
                self._client.produce(topic, value, key, partition, report, None, time, headers)
                return
            except BufferError:
                deadline = deadline or monotonic() + self._block_s
                if monotonic() >= deadline:
                    raise BufferFullError(
                        f"The producer's buffer stayed full for {self._block_s:g} s: send again later or raise "
                        "`buffer.memory`."
                    ) from None
                self._client.poll(_POLL_S)
            except KafkaException as error:
                if self._transactions is not None and is_fatal(error):
                    raise self._transactions.fatal_error() from None
                raise error_of(f"A record for {topic}-{partition} cannot be sent", error) from None


class _Count(NamedTuple):
    partitions: int
    read_s: float
    """The time of the monotonic clock when the number was read."""


class PartitionCounts:
    """The numbers of partitions of topics, which may grow, from the metadata of a producer's client.

    Parameters
    ----------
    client : confluent_kafka.Producer
    connection : Connection
    max_age_s : float
        The age after which a number is read again.
    """

    def __init__(self, client: Client, connection: Connection, max_age_s: float) -> None:
        self._client = client
        self._connection = connection
        self._max_age_s = max_age_s
        self._counts: dict[str, _Count] = {}

    def of(self, topic: str, partition: int | None = None) -> int:
        """Return the number of partitions of a topic. Raises UnknownTopicError if `partition` is not one of them."""
        count = self._counts.get(topic)
        if count is None:
            count = self._counts[topic] = _Count(self._connection.facts(topic).partitions, monotonic())
        elif monotonic() - count.read_s >= self._max_age_s:
            count = self._read(topic, count)
        if partition is not None and not 0 <= partition < count.partitions:
            self._connection.require_partition(topic, partition)
            count = self._read(topic, count, partition + 1)
        return count.partitions

    def _read(self, topic: str, previous: _Count, at_least: int = 0) -> _Count:
        """Read the number by the client, which updates the metadata of the client too."""
        partitions = self._connection.await_partitions(
            topic, at_least, lambda: client_partitions(self._client, topic, _REQUEST_TIMEOUT_S)
        )
        self._counts[topic] = _Count(max(partitions, previous.partitions), monotonic())
        return self._counts[topic]


class PendingDelivery:
    """A sent record or batch with a callback."""

    def __init__(self, source: TopicPartition, count: int, on_delivery: OnDelivery) -> None:
        self._source = source
        self._count = count
        self.on_delivery = on_delivery
        self._unconfirmed = count
        self._first_offset = -1
        self._error: LogError | None = None

    @property
    def is_complete(self) -> bool:
        """True if all its records were delivered or have failed."""
        return self._unconfirmed == 0

    def delivery(self) -> Delivery:
        """Return the delivery for the callback."""
        first = self._first_offset if self._error is None else -1
        return Delivery(self._source, first, self._count, self._error)

    def delivered(self, offset: int, error: LogError | None) -> None:
        """Record the delivery or the failure of one of its records."""
        self._unconfirmed -= 1
        self._first_offset = offset if self._first_offset < 0 else min(self._first_offset, offset)
        self._error = self._error or error

    def fail(self, error: LogError) -> None:
        """Record that it cannot be sent."""
        self._unconfirmed = 0
        self._error = error


class Deliveries:
    """The deliveries of one producer: callbacks in the order of sending, and the first failure."""

    def __init__(self) -> None:
        self._pending: deque[PendingDelivery] = deque()
        self.error: LogError | None = None
        """The first failure since `take_error`."""
        self.transaction_error: LogError | None = None
        """The first failure of the transaction."""

    def expect(self, source: TopicPartition, count: int, on_delivery: OnDelivery) -> PendingDelivery:
        """Add a record or a batch with a callback, in the order of sending."""
        pending = PendingDelivery(source, count, on_delivery)
        self._pending.append(pending)
        return pending

    def add_error(self, error: LogError) -> None:
        """Record that a record could not be written."""
        self.error = self.error or error
        self.transaction_error = self.transaction_error or error

    def report(self, error: KafkaError | None, message: Message, pending: PendingDelivery | None = None) -> None:
        """Record the client's delivery report of one record."""
        failure = None
        if error is not None:
            failure = log_error(f"A record for {message.topic()}-{message.partition()} was not written", error)
            if error.code() not in _PURGED:
                self.add_error(failure)
        if pending is not None:
            pending.delivered(message.offset(), failure)

    def take_error(self) -> LogError | None:
        """Return the first failure since the last call."""
        error, self.error = self.error, None
        return error

    def call_back(self) -> None:
        """Call the callbacks that are due. If one raises an error, the next call continues after it."""
        while self._pending and self._pending[0].is_complete:
            pending = self._pending.popleft()
            pending.on_delivery(pending.delivery())


def _columns(batch: Batch) -> tuple[list[Any], ...]:
    """Return the columns of a batch as objects for the client: values, keys, times and headers."""
    count = len(batch)
    columns = (batch.keys, batch.values, batch.timestamps)
    if any(len(column) != count for column in columns) or batch.timestamps.null_count:
        raise LogError(f"A batch for {batch.source} cannot be written: columns differ in length, or times are missing.")
    try:
        keys, values = (column.cast(pa.binary()).to_pylist() for column in columns[:2])
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise LogError(f"A batch for {batch.source} cannot be written: {error}") from None
    headers: list[object] = [None] * count if batch.headers is None else list(map(list, batch.header_rows()))
    return values, keys, np.asarray(batch.timestamps).tolist(), headers
