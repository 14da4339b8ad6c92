"""Transactions in the catalogue: the owners of transactional ids, and the state of each transaction.

A transaction's row exists before its first frame, and its state changes in one SQLite transaction, together with the
offsets that are committed with it. Rows of committed transactions are deleted after some time: a transaction without a
row is committed if its id is below the mark `settled`; otherwise, the catalogue is older than the segments.
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
from kstreams.log.embedded.catalogue.catalogue import Catalogue, check_committer, next_id, store_offsets

_BOOT = "SELECT value FROM marks WHERE name = 'boot'"
_BOOT_BYTES = 7  # that fit into an integer of SQLite


class TransactionState(Enum):
    """State of a transaction."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"


class ProducerId(NamedTuple):
    """An epoch of a transactional id; it ends with the next opening, or with a commit of its coordinator."""

    id: int
    epoch: int
    transactional_id: str


def token_of(producer: ProducerId) -> str:
    """Encode a producer's identity as a text, for other processes."""
    return msgspec.json.encode(producer).decode()


def producer_of(token: str) -> ProducerId:
    """Decode a text of `token_of`; LogError for another text."""
    try:
        return decode_json(token, ProducerId)
    except msgspec.DecodeError as error:
        raise LogError(f"{token!r} is no token of a transaction coordinator: {error}") from None


def open_producer(catalogue: Catalogue, transactional_id: str) -> ProducerId:
    """Take over a transactional id, and abort the open transaction of its former owner."""
    with catalogue.write() as database:
        sql = "SELECT id, epoch FROM producers WHERE transactional_id = ?"
        row = database.execute(sql, (transactional_id,)).fetchone()
        number, epoch = (next_id(database, "producers"), -1) if row is None else row
        return _next_epoch(database, ProducerId(number, epoch, transactional_id))


def abort_of_earlier_boots(catalogue: Catalogue, boot: bytes) -> None:
    """Abort the transactions of earlier boots: their writers have died, and their deadlines count another uptime."""
    number = int.from_bytes(boot[:_BOOT_BYTES], "big")
    if _boot_of(catalogue.read(_BOOT)) == number:
        return
    with catalogue.write() as database:
        if _boot_of(database.execute(_BOOT).fetchall()) != number:  # no other process was faster
            _finish(database, "TRUE", (), TransactionState.ABORTED)
            sql = "INSERT INTO marks VALUES ('boot', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
            database.execute(sql, (number,))


def begin(catalogue: Catalogue, producer: ProducerId, clock: Clock, timeout_ms: int) -> int:
    """Open a transaction; returns its id.

    Ids increase with the time of day, so that an id that was lost in a power failure is never used again. The deadline
    counts the machine's uptime, which is the same for all processes.
    """
    with catalogue.write() as database:
        _check_epoch(_epoch(database, producer), producer)
        newest = database.execute("SELECT max(id) FROM transactions").fetchone()[0] or 0
        transaction = max(newest, _settled_below(database) - 1, clock.wall_ms() * 1000) + 1
        database.execute(
            "INSERT INTO transactions VALUES (?, ?, ?, 'open', ?)",
            (transaction, producer.id, producer.epoch, clock.uptime_ms() + timeout_ms),
        )
    return transaction


def add_partition(
    catalogue: Catalogue, transaction: int, topic_id: int, partition: int, first_offset: int, transactional_id: str
) -> None:
    """Store where a transaction's records start in a partition, before the first is written."""
    with catalogue.write() as database:
        _check_open(database, transaction, transactional_id)
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
    """Commit a transaction and offsets of a group as one, unless the committer is no longer a member."""
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
    """Commit several transactions and offsets of a group as one.

    Every other open transaction of the producer is aborted, and its epoch increases, which fences producers that still
    write.
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
    """Abort the open transactions of a producer, and fence those that write them; does nothing if it is fenced."""
    with catalogue.write() as database:
        if _epoch(database, producer) == producer.epoch:
            _next_epoch(database, producer)


def abort(catalogue: Catalogue, transaction: int) -> None:
    """Abort a transaction, unless it is complete: its records stay hidden for ever."""
    with catalogue.write() as database:
        _finish(database, "id = ?", (transaction,), TransactionState.ABORTED)


def transaction_state(catalogue: Catalogue, transaction: int, uptime_ms: int) -> TransactionState:
    """Return the state of a transaction; aborts it first if its timeout has passed."""
    rows = catalogue.read("SELECT state, expires_ms FROM transactions WHERE id = ?", transaction)
    if not rows:
        settled = catalogue.read("SELECT value FROM marks WHERE name = 'settled'")
        if settled and transaction < settled[0][0]:
            return TransactionState.COMMITTED
        raise outdated_catalogue(catalogue.path.parent, f"transaction {transaction} is in a segment")
    if rows[0][0] == TransactionState.OPEN.value and rows[0][1] <= uptime_ms:
        abort(catalogue, transaction)
        return transaction_state(catalogue, transaction, uptime_ms)
    return TransactionState(rows[0][0])


def unknown_transactions(catalogue: Catalogue, transactions: Iterable[int]) -> list[int]:
    """Return the transactions that the catalogue never opened."""
    rows = ((number, catalogue.read("SELECT 1 FROM transactions WHERE id = ?", number)) for number in transactions)
    without_row = [number for number, row in rows if not row]
    settled = catalogue.read(
        "SELECT value FROM marks WHERE name = 'settled'"
    )  # read last: rows are deleted after it is set
    return [number for number in without_row if not settled or number >= settled[0][0]]


def first_open_offset(catalogue: Catalogue, topic_id: int, partition: int, uptime_ms: int) -> int | None:
    """Return the first offset of an open transaction in a partition; None without one."""
    expired = "SELECT id FROM transactions WHERE state = 'open' AND expires_ms <= ?"
    for (transaction,) in catalogue.read(expired, uptime_ms):
        abort(catalogue, transaction)
    sql = (
        "SELECT min(first_offset) FROM transaction_partitions JOIN transactions ON id = transaction_id "
        "WHERE state = 'open' AND topic_id = ? AND partition = ?"
    )
    offset: int | None = catalogue.read(sql, topic_id, partition)[0][0]
    return offset


def delete_committed(catalogue: Catalogue) -> None:
    """Delete the rows of committed transactions that are older than every open one."""
    with catalogue.write() as database:
        oldest, newest = database.execute(
            "SELECT min(CASE WHEN state = 'open' THEN id END), max(id) FROM transactions"
        ).fetchone()
        if newest is None:
            return
        mark = max(oldest if oldest is not None else newest + 1, _settled_below(database))
        sql = "INSERT INTO marks VALUES ('settled', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
        database.execute(sql, (mark,))
        database.execute("DELETE FROM transactions WHERE state = 'committed' AND id < ?", (mark,))


def outdated_catalogue(folder: Path, finding: str) -> CorruptLogError:
    """Return the error for a catalogue that is older than the segments."""
    return CorruptLogError(
        f"The catalogue of {folder} is older than its segments: {finding}, but not in the catalogue. Put back the "
        f"newest catalogue.sqlite and catalogue.journal, or run `kstreams log repair --log-dir {folder}`, which hides "
        "the records of such transactions for ever."
    )


def _boot_of(rows: Sequence[tuple[int]]) -> int | None:
    return rows[0][0] if rows else None


def _finish(database: sqlite3.Connection, condition: str, values: tuple[int, ...], state: TransactionState) -> None:
    chosen = f"SELECT id FROM transactions WHERE state = 'open' AND {condition}"
    database.execute(f"DELETE FROM transaction_partitions WHERE transaction_id IN ({chosen})", values)
    database.execute(f"UPDATE transactions SET state = '{state.value}' WHERE state = 'open' AND {condition}", values)


def _next_epoch(database: sqlite3.Connection, producer: ProducerId) -> ProducerId:
    """Store and return the producer with its next epoch; open transactions of earlier epochs are aborted."""
    later = producer._replace(epoch=producer.epoch + 1)
    database.execute(
        "INSERT INTO producers VALUES (?, ?, ?) ON CONFLICT (id) DO UPDATE SET epoch = excluded.epoch",
        (later.id, later.transactional_id, later.epoch),
    )
    _finish(database, "producer_id = ?", (later.id,), TransactionState.ABORTED)
    return later


def _settled_below(database: sqlite3.Connection) -> int:
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


def _check_open(database: sqlite3.Connection, transaction: int, transactional_id: str) -> None:
    row = database.execute("SELECT state FROM transactions WHERE id = ?", (transaction,)).fetchone()
    if row is None or row[0] != TransactionState.OPEN.value:
        raise _aborted(transactional_id)


def _aborted(transactional_id: str) -> FencedError:
    return FencedError(
        f"The transaction of {transactional_id!r} was aborted: its time was over (`transaction.timeout.ms`) "
        "or another producer took its transactional id."
    )
