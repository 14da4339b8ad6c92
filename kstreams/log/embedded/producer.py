"""`EmbeddedProducer` writes records in frames and transactions; `EmbeddedCoordinator` commits transactions as one.

The producer buffers records by topic in a `SendBuffer`, which divides them into batches by partition for the `Writer`.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from operator import index
from typing import Any

import numpy as np
import pyarrow as pa

from kstreams.config.key import Key
from kstreams.errors import BufferFullError, FencedError, LogError
from kstreams.kernel.batch import HEADERS_TYPE, Batch, TopicPartition
from kstreams.kernel.durations import Time
from kstreams.log.api import PRODUCER_BYTE_RATE, Delivery, GroupMetadata, OffsetAndMetadata, OnDelivery, Throttling
from kstreams.log.embedded.catalogue import transactions
from kstreams.log.embedded.catalogue.catalogue import Catalogue
from kstreams.log.embedded.quotas import ClientQuota
from kstreams.log.embedded.resources import LogResources
from kstreams.log.embedded.segments.frame import RECORD_FORMAT, byte_size
from kstreams.log.embedded.segments.partition import PartitionBusyError
from kstreams.log.embedded.writer import DeliveryCallback, PendingBatch, Writer
from kstreams.log.partitioning import partitions_of, split_by_partition
from kstreams.log.record_checks import (
    BYTES_OR_NONE,
    TopicFacts,
    check_batch,
    check_record,
    checked_headers,
    checked_time,
    not_bytes,
    refused_rows,
)
from kstreams.log.settings import FLAG, QUOTA_DELAYS, QUOTA_KEYS, TEXT, choice, keys, number, read_settings
from kstreams.os.forks import of_one_process
from kstreams.record import Headers

ROW_OVERHEAD = 16  # bytes of a buffered row in addition to key, value and headers
FRAME_OVERHEAD = RECORD_FORMAT.record_bytes - ROW_OVERHEAD  # bytes of a record in a frame, more than in the buffer
_IDLE_S = 1.0
PRODUCER_SETTINGS = keys(
    *QUOTA_KEYS,
    Key("batch.size", number(0), 1 << 20, "Bytes of all partitions after which buffered records are written."),
    Key("buffer.memory", number(0), 32 << 20, "Bytes of the buffer."),
    Key(
        "compression.type",
        choice("none", "lz4", "zstd"),
        "none",
        "Compression of records, for topics with `compression.type=producer`.",
    ),
    Key("delivery.report.only.error", FLAG, False, "Whether callbacks are called for failures only.", own=True),
    Key("linger.ms", number(-1), 5, "Time that a record waits for others; -1: until `batch.size`, or `flush`."),
    Key("max.block.ms", number(0), 60_000, "Time that `send` waits for room in the buffer."),
    Key("metadata.max.age.ms", number(0), 5_000, "Time after which the settings of a topic are read again."),
    Key("transaction.coordinator", TEXT, None, "Token of the coordinator that commits the transactions.", own=True),
    Key("transaction.timeout.ms", number(1), 60_000, "Time after which an open transaction is aborted."),
    Key("transactional.id", TEXT, None, "Identity of a producer of transactions, which fences an earlier producer."),
)


def write_error(target: object, error: Exception) -> LogError:
    """Return the LogError for records of a topic, partition or producer that could not be written."""
    if isinstance(error, LogError):
        return error
    wrapped = LogError(f"The records for {target} could not be written: {type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped


class BufferedRows:
    """Records of one topic, in the order in which they were sent."""

    __slots__ = (
        "callbacks",
        "facts",
        "headers",
        "keys",
        "max_bytes",
        "max_keyless_bytes",
        "partitions",
        "timestamps",
        "values",
    )

    def __init__(self, facts: TopicFacts) -> None:
        self.facts = facts
        self.max_bytes = facts.max_bytes - FRAME_OVERHEAD
        self.max_keyless_bytes = -1 if facts.needs_key else self.max_bytes
        self.keys: list[bytes | None] = []
        self.values: list[bytes | None] = []
        self.timestamps: list[int] = []
        self.headers: dict[int, Headers] = {}
        self.partitions: dict[int, int] = {}
        self.callbacks: dict[int, DeliveryCallback] = {}

    def headers_column(self) -> pa.Array | None:
        """Return the headers as an Arrow array; None when no row has headers."""
        if not self.headers:
            return None
        rows = [self.headers.get(i, ()) for i in range(len(self.keys))]
        return pa.array([[{"name": name, "value": value} for name, value in row] for row in rows], HEADERS_TYPE)

    def fail(self, topic: str, error: LogError) -> None:
        """Complete the callbacks with an error."""
        for row, callback in self.callbacks.items():
            callback.delivery = Delivery(TopicPartition(topic, self.partitions.get(row, -1)), -1, 1, error)

    def chosen_partitions(self, sticky: int, keys: pa.Array) -> np.typing.NDArray[np.int64]:
        """Return the partition of every row: the one it was sent to, else by its key, else the sticky partition."""
        partitions = partitions_of(keys, self.facts.partitions)
        partitions[partitions < 0] = sticky
        for row, partition in self.partitions.items():
            partitions[row] = partition
        return partitions


class SendBuffer:
    """Rows and batches in the order in which they were sent.

    Parameters
    ----------
    on_failure : callable
        Called with the error for rows that cannot be made into columns, after their callbacks are completed.

    Attributes
    ----------
    bytes : int
        Size of all buffered records.
    rows : dict of str to BufferedRows
        Rows by topic that are not yet divided into partitions.
    batches : dict of TopicPartition to list of PendingBatch
    """

    def __init__(self, on_failure: Callable[[LogError], None]) -> None:
        self._on_failure = on_failure
        self.bytes = 0
        self.rows: dict[str, BufferedRows] = {}
        self.batches: dict[TopicPartition, list[PendingBatch]] = {}
        self._callbacks: deque[DeliveryCallback] = deque()
        self._sticky: dict[str, int] = {}

    def rows_for(self, topic: str, facts: TopicFacts) -> BufferedRows:
        """Return the rows of a topic to append to; they stay in `rows` until they are split."""
        rows = self.rows.get(topic)
        if rows is None:
            rows = self.rows[topic] = BufferedRows(facts)
        return rows

    def callback(self, on_delivery: OnDelivery) -> DeliveryCallback:
        """Add a callback to the queue of callbacks, which are called in the order of sending."""
        callback = DeliveryCallback(on_delivery)
        self._callbacks.append(callback)
        return callback

    def add_details(
        self, rows: BufferedRows, headers: Headers, partition: int | None, on_delivery: OnDelivery | None
    ) -> None:
        """Add headers, partition and callback of the row that is appended to `rows` next."""
        row = len(rows.keys)
        if headers:
            rows.headers[row] = headers
        if partition is not None:
            rows.partitions[row] = index(partition)
        if on_delivery is not None:
            rows.callbacks[row] = self.callback(on_delivery)

    def add_batch(self, batch: Batch, size: int, on_delivery: OnDelivery | None) -> None:
        """Add a batch, after the rows of its topic."""
        self.split(batch.source.topic)
        callbacks = [] if on_delivery is None else [(0, self.callback(on_delivery))]
        self.batches.setdefault(batch.source, []).append(PendingBatch(batch, size, callbacks, sent_as_batch=True))
        self.bytes += size

    def refuse_batch(self, batch: Batch, error: LogError, on_delivery: OnDelivery | None) -> None:
        """Let the callback of a batch that is not taken have the error, in the order of sending."""
        if on_delivery is not None:
            self.callback(on_delivery).delivery = Delivery(batch.source, -1, len(batch), error)

    def split_all(self) -> None:
        """Divide all rows into one batch per partition."""
        for topic in list(self.rows):
            self.split(topic)

    def split(self, topic: str) -> None:
        """Divide the rows of a topic into one batch per partition."""
        rows = self.rows.pop(topic, None)
        if rows is None or not rows.keys:
            return
        try:
            batches = list(self._partition_batches(topic, rows))
        except Exception as error:
            failure = write_error(repr(topic), error)
            rows.fail(topic, failure)
            self._on_failure(failure)
            return
        for pending in batches:
            self.batches.setdefault(pending.batch.source, []).append(pending)

    def _partition_batches(self, topic: str, rows: BufferedRows) -> Iterator[PendingBatch]:
        keys = pa.array(rows.keys, pa.binary())
        values = pa.array(rows.values, pa.binary())
        sticky = self._sticky[topic] = (self._sticky.get(topic, -1) + 1) % rows.facts.partitions
        partitions = rows.chosen_partitions(sticky, keys)
        timestamps = pa.array(rows.timestamps, pa.int64())
        for batch, places in split_by_partition(topic, partitions, keys, values, timestamps, rows.headers_column()):
            size = batch.keys.nbytes + batch.values.nbytes
            yield PendingBatch(batch, size, _callbacks_at(rows, places), sent_as_batch=False)

    def drop(self, error: LogError) -> None:
        """Drop all records, and complete their callbacks with the error."""
        self.split_all()
        for batches in self.batches.values():
            for pending in batches:
                pending.complete(-1, error)
        self.batches.clear()
        self.bytes = 0

    def completed(self) -> tuple[OnDelivery, Delivery] | None:
        """Remove and return the next callback in the order of sending, with its delivery; None if it is not known."""
        if not self._callbacks or (delivery := self._callbacks[0].delivery) is None:
            return None
        return self._callbacks.popleft().on_delivery, delivery


def _callbacks_at(rows: BufferedRows, places: np.typing.NDArray[np.int64]) -> list[tuple[int, DeliveryCallback]]:
    if not rows.callbacks:
        return []
    return [(i, rows.callbacks[place]) for i, place in enumerate(places.tolist()) if place in rows.callbacks]


class EmbeddedProducer:
    """See `kstreams.log.api.Producer`.

    Parameters
    ----------
    home : LogResources
    config : mapping or None
        `transactional.id` or `transaction.coordinator` (the token of its coordinator), `transaction.timeout.ms`,
        `compression.type` (for topics with `compression.type=producer`),
        `metadata.max.age.ms` (time after which a topic's settings are read again),
        `buffer.memory` (bytes), `max.block.ms`, `batch.size` (bytes of all partitions after which they are written),
        `linger.ms` (time that a record waits for others; -1: until the batch is full, or `flush`),
        `client.id`, whose quota may delay `send` and `begin_transaction`, and `quota.delays`.
    """

    def __init__(self, home: LogResources, config: Mapping[str, Any] | None = None) -> None:
        self._settings = settings = read_settings("producer", PRODUCER_SETTINGS, config)
        self._home = home
        self._catalogue = home.catalogue
        self._clock = home.clock
        self._batch_size = settings["batch.size"]
        self._max_buffer_bytes = settings["buffer.memory"]
        self._is_coordinated = settings["transaction.coordinator"] is not None
        self._producer_id = _producer_id(
            self._catalogue, settings["transactional.id"], settings["transaction.coordinator"]
        )
        self._transaction: int | None = None
        self._writer = Writer(home, settings["compression.type"], settings["metadata.max.age.ms"])
        self._buffer = SendBuffer(self._note_error)
        client_id = settings["client.id"] or ""
        self._quota = ClientQuota(home, client_id, PRODUCER_BYTE_RATE, delays=settings[QUOTA_DELAYS])
        self._write_at = self._write_size()
        self._error: LogError | None = None  # the first since the last flush
        self._transaction_error: LogError | None = None  # the first of the transaction, which then can only be aborted
        self._closed = False
        self._mutex = threading.Lock()
        self._linger = LingerTimer(settings["linger.ms"], self._write_lingering, home.do_housekeeping)
        of_one_process(self, "This producer", LogError)

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
        """Buffer one record; without `partition`, murmur2 of the key chooses it.

        Raises
        ------
        UnknownTopicError, BufferFullError
        LogError
            When the record can never be written (it is too large, has no key though its topic is compacted, has a time
            beyond 64 bits or a header whose name is no text), or when a producer with a `transactional.id` has no
            transaction open.
        """
        if (type(key), type(value)) not in BYTES_OR_NONE:
            raise not_bytes(key, value)
        size = ROW_OVERHEAD + len(key or b"") + len(value or b"")
        if headers:
            headers = checked_headers(headers)
            size += RECORD_FORMAT.headers_size(headers)
        time = self._clock.wall_ms() if timestamp is None else checked_time(timestamp)
        buffer = self._buffer
        with self._mutex:
            rows = buffer.rows.get(topic)
            if rows is None or partition is not None or buffer.bytes + size > self._max_buffer_bytes:
                rows = buffer.rows_for(topic, self._ready(topic, partition, size))
            if size > (rows.max_keyless_bytes if key is None else rows.max_bytes):
                check_record(repr(topic), key, size + FRAME_OVERHEAD, rows.facts)
            if headers or partition is not None or on_delivery is not None:
                buffer.add_details(rows, headers, partition, on_delivery)
            rows.timestamps.append(time)
            rows.keys.append(key)
            rows.values.append(value)
            buffer.bytes += size
        if buffer.bytes >= self._write_at:
            self._write_full()

    def send_batch(self, batch: Batch, on_delivery: OnDelivery | None = None) -> None:
        """Buffer a whole batch for the partition it names; if a row can never be written, `flush` raises the error."""
        if not len(batch):
            return
        size = byte_size(batch)
        with self._mutex:
            facts = self._ready(batch.source.topic, batch.source.partition, size)
            try:
                check_batch(batch, facts, RECORD_FORMAT)
            except LogError as error:
                self._note_error(error)
                self._buffer.refuse_batch(batch, error, on_delivery)
                return
            self._buffer.add_batch(batch, size, on_delivery)
        if self._buffer.bytes >= self._write_at:
            self._write_full()

    def write_for(self, member: GroupMetadata) -> None:
        """Write outside of transactions only while a member is in its group; else `flush` raises FencedError."""
        with self._mutex:
            self._writer.write_for(member)

    def refused(self, batch: Batch) -> dict[int, LogError]:
        """Return the rows of a batch that its topic never takes, with the reason."""
        return refused_rows(batch, self._writer.topic(batch.source.topic).facts, RECORD_FORMAT)

    def throttling(self) -> Throttling:
        """Return how the quota `producer_byte_rate` of the client id has delayed this producer."""
        return self._quota.throttling()

    def abandon(self) -> None:
        """Drop the buffered records."""
        with self._mutex:
            self._buffer.drop(LogError("The producer was abandoned."))
        self._call_back()

    def flush(self, timeout: float | None = None) -> None:
        """Write all buffered records; raises the first error since the last flush."""
        with self._mutex:
            self._write(timeout)
            error, self._error = self._error, None
        try:
            self._call_back()
        finally:
            if error is not None:
                raise error

    def begin_transaction(self) -> None:
        """Start a transaction, after the time that the quota demands; FencedError if a newer producer has the id."""
        identity = self._require_transactional()
        if self._transaction is not None:
            raise LogError("A transaction is open already: commit or abort it before the next one begins.")
        self._quota.wait()
        timeout_ms = self._settings["transaction.timeout.ms"]
        self._error = self._transaction_error = None
        self._transaction = transactions.begin(self._catalogue, identity, self._clock, timeout_ms)
        self._writer.begin(identity, self._transaction)

    def commit_transaction(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
        group: str | GroupMetadata | None = None,
    ) -> None:
        """Write the buffered records, then commit the transaction and the group's offsets as one.

        Raises
        ------
        FencedError
            The transaction was aborted by a newer producer or by its timeout.
        CommitFailedError, RebalanceInProgressError
            The member is not of the group's present generation; the transaction is still open.
        LogError
            A record could not be written: abort the transaction.
        """
        if offsets and group is None:
            raise LogError("Offsets are committed for a group: name it.")
        if self._is_coordinated:
            raise LogError("This producer has a `transaction.coordinator`, which commits: call prepare_transaction.")
        identity = self._require_transactional()
        transaction = self._flushed_transaction()
        name, committer = (group.group, group) if isinstance(group, GroupMetadata) else (group, None)
        transactions.commit(self._catalogue, transaction, identity, offsets or {}, name, committer)
        self._end_transaction()

    def prepare_transaction(self) -> str:
        """Write the buffered records, and leave the commit to the coordinator; return the transaction's name for it.

        Raises
        ------
        LogError
            A record could not be written: abort the transaction.
        """
        if not self._is_coordinated:
            raise LogError("A transaction is prepared for a coordinator: set `transaction.coordinator` to its token.")
        transaction = self._flushed_transaction()
        self._end_transaction()
        return str(transaction)

    def abort_transaction(self) -> None:
        """Abort the transaction: its records never become visible."""
        transaction = self._open_transaction()
        with self._mutex:
            self._buffer.drop(LogError("The transaction was aborted."))
        self._end_transaction()
        transactions.abort(self._catalogue, transaction)
        self._call_back()

    def close(self) -> None:
        """Flush and close; an open transaction is aborted."""
        if self._closed:
            return
        self._closed = True
        self._linger.close()
        self._quota.stop_waiting()
        try:
            with suppress(FencedError):  # another process has taken over: nothing may be written
                self.abort_transaction() if self._transaction is not None else self.flush()
        finally:
            self._writer.close()
            self._quota.close()

    def __enter__(self) -> EmbeddedProducer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _ready(self, name: str, partition: int | None, size: int) -> TopicFacts:
        """Wait for the quota and make room for a record or a batch, and return the facts of its topic."""
        self._await_quota()
        if self._closed:
            raise LogError("This producer is closed: open another.")
        if self._producer_id is not None and self._transaction is None:
            raise LogError("A producer with a `transactional.id` sends in transactions: call begin_transaction first.")
        facts = self._writer.topic(name, None if partition is None else index(partition)).facts
        if self._buffer.bytes + size > self._max_buffer_bytes and self._buffer.bytes:
            self._make_room(size)
        if not self._buffer.bytes:
            self._linger.start()
        return facts

    def _await_quota(self) -> None:
        """Wait until the client id is within its quota, without the mutex: other threads may write and close.

        Records of a transaction do not wait, because they must be written before its timeout.
        """
        if not self._quota.rate or self._transaction is not None:
            return
        self._mutex.release()
        try:
            is_within = self._quota.wait(self._settings["max.block.ms"])
        finally:
            self._mutex.acquire()
        if not is_within:
            raise BufferFullError(
                f"`send` has waited {self._settings['max.block.ms']} ms (`max.block.ms`) for {self._quota}, and must "
                f"wait {self._quota.delay_ms()} ms more: send again later, or raise the quota with `kstreams quotas`."
            )

    def _write_size(self) -> int:
        """Return the bytes after which buffered records are written: at most those of a second of the quota."""
        return min(int(self._batch_size), self._quota.rate or int(self._batch_size))

    def _make_room(self, size: int) -> None:
        seconds = self._settings["max.block.ms"] / 1000
        self._write(seconds)
        if self._buffer.bytes + size > self._max_buffer_bytes and self._buffer.bytes:
            raise BufferFullError(
                f"The producer's buffer of {self._max_buffer_bytes} bytes stayed full for {seconds} s: another "
                "writer holds a partition; send again later or raise `buffer.memory`."
            )

    def _write_full(self) -> None:
        with self._mutex:
            self._write(0)
        self._call_back()

    def _write_lingering(self) -> None:
        with self._mutex:
            try:
                self._write(0)
            except Exception as error:  # an exception would end the linger thread
                self._note_error(write_error("this producer", error))

    def _write(self, timeout: float | None) -> None:
        """Write all buffered records; those of partitions that another writer keeps locked stay in the buffer."""
        buffer = self._buffer
        bytes_before = buffer.bytes
        buffer.split_all()
        for source in list(buffer.batches):
            batches = buffer.batches[source]
            try:
                self._writer.write(source, batches, timeout)
            except PartitionBusyError as busy:
                if timeout != 0:
                    self._error = self._error or busy
                continue
            except Exception as error:  # of any kind: callbacks get it, and the other partitions are written
                failure = write_error(source, error)
                self._note_error(failure)
                for pending in batches:
                    pending.fail(failure)
            del buffer.batches[source]
        buffer.bytes = sum(pending.size for batches in buffer.batches.values() for pending in batches)
        self._quota.count(bytes_before - buffer.bytes)
        self._write_at = buffer.bytes + self._write_size()

    def _call_back(self) -> None:
        # In the caller's thread and without the mutex, because a callback may send. If a callback raises, the next
        # flush calls those after it.
        while (completed := self._next_completed()) is not None:
            on_delivery, delivery = completed
            if delivery.error is not None or not self._settings["delivery.report.only.error"]:
                on_delivery(delivery)

    def _note_error(self, error: LogError) -> None:
        """Keep an error for the next `flush`, and for the end of the transaction."""
        self._error = self._error or error
        self._transaction_error = self._transaction_error or error

    def _next_completed(self) -> tuple[OnDelivery, Delivery] | None:
        with self._mutex:
            return self._buffer.completed()

    def _require_transactional(self) -> transactions.ProducerId:
        if self._producer_id is None:
            raise LogError("Transactions need a producer with a `transactional.id`: set it.")
        return self._producer_id

    def _open_transaction(self) -> int:
        self._require_transactional()
        if self._transaction is None:
            raise LogError("No transaction is open: call begin_transaction first.")
        return self._transaction

    def _flushed_transaction(self) -> int:
        """Write all records of the open transaction, and return its id."""
        transaction = self._open_transaction()
        self.flush()
        if self._transaction_error is not None:
            raise self._transaction_error
        self._writer.sync()
        return transaction

    def _end_transaction(self) -> None:
        self._transaction = self._error = self._transaction_error = None
        self._writer.end()


class EmbeddedCoordinator:
    """See `kstreams.log.api.TransactionCoordinator`.

    Parameters
    ----------
    home : LogResources
    transactional_id : str
        The transactions of its former owner are aborted.
    """

    def __init__(self, home: LogResources, transactional_id: str) -> None:
        self._catalogue = home.catalogue
        self._producer_id = transactions.open_producer(self._catalogue, transactional_id)

    @property
    def token(self) -> str:
        """The identity under which producers write, as their `transaction.coordinator`."""
        return transactions.token_of(self._producer_id)

    def commit(
        self,
        prepared: Collection[str],
        offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None,
        group: str | None = None,
    ) -> None:
        """Commit prepared transactions and the group's offsets as one; abort all other transactions.

        Raises
        ------
        FencedError
            When a newer coordinator has the transactional id, or one of the transactions was aborted by its timeout or
            by its producer. Nothing is committed then.
        """
        if offsets and group is None:
            raise LogError("Offsets are committed for a group: name it.")
        numbers = [int(name) for name in prepared]
        self._producer_id = transactions.commit_prepared(
            self._catalogue, numbers, self._producer_id, offsets or {}, group
        )

    def close(self) -> None:
        """Abort the transactions that are not committed, and fence their producers."""
        transactions.abort_all(self._catalogue, self._producer_id)

    def __enter__(self) -> EmbeddedCoordinator:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class LingerTimer:
    """Calls `write` some time after `start`, in a thread, so that no record waits for the next one.

    The thread starts with the first `start`; while there is nothing to write, it calls `idle`.

    Parameters
    ----------
    linger_ms : int
        Time until `write`; -1: never.
    write, idle : callable
        They must not raise, as this would end the thread.
    """

    def __init__(self, linger_ms: int, write: Callable[[], None], idle: Callable[[], object]) -> None:
        self._linger_ms = linger_ms
        self._write = write
        self._idle = idle
        self._started = threading.Event()
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the time; called when a record is added to an empty buffer."""
        if self._linger_ms < 0:
            return
        self._started.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="kstreams-linger", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """End the thread."""
        self._closed.set()
        self._started.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        # Real time, not the log's clock: it bounds the time that a record stays in memory.
        while not self._closed.is_set():
            if not self._started.wait(_IDLE_S):
                self._idle()
                continue
            self._started.clear()
            if not self._closed.wait(self._linger_ms / 1000):
                self._write()


def _producer_id(
    catalogue: Catalogue, transactional_id: str | None, token: str | None
) -> transactions.ProducerId | None:
    """Return the identity under which a producer writes transactions; None for a producer without transactions."""
    if token is not None:
        return transactions.producer_of(token)
    return None if transactional_id is None else transactions.open_producer(catalogue, transactional_id)
