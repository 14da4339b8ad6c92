"""`RetriedSinkPartition`: the task of a sink whose target may take refused rows later.

A refused row waits in an internal topic, and later rows of its key wait behind it. When its time has come, a second
writer of the sink takes it; the target keeps the offset in the internal topic for that writer. What becomes of a row is
decided once, before the target commits: it is in the internal topic, in the parking topic, or in the target.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kstreams.connectors.api import Sink, SinkTask, SinkWriter
from kstreams.connectors.connector import SinkConnector
from kstreams.connectors.dead_letters import DeadLetters
from kstreams.connectors.readable_rows import ReadableRows
from kstreams.connectors.refusals import Refusals
from kstreams.connectors.reread_records import read_records_at, read_records_between
from kstreams.connectors.waiting_rows import WaitingRow, WaitingRows, batch_of
from kstreams.errors import FencedError
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.kernel.clock import Clock
from kstreams.kernel.retry import NEVER_CALLED, Attempts, Retry
from kstreams.log.api import Admin, Log, OffsetAndMetadata

logger = logging.getLogger("kstreams.connectors")

_NEVER_MS = 2**63
_MANY_ROWS = 1_000
_PAUSE_SHARE = 4  # many waiting rows are written again at most a fifth of the time


class DiscardingWriter:
    """A writer of a sink whose uncommitted rows can be discarded, by another writer at the same offset.

    Parameters
    ----------
    sink : Sink
    task : SinkTask
    """

    def __init__(self, sink: Sink, task: SinkTask) -> None:
        self._sink = sink
        self._task = task
        self._writer: SinkWriter = sink.open(task)
        try:
            self.next_offset = self._writer.next_offset()
        except BaseException:
            self._writer.close()
            raise

    def write(self, rows: ReadableRows, batch: Batch) -> list[int]:
        """Write records. Return the offsets of those that do not decode."""
        written = [np.array([], np.int64)]
        for part in rows.of(batch):
            self._writer.write(part)
            written.append(part.offsets)
        unreadable: list[int] = np.setdiff1d(batch.offsets, np.concatenate(written), assume_unique=True).tolist()
        return unreadable

    def flush(self) -> dict[int, Exception]:
        """Bring all rows to the target; return the errors of those that it refuses, by offset."""
        return {row.offset: row.error for row in self._writer.flush()}

    def commit(self, next_offset: int) -> None:
        """Commit rows and offset."""
        self._writer.commit(next_offset)
        if not self._sink.at_least_once:
            self.next_offset = next_offset

    def discard(self) -> None:
        """Discard the uncommitted rows.

        Raises
        ------
        FencedError
            If another writer of the task has committed.
        """
        self._writer.close()
        self._writer = self._sink.open(self._task)
        if self._writer.next_offset() != self.next_offset:
            raise FencedError(f"another writer of {self._task.id} has committed")

    def close(self) -> None:
        """Close the writer, which discards what is not committed."""
        self._writer.close()


class RowsByKey:
    """The waiting rows of a partition, in the order of their offsets.

    Parameters
    ----------
    rows : mapping of int to WaitingRow
    """

    def __init__(self, rows: Mapping[int, WaitingRow]) -> None:
        self.rows = [rows[offset] for offset in sorted(rows)]
        self._first: dict[bytes | int, WaitingRow] = {}
        for row in self.rows:
            self._first.setdefault(row.order, row)

        refused_ms = [row.attempts.first_ms for row in self._first.values() if row.attempts.calls]
        self.refused_ms = min(refused_ms, default=0)
        """The time of day at which the oldest row was refused first. 0 if none was refused."""

    @property
    def last_offset(self) -> int:
        """The offset of the last row, or -1."""
        return self.rows[-1].offset if self.rows else -1

    def due_ms(self) -> int:
        """Return the time of day at which the first row of a key is due."""
        return min((row.due_ms for row in self._first.values()), default=_NEVER_MS)

    def first_offsets(self) -> dict[bytes, int]:
        """Return the offset of the first row of each key."""
        return {key: row.offset for key, row in self._first.items() if isinstance(key, bytes)}

    def due(self, now_ms: int) -> list[WaitingRow]:
        """Return the rows of the keys whose first row is due."""
        return [row for row in self.rows if self._first[row.order].due_ms <= now_ms]


class HeldKeys:
    """The keys whose later records may not be written, with the offset after which they are held back."""

    def __init__(self) -> None:
        self._after: dict[bytes, int] = {}
        self._keys = pa.array([], pa.binary())

    def set(self, after: Mapping[bytes, int]) -> None:
        """Hold back these keys only."""
        self._after = dict(after)
        self._keys = pa.array(list(after), pa.binary())

    def add(self, after: Mapping[bytes, int]) -> None:
        """Hold back further keys, or keys from an earlier offset on."""
        self.set(self._after | {key: min(offset, self._after.get(key, offset)) for key, offset in after.items()})

    def after(self, offset: int) -> dict[bytes, int]:
        """Return the keys that are held back after this offset or a later one."""
        return {key: first for key, first in self._after.items() if first >= offset}

    def mask(self, batch: Batch) -> np.typing.NDArray[np.bool_]:
        """Return which records are held back."""
        held = np.zeros(len(batch), bool)
        if self._after:
            candidates = pc.is_in(batch.keys, value_set=self._keys).to_numpy(zero_copy_only=False)
            for index in np.flatnonzero(candidates).tolist():
                held[index] = batch.offsets[index] > self._after[batch.keys[index].as_py()]
        return held


class RetriedSinkPartition:
    """See `ConnectorTask`.

    Parameters
    ----------
    connector : SinkConnector
        With `retry`.
    identity : str
        The name under which the target keeps offsets.
    source : TopicPartition
    log : Log
    clock : Clock
    admin : Admin
    retry : Retry
    first_offset : callable
        Returns the offset at which to start if the target holds none.
    letters : DeadLetters
        Takes rows that do not decode.
    on_commit, on_pass : callable
        Called with the next offset of the topic, or of the waiting topic, after a commit.
    open_refusals : callable
        Returns what takes the rows that the target has refused for the last time.
    """

    def __init__(
        self,
        connector: SinkConnector,
        identity: str,
        source: TopicPartition,
        log: Log,
        clock: Clock,
        admin: Admin,
        *,
        retry: Retry,
        first_offset: Callable[[], int],
        letters: DeadLetters,
        on_commit: Callable[[int], None],
        on_pass: Callable[[int], None],
        open_refusals: Callable[[], Refusals],
    ) -> None:
        sink = connector.sink
        self._connector = connector
        self._source = source
        self._waiting_place = TopicPartition(connector.waiting_topic, source.partition)
        self._log = log
        self._clock = clock
        self._admin = admin
        self._retry = retry
        self._letters = letters
        self._on_commit = on_commit
        self._on_pass = on_pass
        self._rows = ReadableRows(connector.topic, letters)
        self._next_offset: int | None = None
        self._held_offsets: set[int] = set()
        self._held_keys = HeldKeys()
        self._pause_until_ms = 0
        self.uncommitted_rows = 0
        self.uncommitted_bytes = 0
        with ExitStack() as opening:
            value_type = self._rows.value_type
            task = SinkTask(identity, source.topic, source.partition, value_type)
            second_task = SinkTask(f"{identity}-waiting", connector.waiting_topic, source.partition, value_type)
            self._writer = DiscardingWriter(sink, task)
            opening.callback(self._writer.close)
            self._second_writer = DiscardingWriter(sink, second_task)
            opening.callback(self._second_writer.close)
            self.start_offset = first_offset() if self._writer.next_offset is None else self._writer.next_offset
            self._committed = self.start_offset
            self._refusals = open_refusals()
            opening.callback(self._refusals.close)
            transactional_id = f"{connector.waiting_topic}-{source.partition}"
            self._topic = WaitingRows(log, self._waiting_place, task.id, transactional_id)
            opening.callback(self._topic.close)
            refused_before = set(self._refusals.earlier(0))
            rows = self._topic.read(self._first_waiting_offset())
            self._set_waiting({offset: row for offset, row in rows.items() if offset not in refused_before})
            self._skipped = {offset for offset in {*rows, *refused_before} if offset >= self._committed}
            self._resources = opening.pop_all()

    @property
    def has_uncommitted(self) -> bool:
        """True if there are rows since the last commit."""
        return self._next_offset is not None

    @property
    def waiting_rows(self) -> int:
        """The number of rows that wait for another attempt, or behind such a row."""
        return len(self._waiting.rows)

    @property
    def oldest_wait_ms(self) -> int:
        """For how long the oldest of them has waited. 0 if none has been refused."""
        return max(self._clock.wall_ms() - self._waiting.refused_ms, 0) if self._waiting.refused_ms else 0

    def take(self, batch: Batch) -> None:
        """Hand rows to the sink, except those whose key waits."""
        self._write_due_rows()
        self.uncommitted_rows += len(batch)
        self.uncommitted_bytes += batch.keys.nbytes + batch.values.nbytes
        self._next_offset = int(batch.offsets[-1]) + 1
        self._offer(batch)

    def step(self) -> bool:
        """Write the waiting rows that are due. Return whether there were any."""
        return self._write_due_rows()

    def commit(self) -> int | None:
        """Let the target commit. Rows that it refuses, and those behind them, are durable elsewhere first."""
        next_offset = self._next_offset
        if next_offset is None:
            return None
        added = self._decide(self._flush_in_order(next_offset))
        self._topic.add(added)
        self._writer.commit(next_offset)
        self._next_offset = None
        self._committed = next_offset
        self._held_offsets.clear()
        self._skipped = {offset for offset in self._skipped if offset >= next_offset}
        if added:
            self._set_waiting({row.offset: row for row in [*self._waiting.rows, *added]})
        self.uncommitted_rows = 0
        self.uncommitted_bytes = 0
        self._on_commit(next_offset)
        return next_offset

    def close(self) -> None:
        """Close the writers, which discards what is not committed."""
        if self._waiting.rows:
            logger.warning("%d rows of %s wait for their next attempt", len(self._waiting.rows), self._source)
        self._resources.close()

    def _first_waiting_offset(self) -> int | None:
        """Return where the rows in the waiting topic begin that are not over. None for its beginning."""
        if not self._connector.sink.at_least_once:
            return self._second_writer.next_offset
        offsets = self._admin.committed(self._connector.waiting_group, [self._waiting_place])
        return offsets[self._waiting_place].offset if self._waiting_place in offsets else None

    def _set_waiting(self, rows: Mapping[int, WaitingRow]) -> None:
        self._waiting = RowsByKey(rows)
        self._due_ms = self._waiting.due_ms()
        held_after = self._held_keys.after(self._committed)
        self._held_keys.set(self._waiting.first_offsets())
        self._held_keys.add(held_after)

    def _offer(self, batch: Batch) -> None:
        """Write the rows whose key does not wait, and remember the others."""
        if self._skipped:
            batch = batch.filter(~np.isin(batch.offsets, list(self._skipped)))
        held = self._held_keys.mask(batch)
        if held.any():
            self._held_offsets.update(batch.offsets[held].tolist())
            batch = batch.filter(~held)
        self._skipped.update(self._writer.write(self._rows, batch))

    # --- refused rows of the topic -----------------------------------------------------------------------------------

    def _flush_in_order(self, next_offset: int) -> dict[int, Exception]:
        """Return the rows that the target refuses, when it has taken no row behind one that waits.

        Where it has, all uncommitted rows are written again, without those behind.
        """
        errors = self._writer.flush()
        behind = self._written_behind(errors, next_offset)
        while behind:
            self._held_keys.add(behind)
            self._held_offsets.clear()
            self._writer.discard()
            for batch in read_records_between(self._log, self._source, self._committed, next_offset):
                self._offer(batch)
            errors = self._writer.flush()
            behind = self._written_behind(errors, next_offset)
        return errors

    def _written_behind(self, errors: Mapping[int, Exception], next_offset: int) -> dict[bytes, int]:
        """Return the keys of which the target has taken a row behind one that waits, with the offset of the latter."""
        once = NEVER_CALLED.failed_at(0)
        repeated = {offset for offset, error in errors.items() if self._retry.repeats(error, once)}
        if not repeated or self._connector.sink.at_least_once:
            return {}
        not_written = {*errors, *self._held_offsets, *self._skipped}
        first: dict[bytes, int] = {}
        behind: dict[bytes, int] = {}
        for batch in read_records_between(self._log, self._source, min(repeated), next_offset):
            for offset, key in zip(batch.offsets.tolist(), batch.keys.to_pylist(), strict=True):
                if key is None:
                    continue
                if offset in repeated:
                    first.setdefault(key, offset)
                elif key in first and offset not in not_written:
                    behind[key] = first[key]
        return behind

    def _decide(self, errors: Mapping[int, Exception]) -> list[WaitingRow]:
        """Return the rows that wait from now on, and hand over those that are refused for good."""
        now_ms = self._clock.wall_ms()
        once = NEVER_CALLED.failed_at(now_ms)
        waiting_keys: set[bytes | int] = set()
        waiting_rows: list[WaitingRow] = []
        refused: list[WaitingRow] = []
        for records in read_records_at(self._log, self._source, {*errors, *self._held_offsets}):
            for offset, record in zip(records.offsets.tolist(), records.rows(), strict=True):
                row = WaitingRow(offset, record)
                error = errors.get(offset)
                if error is None or row.order in waiting_keys:
                    waiting_rows.append(row)
                elif self._retry.repeats(error, once):
                    waiting_keys.add(row.order)
                    waiting_rows.append(self._waits(row, error, once))
                else:
                    refused.append(row._replace(attempts=once))
        self._hand_over(refused, errors)
        return waiting_rows

    def _waits(self, row: WaitingRow, error: Exception, attempts: Attempts) -> WaitingRow:
        """Return a row that was refused, and waits for its next attempt."""
        due_ms = attempts.last_ms + self._retry.delay_ms(attempts.calls)
        return row._replace(attempts=attempts, due_ms=due_ms, error=f"{type(error).__name__}: {error}")

    def _hand_over(self, refused: list[WaitingRow], errors: Mapping[int, Exception]) -> None:
        """Hand over the rows that were refused for the last time."""
        if refused:
            attempts = {row.offset: row.attempts for row in refused}
            self._refusals.take(batch_of(self._source, refused), errors, attempts)
            self._refusals.flush()
        self._letters.flush()

    # --- rows that have waited ---------------------------------------------------------------------------------------

    def _write_due_rows(self) -> bool:
        """Write the waiting rows that are due, unless rows of the topic are uncommitted. Return whether any are due.

        Each time all other waiting rows go to the end of the waiting topic, so that one offset says what is over.
        """
        if self.has_uncommitted or self._waiting.last_offset >= self._committed:
            return False
        now_ms = self._clock.wall_ms()
        if now_ms < self._due_ms:
            return False
        begin_ms = self._clock.uptime_ms()
        if begin_ms < self._pause_until_ms:
            return True
        end = self._topic.end()
        attempted = self._attempted(self._waiting.due(now_ms)[: self._connector.sink.commit_rows])
        outcome = self._outcome(attempted, self._clock.wall_ms())
        self._hand_over(outcome.refused, attempted.errors)
        self._topic.add(outcome.waiting)
        self._second_writer.commit(end)
        if self._connector.sink.at_least_once:
            self._admin.commit(self._connector.waiting_group, {self._waiting_place: OffsetAndMetadata(end)})
        self._set_waiting({row.offset: row for row in outcome.waiting})
        self._on_pass(end)
        if len(outcome.waiting) > _MANY_ROWS:
            end_ms = self._clock.uptime_ms()
            self._pause_until_ms = end_ms + _PAUSE_SHARE * (end_ms - begin_ms)
        return True

    def _attempted(self, rows: Sequence[WaitingRow]) -> _Attempted:
        """Write waiting rows. Where the target has taken one behind another that waits again, write anew without it."""
        attempted = self._written(rows)
        last = self._last_before_gap(attempted)
        while last:
            self._second_writer.discard()
            attempted = self._written([row for row in attempted.rows if row.offset <= last.get(row.order, row.offset)])
            last = self._last_before_gap(attempted)
        return attempted

    def _written(self, rows: Sequence[WaitingRow]) -> _Attempted:
        if rows:
            self._second_writer.write(self._rows, batch_of(self._source, rows))
        return _Attempted(rows, self._second_writer.flush())

    def _last_before_gap(self, attempted: _Attempted) -> dict[bytes | int, int]:
        """Return the offset of the row that waits again, of each key of which the target has taken a row behind it."""
        if self._connector.sink.at_least_once:
            return {}
        first = {row.order: row.offset for row in self._outcome(attempted, 0).waiting_again}
        return {
            row.order: first[row.order]
            for row in attempted.rows
            if row.order in first and row.offset > first[row.order] and row.offset not in attempted.errors
        }

    def _outcome(self, attempted: _Attempted, now_ms: int) -> _Outcome:
        """Return what becomes of all waiting rows after an attempt at some of them."""
        unsettled = {row.offset: row for row in self._waiting.rows}
        again: dict[bytes | int, WaitingRow] = {}
        refused: list[WaitingRow] = []
        for row in attempted.rows:
            error = attempted.errors.get(row.offset)
            attempts = row.attempts.failed_at(now_ms)
            if error is None:
                del unsettled[row.offset]
            elif row.order not in again and self._retry.repeats(error, attempts):
                again[row.order] = unsettled[row.offset] = self._waits(row, error, attempts)
            elif row.order not in again:
                del unsettled[row.offset]
                refused.append(row._replace(attempts=attempts))
        return _Outcome(list(unsettled.values()), list(again.values()), refused)


class _Attempted(NamedTuple):
    """Rows that were written, and the errors of those that the target has refused, by offset."""

    rows: Sequence[WaitingRow]
    errors: Mapping[int, Exception]


class _Outcome(NamedTuple):
    """All rows that wait from now on; of these, the ones that were refused; and the ones refused for good."""

    waiting: list[WaitingRow]
    waiting_again: list[WaitingRow]
    refused: list[WaitingRow]
