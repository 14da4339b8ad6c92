"""`ChangeReader`: reads the changes of tables from a replication slot."""

from __future__ import annotations

import logging
import struct
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from kstreams.connectors.api import SourceBatch
from kstreams.connectors.postgres import pgoutput
from kstreams.connectors.postgres.catalog import FULL_IDENTITY, Catalog, Table, literal, quoted
from kstreams.connectors.postgres.pgoutput import Messages, Relation, TextColumns
from kstreams.connectors.postgres.position import DatabaseSnapshot, Position, lsn_of, lsn_text
from kstreams.connectors.postgres.records import NO_ROW, RecordForm, RowChanges
from kstreams.connectors.postgres.replication_objects import ReplicationObjects
from kstreams.connectors.postgres.rows import TableRows, keys_as_json
from kstreams.connectors.postgres.server import CopyStream, Server
from kstreams.connectors.postgres.snapshot import SnapshotFilter
from kstreams.errors import ConnectorError, ConnectorUnavailableError
from kstreams.kernel.clock import Clock

if TYPE_CHECKING:
    from kstreams.connectors.postgres.pgoutput import Flags, Numbers
    from kstreams.connectors.postgres.server import Connection

logger = logging.getLogger("kstreams.connectors.postgres")

MAX_MESSAGES = 30_000
MAX_BYTES = 16 << 20
_WAIT_S = 0.2
_DATA = ord("w")
_STATUS = struct.Struct(">cQQQqB")
_LONG = struct.Struct(">Q")
_SILENCE_MS = 60_000
_END_OF_LOG = "SELECT pg_current_wal_flush_lsn()::text"
_VISIBLE_MS = 10_000
_VISIBLE_POLL_S = 0.005
_WITHOUT_CHANGE_MS = 1_000


class ChangeReader:
    """Reads changes from a position on.

    Whole transactions stay together in a batch, unless they have more messages than a batch may have.

    Parameters
    ----------
    server : Server
    tables : sequence of Table
    key_type : type
    form : RecordForm
    objects : ReplicationObjects
    position : Position
    heartbeat_ms : int
    clock : Clock
    """

    def __init__(
        self,
        server: Server,
        tables: Sequence[Table],
        *,
        key_type: object,
        form: RecordForm,
        objects: ReplicationObjects,
        position: Position,
        heartbeat_ms: int,
        clock: Clock,
    ) -> None:
        self.position = position
        self._form = form
        self._messages: list[bytes | memoryview] = []
        self._changes_before = 0
        self._has_caught_up = False
        with ExitStack() as opening:
            connection = opening.enter_context(closing(server.connect()))
            self._first_end = lsn_of(Catalog(connection).scalar(_END_OF_LOG))
            self._relations = Relations(connection, tables, key_type, form, clock)
            self._filters = Filters(connection, tables, position)
            self._stream = ReplicationStream(server, objects, lsn_of(position.lsn), heartbeat_ms, clock)
            opening.callback(self._stream.close)
            self._resources = opening.pop_all()

    def read(self) -> SourceBatch | None:
        """Return the next changes, or None if there are none now.

        It returns None only after everything that the server's log had when the reader was opened.
        """
        is_idle = not self._messages
        self._messages += self._stream.receive(MAX_MESSAGES - len(self._messages), is_idle)
        if not self._messages:
            return self._heartbeat() if self._is_caught_up() else self._nothing_yet()
        block = Messages(self._messages)
        count = self._length_of_batch(block)
        if not count:
            return self._nothing_yet()
        if count < len(block):
            block = Messages(self._messages[:count])
        return self._batch(block)

    def committed(self, position: Position) -> None:
        """Confirm to the server that everything before a position is durable."""
        self._stream.confirm(lsn_of(position.lsn))

    def close(self) -> None:
        """Close the connections."""
        self._resources.close()

    def _is_caught_up(self) -> bool:
        """Return whether the server has read its log to the end that it had when this reader was opened."""
        if not self._has_caught_up:
            self._has_caught_up = self._stream.has_passed(self._first_end)
        return self._has_caught_up

    def _nothing_yet(self) -> SourceBatch:
        return self._form.no_records(self.position.to_json())

    def _heartbeat(self) -> SourceBatch | None:
        """Return a batch without records if the server has written WAL that has no changes for this source."""
        lsn = self._stream.passed_lsn()
        if lsn <= lsn_of(self.position.lsn):
            return None
        self.position = self.position.at(lsn)
        self._filters.forget_before(self.position)
        return self._form.no_records(self.position.to_json())

    def _length_of_batch(self, block: Messages) -> int:
        """Return the number of messages that form the next batch. 0 if the rest of a transaction is to be awaited."""
        end = self._relations.end_before_change(block)
        if end < len(block):
            return end
        commits = np.flatnonzero(block.kinds == pgoutput.COMMIT)
        if len(commits):
            return int(commits[-1]) + 1
        is_full = len(block) >= MAX_MESSAGES or len(block.octets) >= MAX_BYTES
        return len(block) if is_full else 0

    def _batch(self, block: Messages) -> SourceBatch | None:
        changes_in_transactions = block.changes_in_transactions()
        first_transaction = block.commit_lsns(np.zeros(1, np.int64))[0]
        commit_lsns = block.commit_lsns(np.arange(len(block)))
        changes_in_transactions[commit_lsns == first_transaction] += self._changes_before
        is_new = block.is_change & self._is_after_position(commit_lsns, changes_in_transactions)
        batch = self._records(block, is_new)
        self._advance(block, int(commit_lsns[-1]), int(changes_in_transactions[-1]))
        return SourceBatch(
            values=batch.values, keys=batch.keys, timestamps=batch.timestamps, position=self.position.to_json()
        )

    def _is_after_position(self, commit_lsns: Numbers, changes_in_transactions: Numbers) -> Flags:
        partial = lsn_of(self.position.transaction)
        is_later: Flags = (commit_lsns >= lsn_of(self.position.lsn)) & (commit_lsns > partial)
        is_in_rest: Flags = (commit_lsns == partial) & (changes_in_transactions > self.position.changes)
        return is_later | is_in_rest

    def _advance(self, block: Messages, last_transaction: int, changes: int) -> None:
        """Move the position behind a block, and retain the beginning of a transaction that continues."""
        rest = self._messages[len(block) :]
        commits = np.flatnonzero(block.kinds == pgoutput.COMMIT)
        if len(commits):
            end = int(block.end_lsns(commits[-1:])[0])
            if end > lsn_of(self.position.lsn):
                self.position = self.position.at(end)
                self._filters.forget_before(self.position)
        if block.kinds[-1] == pgoutput.COMMIT:
            self._messages = rest
            self._changes_before = 0
            return
        is_known = lsn_of(self.position.transaction) == last_transaction and changes <= self.position.changes
        if not is_known and last_transaction >= lsn_of(self.position.lsn):
            self.position = self.position.inside_transaction(last_transaction, changes)
        self._changes_before = changes
        self._messages = [self._messages[block.begin(len(block) - 1)], *rest]

    def _records(self, block: Messages, is_new: Flags) -> _Records:
        parts: list[_Records] = []
        of_rows = is_new & (block.kinds != pgoutput.TRUNCATE)
        numbers = np.flatnonzero(of_rows)
        identifiers = block.relation_ids(numbers)
        for identifier in np.unique(identifiers).tolist():
            relation = self._relations.of(identifier)
            if relation is not None:
                parts.append(self._records_of_table(block, numbers[identifiers == identifier], relation))
        for number in np.flatnonzero(is_new & (block.kinds == pgoutput.TRUNCATE)).tolist():
            parts.extend(self._truncations(block, number))
        return _Records.in_order(parts)

    def _records_of_table(self, block: Messages, numbers: Numbers, relation: KnownRelation) -> _Records:
        changes = self._relations.changes(block, numbers, relation)
        is_included = self._filters.included(relation, changes)
        if is_included.any():
            changes = changes.filter(~is_included)
        return _Records(
            orders=changes.orders,
            values=self._form.of_changes(relation.rows, changes),
            keys=changes.keys(relation.rows),
            timestamps=_milliseconds(changes.commit_times_us),
        )

    def _truncations(self, block: Messages, number: int) -> list[_Records]:
        at = np.array([number])
        transaction = int(block.transactions(at)[0])
        records = []
        for identifier in pgoutput.truncated_tables(block.message(number)):
            relation = self._relations.of(identifier)
            if relation is None or self._filters.is_truncation_included(relation.table, transaction):
                continue
            changes = self._relations.truncation(block, at, relation)
            values = self._form.of_truncation(relation.rows, changes)
            if len(values):
                keys = pa.nulls(1, relation.rows.keys(changes.old_rows).type)
                records.append(_Records(changes.orders, values, keys, _milliseconds(changes.commit_times_us)))
        return records


def _milliseconds(times_us: Numbers) -> pa.Array:
    return pa.array(times_us // 1000)


@dataclass(frozen=True)
class _Records:
    """Records with the numbers that order them."""

    orders: Numbers
    values: pa.Array
    keys: pa.Array | None
    timestamps: pa.Array

    @classmethod
    def in_order(cls, parts: Sequence[_Records]) -> _Records:
        """Return the records of all parts in their order."""
        if not parts:
            return cls(np.zeros(0, np.int64), pa.nulls(0), None, pa.array([], pa.int64()))
        if len(parts) == 1:
            return parts[0]
        order = pa.array(np.argsort(np.concatenate([part.orders for part in parts]), kind="stable"))
        return cls(
            orders=np.sort(np.concatenate([part.orders for part in parts]), kind="stable"),
            values=pa.concat_arrays([part.values for part in parts]).take(order),
            keys=pa.concat_arrays([part.keys for part in parts]).take(order),
            timestamps=pa.concat_arrays([part.timestamps for part in parts]).take(order),
        )


@dataclass(frozen=True)
class KnownRelation:
    """A table with the columns that the server has announced."""

    table: Table
    relation: Relation
    rows: TableRows


class Relations:
    """The tables of a source, as the server announces them in the stream.

    Parameters
    ----------
    connection : psycopg connection
        For questions about types and values that the stream does not contain.
    tables : sequence of Table
    key_type : type
    form : RecordForm
    clock : Clock
    """

    def __init__(
        self, connection: Connection, tables: Sequence[Table], key_type: object, form: RecordForm, clock: Clock
    ) -> None:
        self._clock = clock
        self._connection = connection
        self._catalog = Catalog(connection)
        self._tables = {table.identifier: table for table in tables}
        self._key_type = key_type
        self._form = form
        self._known: dict[int, KnownRelation] = {}

    def of(self, identifier: int) -> KnownRelation | None:
        """Return a table by its identifier. None if the source does not read it."""
        return self._known.get(identifier)

    def end_before_change(self, block: Messages) -> int:
        """Return the number of messages before the first one that announces other columns than those in use.

        If no change precedes it, the new columns are taken into use.
        """
        for number in np.flatnonzero(block.kinds == pgoutput.RELATION).tolist():
            relation = Relation.of_message(block.message(number))
            table = self._tables.get(relation.identifier)
            known = self._known.get(relation.identifier)
            if table is None or (known is not None and known.relation == relation):
                continue
            if known is not None and block.is_change[:number].any():
                return int(number)
            self._use(table, relation)
        return len(block)

    def changes(self, block: Messages, numbers: Numbers, relation: KnownRelation) -> RowChanges:
        """Return the changes of messages about one table."""
        count = len(relation.relation.columns)
        kinds = block.kinds[numbers]
        cursors = block.starts[numbers] + 5
        has_old = np.isin(block.octets[cursors], (pgoutput.OLD_KEY, pgoutput.OLD_ROW))
        olds = np.flatnonzero(has_old)
        old_columns, ends = block.read_tuples(cursors[olds] + 1, count)
        cursors[olds] = ends
        news = np.flatnonzero(kinds != pgoutput.DELETE)
        new_columns, _ = block.read_tuples(cursors[news] + 1, count)
        old_rows = RelationTexts(old_columns, relation.relation)
        with_old = np.flatnonzero(has_old[news])
        previous = old_rows.take(np.searchsorted(olds, news[with_old]))
        new_columns.fill_unchanged(with_old, previous.columns)
        new_rows = RelationTexts(new_columns, relation.relation)
        pairs = _Pairs(len(numbers), olds, news)
        pairs.split_changed_keys(relation, previous, new_rows, with_old)
        exists = self._look_up_unchanged(relation, new_rows, block.transactions(numbers[news]))
        if not exists.all():
            new_rows = new_rows.take(np.flatnonzero(exists))
            pairs.drop_new(exists)
        return pairs.changes(block, numbers, relation, old_rows, new_rows)

    def truncation(self, block: Messages, number: Numbers, relation: KnownRelation) -> RowChanges:
        """Return the truncation of a table as a change without rows."""
        none = RelationTexts(TextColumns(block.octets, len(relation.relation.columns), 0), relation.relation)
        absent = np.array([NO_ROW])
        return _changes(block, relation, number, 2 * number, old=absent, new=absent, old_rows=none, new_rows=none)

    def _use(self, table: Table, relation: Relation) -> None:
        known = self._known.get(table.identifier)
        if known is not None:
            logger.info(
                "the columns of the table %s have changed: %s are now %s",
                relation.name,
                ", ".join(known.relation.columns),
                ", ".join(relation.columns),
            )
        if self._form.needs_full_identity and relation.identity != FULL_IDENTITY:
            raise ConnectorError(
                f"Changes of {relation.name} no longer have the row before a change: ALTER TABLE {table.sql} REPLICA "
                "IDENTITY FULL. Changes without it cannot be read any more: begin again with a snapshot"
            )
        types = {
            name: self._catalog.column_type(type_id)
            for name, type_id in zip(relation.columns, relation.type_ids, strict=True)
        }
        rows = TableRows(relation.name, types, table.key, self._key_type, self._form.row_type)
        self._known[table.identifier] = KnownRelation(table, relation, rows)

    def _look_up_unchanged(self, relation: KnownRelation, new_rows: RelationTexts, transactions: Numbers) -> Flags:
        """Take values that no message contains from the table. Return which rows still exist.

        The table may have newer values already. Their changes follow in the stream, as does the deletion of a row that
        no longer exists.
        """
        columns = [name for name in relation.rows.row_columns if new_rows.is_unchanged(name).any()]
        exists = np.ones(len(new_rows), bool)
        if not columns:
            return exists
        incomplete = np.flatnonzero(np.any([new_rows.is_unchanged(name) for name in columns], axis=0))
        keys = [texts.take(pa.array(incomplete)) for texts in relation.rows.key_texts(new_rows)]
        self._await_visible(set(transactions[incomplete].tolist()))
        current = current_values(self._connection, relation.table, keys, columns)
        exists[incomplete] = [number in current for number in range(len(incomplete))]
        for at, name in enumerate(columns):
            values = [current[number][at] if number in current else None for number in range(len(incomplete))]
            new_rows.replace_unchanged(name, incomplete, pa.array(values, pa.string()))
        return exists

    def _await_visible(self, transactions: Collection[int]) -> None:
        """Wait until the table has the rows of transactions.

        The server sends a transaction when its commit is in the log. It is visible a moment later, and if the commit
        waits for a synchronous standby, after that.
        """
        deadline_ms = self._clock.uptime_ms() + _VISIBLE_MS
        while self._clock.uptime_ms() < deadline_ms:
            snapshot = DatabaseSnapshot(self._catalog.scalar("SELECT pg_current_snapshot()::text"), "0/0")
            if all(map(snapshot.includes, transactions)):
                return
            self._clock.sleep(_VISIBLE_POLL_S)
        raise ConnectorUnavailableError(
            "PostgreSQL has sent transactions that are not visible yet: is a synchronous standby unavailable?"
        )


def current_values(
    connection: Connection, table: Table, keys: Sequence[pa.Array], columns: Sequence[str]
) -> dict[int, list[str | None]]:
    """Return the texts of columns of the rows with these keys, by the number of the key."""
    from psycopg import errors
    from psycopg.pq import ExecStatus

    names = ", ".join(f"t.{quoted(name)}" for name in columns)
    using = ", ".join(map(quoted, table.key))
    rows = literal(keys_as_json(table.key, keys))
    query = (
        f"SELECT k.ordinality, {names} FROM json_populate_recordset(NULL::{table.sql}, {rows}) WITH ORDINALITY k "
        f"JOIN {table.sql_without_descendants} t USING ({using})"
    )
    result = connection.pgconn.exec_(query.encode())  # the text format of columns, not of psycopg
    if result.status != ExecStatus.TUPLES_OK:
        raise errors.error_from_result(result)
    values: dict[int, list[str | None]] = {}
    for row in range(result.ntuples):
        octets = [result.get_value(row, column) for column in range(len(columns) + 1)]
        values[int(octets[0] or b"") - 1] = [None if text is None else text.decode() for text in octets[1:]]
    return values


class RelationTexts:
    """Rows of messages, as columns of text by name."""

    def __init__(self, columns: TextColumns, relation: Relation) -> None:
        self.columns = columns
        self._relation = relation
        self._texts: dict[str, pa.Array] = {}

    def __len__(self) -> int:
        return len(self.columns)

    def text(self, column: str) -> pa.Array:
        if column not in self._texts:
            self._texts[column] = self.columns.texts(self._relation.columns.index(column))
        return self._texts[column]

    def take(self, rows: Numbers) -> RelationTexts:
        """Return some of the rows."""
        taken = RelationTexts(self.columns.take(rows), self._relation)
        taken._texts = {name: texts.take(pa.array(rows)) for name, texts in self._texts.items()}
        return taken

    def is_unchanged(self, column: str) -> Flags:
        """Return for each row whether its message does not contain the column."""
        is_unchanged: Flags = self.columns.kinds[self._relation.columns.index(column)] == pgoutput.UNCHANGED
        return is_unchanged

    def replace_unchanged(self, column: str, rows: Numbers, values: pa.Array) -> None:
        """Set the values of rows whose messages do not contain the column."""
        numbers = np.arange(len(self))
        is_unchanged = self.is_unchanged(column)[rows]
        numbers[rows[is_unchanged]] = len(self) + np.flatnonzero(is_unchanged)
        self._texts[column] = pa.concat_arrays([self.text(column), values]).take(pa.array(numbers))


class _Pairs:
    """The old and the new row of each message, while changed keys are split into two changes.

    Parameters
    ----------
    count : int
        The number of messages.
    olds, news : numpy int64 array
        The messages that have an old row, and those that have a new one.
    """

    def __init__(self, count: int, olds: Numbers, news: Numbers) -> None:
        self._news = news
        self._old = np.full(count, NO_ROW)
        self._old[olds] = np.arange(len(olds))
        self._new = np.full(count, NO_ROW)
        self._new[news] = np.arange(len(news))
        self._is_split = np.zeros(count, bool)

    def split_changed_keys(
        self, relation: KnownRelation, previous: RelationTexts, new_rows: RelationTexts, with_old: Numbers
    ) -> None:
        """Note the messages whose key has changed.

        Parameters
        ----------
        relation : KnownRelation
        previous : RelationTexts
            The old rows of the updates that have one.
        new_rows : RelationTexts
        with_old : numpy int64 array
            The numbers of the new rows of these updates.
        """
        if len(with_old):
            new_keys = [texts.take(pa.array(with_old)) for texts in relation.rows.key_texts(new_rows)]
            has_changed = pgoutput.differ(relation.rows.key_texts(previous), new_keys)
            self._is_split[self._news[with_old[has_changed]]] = True

    def drop_new(self, exists: Flags) -> None:
        """Leave out the new rows that do not exist. The others have new numbers."""
        self._new[self._news[~exists]] = NO_ROW
        self._new[self._news[exists]] = np.arange(exists.sum())

    def changes(
        self,
        block: Messages,
        numbers: Numbers,
        relation: KnownRelation,
        old_rows: RelationTexts,
        new_rows: RelationTexts,
    ) -> RowChanges:
        """Return the changes. Of a message with a changed key, the deletion comes first."""
        is_delete = block.kinds[numbers] == pgoutput.DELETE
        first = np.flatnonzero(is_delete | self._is_split)
        second = np.flatnonzero(self._new != NO_ROW)
        orders = np.concatenate([2 * numbers[first], 2 * numbers[second] + 1])
        old = np.concatenate([self._old[first], np.where(self._is_split, NO_ROW, self._old)[second]])
        new = np.concatenate([np.full(len(first), NO_ROW), self._new[second]])
        at = np.argsort(orders, kind="stable")
        return _changes(
            block,
            relation,
            orders[at] // 2,
            orders[at],
            old=old[at],
            new=new[at],
            old_rows=old_rows,
            new_rows=new_rows,
        )


def _changes(
    block: Messages,
    relation: KnownRelation,
    numbers: Numbers,
    orders: Numbers,
    *,
    old: Numbers,
    new: Numbers,
    old_rows: RelationTexts,
    new_rows: RelationTexts,
) -> RowChanges:
    return RowChanges(
        table=relation.table.full_name,
        old_rows=old_rows,
        new_rows=new_rows,
        old=old,
        new=new,
        orders=orders,
        transactions=block.transactions(numbers),
        lsns=block.lsns(numbers),
        commit_lsns=block.commit_lsns(numbers),
        commit_times_us=block.commit_times_us(numbers),
    )


class Filters:
    """The filters of all tables, until the stream has passed their snapshots."""

    def __init__(self, connection: Connection, tables: Sequence[Table], position: Position) -> None:
        self._by_table: Mapping[int, SnapshotFilter] = {
            table.identifier: SnapshotFilter(connection, table, position.ranges_of(table.full_name))
            for table in tables
            if position.ranges_of(table.full_name)
        }

    def included(self, relation: KnownRelation, changes: RowChanges) -> Flags:
        """Return for each change whether a snapshot includes it."""
        snapshot = self._by_table.get(relation.table.identifier)
        if snapshot is None or not len(changes):
            return np.zeros(len(changes), bool)
        return snapshot.is_included(changes.transactions, changes.key_texts(relation.rows))

    def is_truncation_included(self, table: Table, transaction: int) -> bool:
        """Return whether the snapshot of a table includes a truncation."""
        snapshot = self._by_table.get(table.identifier)
        is_included = False if snapshot is None else snapshot.is_truncation_included(transaction)
        if is_included is None:
            raise ConnectorError(
                f"The table {table.full_name} was truncated while the reading of its snapshot was interrupted: begin "
                "again with a new snapshot"
            )
        return is_included

    def forget_before(self, position: Position) -> None:
        """Forget the snapshots that a position has passed."""
        if not position.ranges:
            self._by_table = {}


class ReplicationStream:
    """Messages of a replication slot, the status that the server asks for, and heartbeats.

    Parameters
    ----------
    server : Server
    objects : ReplicationObjects
    lsn : int
        Where the stream begins.
    heartbeat_ms : int
        How often the server is asked how far it has read its log.
    clock : Clock
    """

    def __init__(self, server: Server, objects: ReplicationObjects, lsn: int, heartbeat_ms: int, clock: Clock) -> None:
        self._clock = clock
        self._heartbeat_ms = heartbeat_ms
        self._server = server
        self._confirmed_lsn = lsn
        self._passed_lsn = 0
        self._is_in_transaction = False
        now_ms = clock.uptime_ms()
        self._next_heartbeat_ms = now_ms
        self._last_message_ms = now_ms
        self._reported_ms = now_ms - heartbeat_ms
        self._connection = server.connect_for_replication()
        options = f"proto_version '1', publication_names {_option(objects.publication)}"
        command = f"START_REPLICATION SLOT {quoted(objects.slot)} LOGICAL {lsn_text(lsn)} ({options})"
        try:
            self._stream = CopyStream(server, self._connection, command)
        except ConnectorError:
            self._connection.finish()
            raise

    def receive(self, count: int, waits: bool) -> list[memoryview]:
        """Return the next messages about changes, `count` at most.

        Raises
        ------
        ConnectorUnavailableError
            If the server has ended the stream, or no longer answers.
        """
        self._send_heartbeat()
        messages = self._stream.receive(max(count, 1), MAX_BYTES, _WAIT_S if waits else _WAIT_S / 10)
        if messages is None:
            raise ConnectorUnavailableError(f"PostgreSQL at {self._server!r} has ended the replication")
        if messages:
            self._last_message_ms = self._clock.uptime_ms()
        keepalives = [message for message in messages if message[0] != _DATA]
        if not keepalives:
            return messages
        self._take_keepalives(keepalives)
        return [message for message in messages if message[0] == _DATA]

    def passed_lsn(self) -> int:
        """Return up to where the log has nothing for this source. It may only be called when no message is pending."""
        now_ms = self._clock.uptime_ms()
        if now_ms - self._reported_ms < self._heartbeat_ms or not self._passed_lsn:
            return 0
        self._reported_ms = now_ms
        return self._passed_lsn

    def has_passed(self, lsn: int) -> bool:
        """Return whether the server has read its log up to a place. If not, ask it how far it is."""
        has_passed = self._passed_lsn >= lsn
        if not has_passed:
            self._send_status(asks_for_reply=True)
        return has_passed

    def confirm(self, lsn: int) -> None:
        """Tell the server what is durable."""
        if lsn > self._confirmed_lsn:
            self._confirmed_lsn = lsn
            self._send_status(asks_for_reply=False)

    def close(self) -> None:
        """Close the connection, so that another reader can use the slot."""
        self._connection.finish()

    def _take_keepalives(self, keepalives: Sequence[memoryview]) -> None:
        (self._passed_lsn,) = _LONG.unpack_from(keepalives[-1], 1)
        if any(message[17] for message in keepalives):
            self._send_status(asks_for_reply=False)
            # a server that stops asks often, and waits until its whole log is confirmed
            wait_ms = self._heartbeat_ms - _WITHOUT_CHANGE_MS
            self._reported_ms = min(self._reported_ms, self._clock.uptime_ms() - max(wait_ms, 0))

    def _send_heartbeat(self) -> None:
        now_ms = self._clock.uptime_ms()
        if now_ms - self._last_message_ms > max(_SILENCE_MS, 3 * self._heartbeat_ms):
            raise ConnectorUnavailableError(f"PostgreSQL at {self._server!r} has not answered for a minute")
        if now_ms >= self._next_heartbeat_ms:
            self._next_heartbeat_ms = now_ms + self._heartbeat_ms
            self._send_status(asks_for_reply=True)

    def _send_status(self, *, asks_for_reply: bool) -> None:
        lsn = self._confirmed_lsn
        self._stream.send(_STATUS.pack(b"r", lsn, lsn, lsn, 0, int(asks_for_reply)))


def _option(text: str) -> str:
    """Return the value of an option of a replication command: a list of identifiers in a literal."""
    return "'" + quoted(text).replace("'", "''") + "'"
