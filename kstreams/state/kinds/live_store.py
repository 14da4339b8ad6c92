"""`LiveStore`: what every store has in common: its name, its column family, and its changelog records."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from kstreams.errors import StateError
from kstreams.state.api import Changes, StoreBuilder
from kstreams.state.column_family import ByteRows, ColumnFamily
from kstreams.state.live_budget import LiveBudget
from kstreams.state.rows.entries import SLOT_BYTES, RowWeight
from kstreams.state.rows.store_measures import ReadCounts

_FIRST_GUESS = 64
_READS_PER_LOOK = 1_000
_LOADED_PER_READ = 16  # rows: they take about as long as reading the one from RocksDB
AT_ONCE = 20_000
"""So many rows are loaded by the first read; the others of a larger store follow as more is read."""
SAMPLE = 16
"""Of how many rows the weight of all is told."""


class LiveStore:
    """A store of live objects; the kinds fill in the methods at the end.

    Parameters
    ----------
    builder : StoreBuilder
        What the store is to be.
    family : ColumnFamily
        The persisted bytes.
    budget : LiveBudget
        The memory it shares with other stores.
    """

    row_slots = 1
    """How many entries of dicts a row has."""
    object_bytes = 200
    """A guess at what a row takes in memory beside the bytes it stands for, until it is weighed."""
    pending_bytes = SLOT_BYTES
    """What a row takes in addition until it is committed."""

    def __init__(self, builder: StoreBuilder, family: ColumnFamily, budget: LiveBudget) -> None:
        self.name = builder.name
        self.builder = builder
        self.family = family
        self.handle: Any = self
        """What operators and processors are given."""
        self._budget = budget
        self._reads = 0
        self._weight = RowWeight(self.sample, self.row_slots)
        self._least_row_bytes = _FIRST_GUESS + self.object_bytes
        self._loaded = not family.durable  # as far as reads need it: `_parts` loads more
        self._parts = _NO_PARTS
        self._rows_due = 0
        self._lock = threading.RLock()
        """Held while live objects are loaded, read or evicted (see `Entries`)."""
        self.reads = ReadCounts()
        self._access: dict[str, Any] = {"on_read": self.on_read, "lock": self._lock, "reads": self.reads}
        self.observed_ms = self._handed_ms = family.observed_ms
        """The highest time the store has seen: what its retention counts from. -1 at first, and where there is none."""

    def changes(self, timestamp_ms: int = 0) -> Changes:
        """The entries written since the last call, as changelog records."""
        self._handed_ms = self.observed_ms
        return self.take_changes(timestamp_ms)

    def take_popped(self, timestamp_ms: int) -> Iterator[Changes]:
        """Deletions that come before `changes`, in parts: too many at once may be due to be held in memory."""
        return iter(())

    def write(self, changes: Changes | None, offset: int | None) -> None:
        """Persist changes and the changelog offset they lead to; what they deleted is forgotten."""
        if changes is not None and len(changes):
            self._least_row_bytes = self.object_bytes + (changes.keys.nbytes + changes.values.nbytes) // len(changes)
            self._weight.weigh(self.num_live())
        if self.family.durable and changes is not None:
            self.family.write(self.rows(changes), offset, self._handed_ms)
        elif offset is not None:
            self.family.write(_NO_ROWS, offset, self._handed_ms)
        self.written()
        self.make_room()

    def restore(self, records: Changes, offset: int) -> None:
        """Apply changelog records, in order; `offset` is that of the record after them."""
        self.refuse_when_pending()
        changes = self.builder.kind.current_form(records)
        self.apply(changes)
        self._handed_ms = self.observed_ms
        if self.family.durable:
            self.family.restore(self.rows(changes), offset, self.observed_ms)
        else:
            self.family.write(_NO_ROWS, offset, self.observed_ms)

    def observe(self, time_ms: int) -> None:
        """Note a time that the store has seen."""
        self.observed_ms = max(self.observed_ms, time_ms)

    def refuse_when_pending(self) -> None:
        """Raise when uncommitted changes could contradict what is restored."""
        if self.num_pending():
            raise StateError(
                f"store {self.name!r} holds uncommitted changes: commit or reopen it before it is restored"
            )

    def num_bytes_pending(self) -> int:
        """Roughly what the uncommitted changes take in memory."""
        count = self.num_pending()
        return count * (self._row_bytes(count) + self.pending_bytes) if count else 0

    def num_bytes_live(self) -> int:
        """Roughly what the live entries take in memory."""
        count = self.num_live()
        return count * self._row_bytes(count)

    def _row_bytes(self, count: int) -> int:
        """What a row takes in memory when there are `count` of them."""
        return self._weight.of(count) or self._least_row_bytes

    def make_room(self) -> None:
        """Evict persisted rows when the stores together take more memory than they may."""
        count = self.num_live()
        row_bytes = self._row_bytes(count)
        excess = self._budget.excess(id(self), count * row_bytes)
        if excess and self.family.durable and self.evict(excess // row_bytes + 1):
            self._parts = _NO_PARTS  # what was evicted may lie before them
            self._budget.excess(id(self), self.num_live() * row_bytes)

    def ready(self) -> None:
        """Load the persisted rows when nothing was read yet."""
        if not self._loaded:
            self.on_read()

    def on_read(self, rows: int = 1) -> None:
        """Called before so many persisted rows are read: if all of them fit, they are loaded, a part at a time."""
        with self._lock:
            if not self._loaded:
                self._parts = self.load(self._budget.loads_whole and self._fits())
                self._rows_due = AT_ONCE
            self._load_parts(rows * _LOADED_PER_READ)
            self._loaded = True
            self._reads += 1
            if self._reads % _READS_PER_LOOK == 0:
                self.make_room()

    def _fits(self) -> bool:
        self._least_row_bytes = self.object_bytes + self._sampled_bytes()
        return self._budget.may_load(id(self), self.family.estimated_rows() * self._least_row_bytes)

    def _load_parts(self, rows: int) -> None:
        """Load on until as many rows are loaded as the reads so far are worth."""
        self._rows_due = min(self._rows_due + rows, AT_ONCE)
        try:
            while self._rows_due > 0 and (loaded := next(self._parts, None)) is not None:
                self._rows_due -= loaded
        except BaseException:
            self.reload()
            raise

    def _sampled_bytes(self) -> int:
        """Bytes of a row, by the first persisted ones."""
        first = next(iter(self.family.chunks(b"", None)))
        size = sum(map(len, first.keys)) + sum(map(len, first.values))
        return size // len(first.keys) if first.keys else _FIRST_GUESS

    def reload(self) -> None:
        """The persisted rows were changed from outside: live objects are out of date."""
        self._loaded = not self.family.durable
        self._parts = _NO_PARTS

    def close(self) -> None:
        """Give the share of the memory back."""
        self._budget.forget(id(self))

    def rows(self, changes: Changes) -> ByteRows:
        """The rows to persist for changelog records."""
        return ByteRows(changes.keys, changes.values)

    def take_changes(self, timestamp_ms: int) -> Changes:
        """See `changes`."""
        raise NotImplementedError

    def written(self) -> None:
        """The changes that were handed out are persisted."""
        raise NotImplementedError

    def apply(self, changes: Changes) -> None:
        """Apply changelog records; a store with persisted rows only drops the live objects they may contradict."""
        raise NotImplementedError

    def load(self, everything: bool) -> Iterator[int]:
        """Called once, before the first read of persisted rows: load all of them, or note what is there.

        Each step of what it gives loads some more rows and says how many; until the last the store reads by key.
        """
        raise NotImplementedError

    def dump(self) -> Changes:
        """Everything it holds, as changelog records."""
        raise NotImplementedError

    def num_pending(self) -> int:
        """How many changes are not committed."""
        raise NotImplementedError

    def sample(self) -> list[tuple[Any, ...]]:
        """Up to `SAMPLE` live rows: for each, the objects that are held for it."""
        return []

    def num_live(self) -> int:
        """How many entries are held as live objects."""
        raise NotImplementedError

    def evict(self, count: int) -> int:
        """Evict about `count` persisted entries from memory; returns how many. Not every kind can."""
        return 0


_NO_PARTS: Iterator[int] = iter(())
_NO_ROWS = ByteRows(pa.nulls(0, pa.binary()), pa.nulls(0, pa.binary()))
