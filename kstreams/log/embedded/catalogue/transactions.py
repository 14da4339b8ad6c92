"""Transactions in the catalogue: who may write under a transactional id, and the state of each transaction.

A transaction's row is there before its first frame, and its state changes in one SQLite transaction, together with
the offsets that are committed with it. Committed transactions are forgotten in time: below the mark `settled`, one
without a row is committed; above it, one without a row says that the catalogue is older than the segments.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import NamedTuple

import msgspec

from kstreams.errors import CorruptLogError, FencedError, LogError
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.clock import Clock
from kstreams.kernel.decoders import decode_json
from kstreams.log.api import GroupMetadata, OffsetAndMetadata
from kstreams.log.embedded.catalogue.catalogue import Catalogue, next_id
from kstreams.log.embedded.catalogue.group_rows import check_committer, store_offsets

_BOOT = "SELECT value FROM marks WHERE name = 'boot'"
_BOOT_BYTES = 7  # fit into a number of SQLite


class TransactionState(Enum):
    """State of a transaction."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"


class ProducerId(NamedTuple):
    """One opening of a transactional id, up to a commit of its coordinator: what comes after has a higher epoch."""

    id: int
    epoch: int
    transactional_id: str


def token_of(producer: ProducerId) -> str:
    """A producer's identity as a text, for other processes."""
    return msgspec.json.encode(producer).decode()


def producer_of(token: str) -> ProducerId:
    """The inverse of `token_of`; LogError for another text."""
    try:
        return decode_json(token, ProducerId)
    except msgspec.DecodeError as error:
        raise LogError(f"{token!r} is no token of a transaction coordinator: {error}") from None


def open_producer(catalogue: Catalogue, transactional_id: str) -> ProducerId:
    """Take over a transactional id: the open transaction of whoever had it is aborted."""
    with catalogue.write() as database:
        sql = "SELECT id, epoch FROM producers WHERE transactional_id = ?"
        known = database.execute(sql, (transactional_id,)).fetchone()
        number, epoch = (next_id(database, "producers"), -1) if known is None else known
        return _next_epoch(database, ProducerId(number, epoch, transactional_id))


def abort_of_earlier_boots(catalogue: Catalogue, boot: bytes) -> None:
    """Abort what was open when the machine went down: its writers are gone, and its deadlines are of another uptime."""
    number = int.from_bytes(boot[:_BOOT_BYTES], "big")
    if _boot_of(catalogue.read(_BOOT)) == number:
        return
    with catalogue.write() as database:
        if _boot_of(database.execute(_BOOT).fetchall()) != number:  # nobody was faster
            _finish(database, "TRUE", (), TransactionState.ABORTED)
            sql = "INSERT INTO marks VALUES ('boot', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
            database.execute(sql, (number,))


def begin(catalogue: Catalogue, producer: ProducerId, clock: Clock, timeout_ms: int) -> int:
    """Open a transaction; returns its id.

    Ids grow with the time of day: one that was lost with the machine's power is never given again. The deadline is
    counted in uptime, in which all processes of the machine agree.
    """
    with catalogue.write() as database:
        _check_epoch(_epoch(database, producer), producer)
        newest = database.execute("SELECT max(id) FROM transactions").fetchone()[0] or 0
        transaction = max(newest, _forgotten_below(database) - 1, clock.wall_ms() * 1000) + 1
        database.execute(
            "INSERT INTO transactions VALUES (?, ?, ?, 'open', ?)",
            (transaction, producer.id, producer.epoch, clock.uptime_ms() + timeout_ms),
        )
    return transaction


def add_partition(
    catalogue: Catalogue, transaction: int, topic_id: int, partition: int, first_offset: int, who: str
) -> None:
    """Note where a transaction's records begin in a partition, before the first is written."""
    with catalogue.write() as database:
        _check_open(database, transaction, who)
        database.execute(
            "INSERT OR IGNORE INTO transaction_partitions VALUES (?, ?, ?, ?)",
            (transaction, topic_id, partition, first_offset),
        )


def commit(
    catalogue: Catalogue,
    transaction: int,
    producer: ProducerId,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    group: str | None,
    committer: GroupMetadata | None = None,
) -> None:
    """Make the transaction's records and these offsets of the group visible as one, if the committer still may."""
    with catalogue.write() as database:
        _check_epoch(_epoch(database, producer), producer)
        _check_open(database, transaction, producer.transactional_id)
        if committer is not None:
            check_committer(catalogue, committer, offsets)
        _finish(database, "id = ?", (transaction,), TransactionState.COMMITTED)
        if group is not None:
            store_offsets(database, group, offsets)


def commit_prepared(
    catalogue: Catalogue,
    prepared: Collection[int],
    producer: ProducerId,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    group: str | None,
) -> ProducerId:
    """Make the records of several transactions and these offsets of the group visible as one.

    Every other open transaction of the producer is aborted, and its epoch grows: whoever still writes is fenced.
    """
    with catalogue.write() as database:
        _check_epoch(_epoch(database, producer), producer)
        sql = "SELECT id FROM transactions WHERE state = 'open' AND producer_id = ? AND epoch = ?"
        if not {(number,) for number in prepared} <= set(database.execute(sql, producer[:2])):
            raise _aborted(producer.transactional_id)
        for number in prepared:
            _finish(database, "id = ?", (number,), TransactionState.COMMITTED)
        if group is not None:
            store_offsets(database, group, offsets)
        return _next_epoch(database, producer)


def abort_all(catalogue: Catalogue, producer: ProducerId) -> None:
    """Abort the open transactions of a producer, and fence whoever still writes them; not if it is fenced itself."""
    with catalogue.write() as database:
        if _epoch(database, producer) == producer.epoch:
            _next_epoch(database, producer)


def abort(catalogue: Catalogue, transaction: int) -> None:
    """Hide the transaction's records for ever; nothing happens to one that is complete."""
    with catalogue.write() as database:
        _finish(database, "id = ?", (transaction,), TransactionState.ABORTED)


def transaction_state(catalogue: Catalogue, transaction: int, uptime_ms: int) -> TransactionState:
    """The state of a transaction; one whose timeout has passed is aborted first."""
    rows = catalogue.read("SELECT state, expires_ms FROM transactions WHERE id = ?", transaction)
    if not rows:
        settled = catalogue.read("SELECT value FROM marks WHERE name = 'settled'")
        if settled and transaction < settled[0][0]:
            return TransactionState.COMMITTED
        raise behind_segments(catalogue.path.parent, f"transaction {transaction} is in a segment")
    if rows[0][0] == TransactionState.OPEN.value and rows[0][1] <= uptime_ms:
        abort(catalogue, transaction)
        return transaction_state(catalogue, transaction, uptime_ms)
    return TransactionState(rows[0][0])


def unknown_among(catalogue: Catalogue, transactions: Iterable[int]) -> list[int]:
    """Those of these transactions that the catalogue never opened."""
    rows = ((number, catalogue.read("SELECT 1 FROM transactions WHERE id = ?", number)) for number in transactions)
    strange = [number for number, row in rows if not row]
    settled = catalogue.read("SELECT value FROM marks WHERE name = 'settled'")  # after the rows, which it outlives
    return [number for number in strange if not settled or number >= settled[0][0]]


def first_open_offset(catalogue: Catalogue, topic_id: int, partition: int, uptime_ms: int) -> int | None:
    """First offset in a partition that belongs to an open transaction."""
    expired = "SELECT id FROM transactions WHERE state = 'open' AND expires_ms <= ?"
    for (transaction,) in catalogue.read(expired, uptime_ms):
        abort(catalogue, transaction)
    sql = (
        "SELECT min(first_offset) FROM transaction_partitions JOIN transactions ON id = transaction_id "
        "WHERE state = 'open' AND topic_id = ? AND partition = ?"
    )
    offset: int | None = catalogue.read(sql, topic_id, partition)[0][0]
    return offset


def forget_committed(catalogue: Catalogue) -> None:
    """Drop the rows of committed transactions that are older than every open one."""
    with catalogue.write() as database:
        oldest, newest = database.execute(
            "SELECT min(CASE WHEN state = 'open' THEN id END), max(id) FROM transactions"
        ).fetchone()
        if newest is None:
            return
        mark = max(oldest if oldest is not None else newest + 1, _forgotten_below(database))
        sql = "INSERT INTO marks VALUES ('settled', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
        database.execute(sql, (mark,))
        database.execute("DELETE FROM transactions WHERE state = 'committed' AND id < ?", (mark,))


def behind_segments(folder: Path, what: str) -> CorruptLogError:
    """The error for a catalogue that is older than the segments."""
    return CorruptLogError(
        f"The catalogue of {folder} is older than its segments: {what}, but not in the catalogue. Put back the newest "
        f"catalogue.sqlite and catalogue.journal, or run `kstreams log repair --log-dir {folder}`, which hides the "
        "records of such transactions for ever."
    )


def _boot_of(rows: Sequence[tuple[int]]) -> int | None:
    return rows[0][0] if rows else None


def _finish(database: sqlite3.Connection, which: str, values: tuple[int, ...], state: TransactionState) -> None:
    chosen = f"SELECT id FROM transactions WHERE state = 'open' AND {which}"
    database.execute(f"DELETE FROM transaction_partitions WHERE transaction_id IN ({chosen})", values)
    database.execute(f"UPDATE transactions SET state = '{state.value}' WHERE state = 'open' AND {which}", values)


def _next_epoch(database: sqlite3.Connection, producer: ProducerId) -> ProducerId:
    """The producer with its next epoch; what is open of those before is aborted."""
    later = producer._replace(epoch=producer.epoch + 1)
    database.execute(
        "INSERT INTO producers VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch",
        (later.id, later.transactional_id, later.epoch),
    )
    _finish(database, "producer_id = ?", (later.id,), TransactionState.ABORTED)
    return later


def _forgotten_below(database: sqlite3.Connection) -> int:
    row = database.execute("SELECT value FROM marks WHERE name = 'settled'").fetchone()
    return int(row[0]) if row else 0


def _epoch(database: sqlite3.Connection, producer: ProducerId) -> int:
    row = database.execute("SELECT epoch FROM producers WHERE id = ?", (producer.id,)).fetchone()
    return int(row[0]) if row else -1


def _check_epoch(epoch: int, producer: ProducerId) -> None:
    if epoch != producer.epoch:
        raise FencedError(
            f"Another producer has taken over the transactional id {producer.transactional_id!r}: close this one."
        )


def _check_open(database: sqlite3.Connection, transaction: int, who: str) -> None:
    row = database.execute("SELECT state FROM transactions WHERE id = ?", (transaction,)).fetchone()
    if row is None or row[0] != TransactionState.OPEN.value:
        raise _aborted(who)


def _aborted(who: str) -> FencedError:
    return FencedError(
        f"The transaction of {who!r} was aborted: its time was over (`transaction.timeout.ms`) "
        "or another producer took its transactional id."
    )
