"""`KafkaProducer`: sends records to a cluster; idempotent, and in transactions with a `transactional.id`."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from itertools import repeat
from operator import index, length_hint
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import Producer as Client

from kstreams.errors import BufferFullError, ConfigError, FencedError, LogError, UncertainCommitError
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.kernel.durations import Time
from kstreams.kernel.murmur2 import partition_of
from kstreams.log.api import Delivery, GroupMetadata, OffsetAndMetadata, OnDelivery
from kstreams.log.kafka.connection import Connection, partitions_told
from kstreams.log.kafka.failures import has_failed_for_good, log_error, raised
from kstreams.log.kafka.transactions import Transactions
from kstreams.log.record_checks import (
    BYTES_OR_NONE,
    RecordFormat,
    TopicFacts,
    check_batch,
    check_record,
    checked_headers,
    checked_time,
    not_bytes,
    refused_rows,
)
from kstreams.os.forks import of_one_process
from kstreams.record import Headers

_ASK_S = 1.0  # a producer that knows a number goes on with it when nobody answers
_DROPPED = (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT)
_WRITE = {
    "compression.type": "lz4",
    "linger.ms": 20,
    "batch.size": 1_000_000,
    "message.max.bytes": 100_000_000,  # the topic decides
    "queue.buffering.max.messages": 1_000_000,
    "enable.idempotence": True,
}
_LONGEST_LINGER_MS = 60_000  # for -1, until the batch is full or `flush`: Kafka's client knows no such
_ROWS = 1_000  # of a batch, between two looks at what the client has to tell
_WAIT_S = 0.1
RECORD_FORMAT = RecordFormat(record_bytes=91, header_bytes=10, takes_time_zero=False, takes_zero_in_names=False)
"""Of a batch with a single record: 61 bytes for the batch, 30 for the record."""


class KafkaProducer:
    """See `kstreams.log.api.Producer`.

    Parameters
    ----------
    connection : Connection
    config : mapping or None
        Settings of Kafka's producer, or of librdkafka. With `delivery.report.only.error`, callbacks tell of failures
        alone, and sending costs half as much.
    """

    def __init__(self, connection: Connection, config: Mapping[str, Any] | None = None) -> None:
        given = {**_WRITE, **(config or {})}
        if given.pop("transaction.coordinator", None) is not None:
            raise ConfigError("Kafka has no `transaction.coordinator`: give a `transactional.id`, and commit with it.")
        self._block_s = int(given.pop("max.block.ms", 60_000)) / 1000
        max_age_s = int(given.pop("metadata.max.age.ms", 300_000)) / 1000
        if (memory := given.pop("buffer.memory", None)) is not None:
            given["queue.buffering.max.kbytes"] = max(1, int(memory) // 1024)
        if int(given["linger.ms"]) < 0:
            given["linger.ms"] = _LONGEST_LINGER_MS
        only_failures = str(given.pop("delivery.report.only.error", False)).lower() == "true"
        self._connection = connection
        self._deliveries = Deliveries()
        ours = {"on_delivery": self._deliveries.report, "delivery.report.only.error": only_failures}
        self._batch_size = int(given["batch.size"])
        self._client = connection.client("producer", lambda full: Client({**full, **ours}), given)
        self._partitions = PartitionCounts(self._client, connection, max_age_s)
        of_one_process(self, "This producer", LogError)
        self._unflushed: Counter[str] = Counter()  # bytes, of topics that take less than a batch at once
        self._turn = 0
        self._closed = False
        self._is_abandoned = False
        name = given.get("transactional.id")
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
        """Buffer one record; its partition is murmur2 of the key unless given.

        Raises
        ------
        UnknownTopicError, BufferFullError
        LogError
            When the record can never be written: it is too large, lacks a key that its topic asks for, has the time 0
            or one beyond 64 bits, or a header whose name is no text or holds the character 0. And as for transactions.
        """
        facts = self._ready(topic)
        partitions = self._partitions.of(topic, partition)
        if (type(key), type(value)) not in BYTES_OR_NONE:
            raise not_bytes(key, value)
        time = self._connection.clock.wall_ms() if timestamp is None else checked_time(timestamp, takes_zero=False)
        checked = checked_headers(headers, takes_zero=False)
        number = self._partition(key, partitions) if partition is None else index(partition)
        size = RECORD_FORMAT.record_size(key, value, checked)
        check_record(repr(topic), key, size, facts)
        self._make_room(topic, size, facts)
        report = None
        if on_delivery is not None:
            pending = self._deliveries.expect(TopicPartition(topic, number), 1, on_delivery)
            report = partial(self._deliveries.report, pending=pending)
        self._produce(topic, value, key, number, report, time=time, headers=checked or None)

    def send_batch(self, batch: Batch, on_delivery: OnDelivery | None = None) -> None:
        """Buffer a batch for the partition it names; where a row cannot be written, all of it fails, at `flush`."""
        if not len(batch):
            return
        topic, partition = batch.source
        facts = self._ready(topic)
        self._partitions.of(topic, partition)
        pending = None if on_delivery is None else self._deliveries.expect(batch.source, len(batch), on_delivery)
        try:
            columns = _columns(batch)
            check_batch(batch, facts, RECORD_FORMAT)
        except LogError as error:
            self._deliveries.note(error)
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
        """Nothing: brokers take what a producer without a `transactional.id` sends, whoever is in a group."""

    def refused(self, batch: Batch) -> dict[int, LogError]:
        """The rows of a batch that its topic would never take, and why."""
        return refused_rows(batch, self._connection.facts(batch.source.topic), RECORD_FORMAT)

    def abandon(self) -> None:
        """Drop what was sent and is not on its way yet; a transaction is dropped as a whole, by `abort_transaction`."""
        if self._transactions is None:
            self._is_abandoned = True
            self._client.purge(in_queue=True, in_flight=False)

    def flush(self, timeout: float | None = None) -> None:
        """Wait until all that was sent is written; raises the first error since the last flush.

        In a transaction it takes `max.block.ms` at most, as each of its calls does.
        """
        transactions = self._transactions
        is_call = timeout is None and transactions is not None and transactions.is_open
        if not self._is_written_within(self._block_s if is_call else timeout):
            if is_call and transactions is not None:
                raise transactions.uncertain("flush", "records were not acknowledged")
            raise LogError(f"Records were not written within {timeout} s.")
        self._unflushed.clear()
        failure = self._deliveries.take_error()
        try:
            self._deliveries.call_back()
        finally:
            if failure is not None:
                raise failure

    def begin_transaction(self) -> None:
        """Start a transaction; FencedError if a newer producer has the transactional id."""
        self._transactional().begin()
        self._deliveries.error = self._deliveries.spoilt = None

    def commit_transaction(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
        group: str | GroupMetadata | None = None,
    ) -> None:
        """Write what was sent, then make it and the group's offsets visible as one.

        Raises
        ------
        FencedError
            A newer producer has the transactional id; nothing of the transaction will ever be seen.
        UncertainCommitError
            The cluster gave no answer in time: this producer can do nothing more.
        CommitFailedError, RebalanceInProgressError
            The group does not let this member commit: abort the transaction.
        LogError
            A record could not be written: abort the transaction.
        """
        if offsets and group is None:
            raise LogError("Offsets are committed for a group: name it.")
        transactions = self._transactional()
        transactions.require_open()
        if self._deliveries.spoilt is None:
            self._flush_transaction()
        if self._deliveries.spoilt is not None:
            raise self._deliveries.spoilt
        committer = group if isinstance(group, GroupMetadata) else GroupMetadata(group or "")
        transactions.commit(offsets or {}, committer)

    def prepare_transaction(self) -> str:
        """Kafka has no coordinator that commits for others."""
        raise LogError("A transaction is prepared for a coordinator, which Kafka does not have: commit it.")

    def abort_transaction(self) -> None:
        """Drop what was sent since `begin_transaction`."""
        self._transactional().abort()
        self._deliveries.error = self._deliveries.spoilt = None
        self._deliveries.call_back()

    def close(self) -> None:
        """Flush and release; an open transaction is aborted."""
        if self._closed:
            return
        self._closed = True
        transactions = self._transactions
        if transactions is None:
            with suppress(*(LogError,) if self._is_abandoned else ()):  # what was dropped has failed
                self.flush()
        elif transactions.is_open and not transactions.is_lost:
            # Who fenced it has aborted its transaction; without an answer the next producer does, or the broker.
            with suppress(FencedError, UncertainCommitError):
                self.abort_transaction()

    def __enter__(self) -> KafkaProducer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _ready(self, topic: str) -> TopicFacts:
        if self._closed:
            raise LogError("This producer is closed: open another.")
        if self._transactions is not None:
            self._transactions.require_open()
        return self._connection.facts(topic)

    def _transactional(self) -> Transactions:
        if self._transactions is None:
            raise LogError("Transactions need a producer with a `transactional.id`: set it.")
        return self._transactions

    def _is_written_within(self, timeout: float | None) -> bool:
        """Wait until the client has nothing left to write, or for so long."""
        until = None if timeout is None else monotonic() + timeout
        try:
            while self._client.flush(_WAIT_S) > 0:
                if until is not None and monotonic() > until:
                    return False
        except (KafkaException, SystemError) as error:
            raise raised("Writing failed", error) from None
        return True

    def _flush_transaction(self) -> None:
        """Write what was sent; of a producer that was fenced meanwhile the commit tells better."""
        try:
            self.flush()
        except LogError:
            if self._deliveries.spoilt is None:
                raise

    def _partition(self, key: bytes | None, partitions: int) -> int:
        if key is not None:
            return partition_of(key, partitions)
        self._turn += 1
        return self._turn % partitions

    def _make_room(self, topic: str, size: int, facts: TopicFacts) -> None:
        """Let no more wait for a topic than it takes at once: the client makes batches as large as for any other."""
        if facts.max_bytes >= self._batch_size:
            return
        if self._unflushed[topic] + size > facts.max_bytes:
            while self._client.flush(_WAIT_S) > 0:
                pass
            self._unflushed.clear()
        self._unflushed[topic] += size

    def _produce_all(self, source: TopicPartition, columns: tuple[list[Any], ...], report: Any) -> None:
        """Hand rows to the client without a line of Python for each: that halves what a row costs."""
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
            except (BufferError, KafkaException):  # the row is sent again below, with waiting and errors
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
        self, topic: str, value: Any, key: Any, partition: int, report: Any, *, time: int, headers: Any
    ) -> None:
        until = 0.0
        while True:
            try:
                # By position: keywords cost a tenth.
                self._client.produce(topic, value, key, partition, report, None, time, headers)
                return
            except BufferError:
                until = until or monotonic() + self._block_s
                if monotonic() >= until:
                    raise BufferFullError(
                        f"The producer's buffer stayed full for {self._block_s:g} s: send again later or raise "
                        "`buffer.memory`."
                    ) from None
                self._client.poll(_WAIT_S)
            except KafkaException as error:
                if self._transactions is not None and has_failed_for_good(error):
                    raise self._transactions.failed_for_good() from None
                raise raised(f"A record for {topic}-{partition} cannot be sent", error) from None


class _Count(NamedTuple):
    partitions: int
    since_s: float  # by the monotonic clock


class PartitionCounts:
    """How many partitions topics have.

    Parameters
    ----------
    client : confluent_kafka.Producer
    connection : Connection
    max_age_s : float
        After how long the cluster is asked again.
    """

    def __init__(self, client: Any, connection: Connection, max_age_s: float) -> None:
        self._client = client
        self._connection = connection
        self._max_age_s = max_age_s
        self._known: dict[str, _Count] = {}

    def of(self, topic: str, partition: int | None = None) -> int:
        """How many a topic has; UnknownTopicError when the wanted one is not among them."""
        known = self._known.get(topic)
        if known is None:
            known = self._known[topic] = _Count(self._connection.facts(topic).partitions, monotonic())
        elif monotonic() - known.since_s >= self._max_age_s:
            known = self._ask(topic, known)
        if partition is not None and not 0 <= partition < known.partitions:
            self._connection.require_partition(topic, partition)
            known = self._ask(topic, known, partition + 1)
        return known.partitions

    def _ask(self, topic: str, known: _Count, at_least: int = 0) -> _Count:
        """Ask by the client, which then knows it too."""
        partitions = self._connection.learnt_partitions(topic, at_least, lambda: self._told(topic))
        self._known[topic] = _Count(max(partitions, known.partitions), monotonic())
        return self._known[topic]

    def _told(self, topic: str) -> int:
        return partitions_told(self._client, topic, _ASK_S)


class PendingDelivery:
    """A record or a batch whose sender wants to be told."""

    def __init__(self, source: TopicPartition, count: int, on_delivery: OnDelivery) -> None:
        self._source = source
        self._count = count
        self.on_delivery = on_delivery
        self._missing = count
        self._first = -1
        self._error: LogError | None = None

    @property
    def is_known(self) -> bool:
        """Whether all its records were delivered or have failed."""
        return self._missing == 0

    def delivery(self) -> Delivery:
        """What became of it."""
        first = self._first if self._error is None else -1
        return Delivery(self._source, first, self._count, self._error)

    def delivered(self, offset: int, error: LogError | None) -> None:
        """One of its records was delivered or has failed."""
        self._missing -= 1
        self._first = offset if self._first < 0 else min(self._first, offset)
        self._error = self._error or error

    def fail(self, error: LogError) -> None:
        """It was never sent."""
        self._missing = 0
        self._error = error


class Deliveries:
    """What became of what one producer has sent."""

    def __init__(self) -> None:
        self._waiting: deque[PendingDelivery] = deque()
        self.error: LogError | None = None
        """The first failure since it was taken last."""
        self.spoilt: LogError | None = None
        """The first failure of the transaction."""

    def expect(self, source: TopicPartition, count: int, on_delivery: OnDelivery) -> PendingDelivery:
        """Something was sent whose sender wants to be told."""
        pending = PendingDelivery(source, count, on_delivery)
        self._waiting.append(pending)
        return pending

    def note(self, error: LogError) -> None:
        """Something could not be written."""
        self.error = self.error or error
        self.spoilt = self.spoilt or error

    def report(self, error: Any, message: Any, pending: PendingDelivery | None = None) -> None:
        """The client's report of one record."""
        failure = None
        if error is not None:
            failure = log_error(f"A record for {message.topic()}-{message.partition()} was not written", error)
            if error.code() not in _DROPPED:
                self.note(failure)
        if pending is not None:
            pending.delivered(message.offset(), failure)

    def take_error(self) -> LogError | None:
        """The first failure since the last call."""
        error, self.error = self.error, None
        return error

    def call_back(self) -> None:
        """Tell the senders whose turn it is; what one of them raises keeps none from being told by the next call."""
        while self._waiting and self._waiting[0].is_known:
            pending = self._waiting.popleft()
            pending.on_delivery(pending.delivery())


def _columns(batch: Batch) -> tuple[list[Any], ...]:
    """The rows of a batch as the client takes them: values, keys, times and headers."""
    count = len(batch)
    columns = (batch.keys, batch.values, batch.timestamps)
    if any(len(column) != count for column in columns) or batch.timestamps.null_count:
        raise LogError(f"A batch for {batch.source} cannot be written: columns differ in length, or times are missing.")
    try:
        keys, values = (column.cast(pa.binary()).to_pylist() for column in columns[:2])
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise LogError(f"A batch for {batch.source} cannot be written: {error}") from None
    headers: Any = [None] * count if batch.headers is None else list(map(list, batch.header_rows()))
    return values, keys, np.asarray(batch.timestamps).tolist(), headers
