"""`LiveStore`: the base of all stores, with column family, changelog records and memory; `StoreWithRetention`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from kstreams.errors import StateError
from kstreams.state.api import Changes, StoreBuilder
from kstreams.state.codecs import KeyCodec, value_codec
from kstreams.state.column_family import ByteRows, ColumnFamily
from kstreams.state.live_budget import LiveBudget
from kstreams.state.rows.entries import SLOT_BYTES, RowWeight
from kstreams.state.rows.scan_order import segment_ms
from kstreams.state.rows.store_measures import ReadCounts

_DEFAULT_PERSISTED_BYTES = 64
_READS_PER_BUDGET_CHECK = 1_000
_ROWS_LOADED_PER_READ = 16  # to load 16 rows takes about as long as to read one row from RocksDB
ROWS_OF_FIRST_READ = 20_000
"""Rows that the first read loads at most. Later reads load the other rows of a larger store."""
SAMPLED_ROWS = 16
"""Live rows that are measured to estimate the memory of all rows."""


class LiveStore:
    """A store that holds rows as Python objects in memory. Each kind of store implements the methods at the end.

    Parameters
    ----------
    builder : StoreBuilder
        Describes the store.
    family : ColumnFamily
        Holds the persisted rows.
    budget : LiveBudget
        Limits the memory of this store and others.
    """

    row_slots = 1
    """Number of dict slots that a row takes."""
    object_bytes = 200
    """Estimated bytes that a row takes in memory in addition to its serialized bytes, until rows are measured."""
    pending_bytes = SLOT_BYTES
    """Additional bytes that a row takes until it is committed."""

    def __init__(self, builder: StoreBuilder, family: ColumnFamily, budget: LiveBudget) -> None:
        self.name = builder.name
        self.builder = builder
        self.family = family
        self.handle: Any = self
        """The object that operators and processors use."""
        self._budget = budget
        self._reads = 0
        self._weight = RowWeight(self.sample, self.row_slots)
        self._estimated_row_bytes = _DEFAULT_PERSISTED_BYTES + self.object_bytes
        self._loaded = not family.durable
        """True once a read has started to load the persisted rows; `_loading` may have more to load."""
        self._loading = _NOTHING_TO_LOAD
        self._rows_to_load = 0
        self._lock = threading.RLock()
        """Held while rows are loaded, read or evicted (see `Entries`)."""
        self.reads = ReadCounts()
        self._access: dict[str, Any] = {"on_read": self.on_read, "lock": self._lock, "reads": self.reads}
        self.observed_ms = family.observed_ms
        """The highest time that was put, from which the retention counts; -1 if there is none."""
        self._changes_observed_ms = family.observed_ms
        """`observed_ms` at the time when `changes` was called last."""

    def changes(self, timestamp_ms: int = 0) -> Changes:
        """Return the rows that were written since the last call, as changelog records."""
        self._changes_observed_ms = self.observed_ms
        return self.take_changes(timestamp_ms)

    def take_popped(self, timestamp_ms: int) -> Iterator[Changes]:
        """Yield the deletions that precede `changes`, in parts: all of them may not fit in memory."""
        return iter(())

    def write(self, changes: Changes | None, offset: int | None) -> None:
        """Persist changes and the changelog offset after them, and drop deleted rows from memory."""
        if changes is not None and len(changes):
            num_bytes = changes.keys.nbytes + changes.values.nbytes
            self._estimated_row_bytes = self.object_bytes + num_bytes // len(changes)
            self._weight.weigh(self.num_live())
        if self.family.durable and changes is not None:
            self.family.write(self.rows(changes), offset, self._changes_observed_ms)
        elif offset is not None:
            self.family.write(_NO_ROWS, offset, self._changes_observed_ms)
        self.written()
        self.make_room()

    def restore(self, records: Changes, offset: int) -> None:
        """Apply changelog records, in order; `offset` is the offset of the record after them."""
        self.refuse_when_pending()
        changes = self.builder.kind.current_form(records)
        self.apply(changes)
        self._changes_observed_ms = self.observed_ms
        if self.family.durable:
            self.family.restore(self.rows(changes), offset, self.observed_ms)
        else:
            self.family.write(_NO_ROWS, offset, self.observed_ms)

    def observe(self, time_ms: int) -> None:
        """Advance `observed_ms` to a time, unless it is later already."""
        self.observed_ms = max(self.observed_ms, time_ms)

    def refuse_when_pending(self) -> None:
        """Raise a StateError if there are uncommitted changes: they could contradict the restored rows."""
        if self.num_pending():
            raise StateError(
                f"store {self.name!r} holds uncommitted changes: commit or reopen it before it is restored"
            )

    def num_bytes_pending(self) -> int:
        """Return the estimated bytes that uncommitted changes take in memory."""
        count = self.num_pending()
        return count * (self._row_bytes(count) + self.pending_bytes) if count else 0

    def num_bytes_live(self) -> int:
        """Return the estimated bytes that live rows take in memory."""
        count = self.num_live()
        return count * self._row_bytes(count)

    def _row_bytes(self, count: int) -> int:
        """Return the estimated bytes that one of `count` rows takes in memory."""
        return self._weight.of(count) or self._estimated_row_bytes

    def make_room(self) -> None:
        """Evict persisted rows from memory if all stores together exceed the budget."""
        count = self.num_live()
        row_bytes = self._row_bytes(count)
        excess = self._budget.excess(id(self), count * row_bytes)
        if excess and self.family.durable and self.evict(excess // row_bytes + 1):
            self._loading = _NOTHING_TO_LOAD  # the evicted rows may lie before the rows that it would load next
            self._budget.excess(id(self), self.num_live() * row_bytes)

    def ready(self) -> None:
        """Load persisted rows if this is the first read."""
        if not self._loaded:
            self.on_read()

    def on_read(self, rows: int = 1) -> None:
        """Prepare a read of so many persisted rows: if all rows of the store fit in memory, load a part of them."""
        with self._lock:
            if not self._loaded:
                self._loading = self.load(self._budget.loads_whole and self._fits_in_budget())
                self._rows_to_load = ROWS_OF_FIRST_READ
            self._continue_loading(rows * _ROWS_LOADED_PER_READ)
            self._loaded = True
            self._reads += 1
            if self._reads % _READS_PER_BUDGET_CHECK == 0:
                self.make_room()

    def _fits_in_budget(self) -> bool:
        self._estimated_row_bytes = self.object_bytes + self._sampled_bytes()
        return self._budget.may_load(id(self), self.family.estimated_rows() * self._estimated_row_bytes)

    def _continue_loading(self, rows: int) -> None:
        """Load more rows: `rows` in addition to those that earlier reads had to load."""
        self._rows_to_load = min(self._rows_to_load + rows, ROWS_OF_FIRST_READ)
        try:
            while self._rows_to_load > 0 and (loaded := next(self._loading, None)) is not None:
                self._rows_to_load -= loaded
        except BaseException:
            self.reload()
            raise

    def _sampled_bytes(self) -> int:
        """Return the average size of the first persisted rows, in bytes."""
        chunk = next(iter(self.family.chunks(b"", None)))
        size = sum(map(len, chunk.keys)) + sum(map(len, chunk.values))
        return size // len(chunk.keys) if chunk.keys else _DEFAULT_PERSISTED_BYTES

    def reload(self) -> None:
        """Load persisted rows again at the next read, because they were changed directly."""
        self._loaded = not self.family.durable
        self._loading = _NOTHING_TO_LOAD

    def close(self) -> None:
        """Release this store's share of the memory budget."""
        self._budget.forget(id(self))

    def rows(self, changes: Changes) -> ByteRows:
        """Return the rows to persist for changelog records."""
        return ByteRows(changes.keys, changes.values)

    def take_changes(self, timestamp_ms: int) -> Changes:
        """Implement `changes` for this kind of store."""
        raise NotImplementedError

    def written(self) -> None:
        """Note that the changes which `take_changes` returned are persisted."""
        raise NotImplementedError

    def apply(self, changes: Changes) -> None:
        """Apply changelog records. If rows are persisted, only drop the live objects that may be out of date."""
        raise NotImplementedError

    def load(self, everything: bool) -> Iterator[int]:
        """Load all persisted rows, or only note which rows there are. Called once, before they are first read.

        Each step of the iterator loads some rows and yields their number. The store reads by key until the last step.
        """
        raise NotImplementedError

    def dump(self) -> Changes:
        """Return all rows as changelog records."""
        raise NotImplementedError

    def num_pending(self) -> int:
        """Return the number of uncommitted changes."""
        raise NotImplementedError

    def sample(self) -> list[tuple[object, ...]]:
        """Return, for up to `SAMPLED_ROWS` live rows, the objects that are in memory for the row."""
        return []

    def num_live(self) -> int:
        """Return the number of rows in memory."""
        raise NotImplementedError

    def evict(self, count: int) -> int:
        """Evict about `count` persisted rows from memory and return their number. Some kinds never evict."""
        return 0


_NOTHING_TO_LOAD: Iterator[int] = iter(())
_NO_ROWS = ByteRows(pa.nulls(0, pa.binary()), pa.nulls(0, pa.binary()))


class StoreWithRetention(LiveStore):
    """A store whose rows expire once their time is at or before (greatest time put - retention).

    Reads no longer return a row that has expired. It is deleted with its segment, as in Kafka Streams over RocksDB;
    a store in memory without segments deletes it at once.
    """

    def __init__(self, builder: StoreBuilder, family: ColumnFamily, budget: LiveBudget) -> None:
        super().__init__(builder, family, budget)
        if builder.retention_ms is None:
            raise StateError(f"the store {builder.name!r} has no retention_ms: give the time for which it keeps rows")
        self._retention_ms = builder.retention_ms
        self._segment_ms = segment_ms(builder)
        self._keys = KeyCodec(builder.name, builder.key)
        self._values = value_codec(builder)
        self._swept_ms = max(-1, self._deleted_ms())
        """The last deletion on disk covered, or could have covered, rows up to this time."""

    def _expired_ms(self) -> int:
        """Return the time at or before which rows have expired."""
        return self.observed_ms - self._retention_ms

    def _deleted_ms(self) -> int:
        """Return the time at or before which rows are deleted, with their segments."""
        return self._deleted_ms_at(self.observed_ms)

    def _deleted_ms_at(self, observed_ms: int) -> int:
        expired_ms = observed_ms - self._retention_ms
        return expired_ms if self._segment_ms is None else expired_ms // self._segment_ms * self._segment_ms - 1

    def _hidden_ms(self) -> int:
        """Return the time at or before which `all`, and `get` of windows, hide rows.

        A caching store shows expired rows until they are deleted: the cache of Kafka Streams still holds them.
        """
        return self._deleted_ms() if self.builder.caches else self._expired_ms()
