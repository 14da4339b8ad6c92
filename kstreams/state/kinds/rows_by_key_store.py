"""`RowsByKeyStore`: a store whose rows are grouped by key. Sessions, joins and sliding windows use it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from kstreams.state.api import Changes, StoreBuilder
from kstreams.state.codecs import ALL_KEYS, KeyRange
from kstreams.state.column_family import ByteRows, ColumnFamily
from kstreams.state.kinds.live_store import SAMPLED_ROWS, StoreWithRetention
from kstreams.state.live_budget import LiveBudget
from kstreams.state.rows.byte_columns import cut, integers, join
from kstreams.state.rows.entries import SLOT_BYTES
from kstreams.state.rows.rows_by_key import RowPosition, RowsByKey

SAMPLED_ROWS_OF_KEY = 100
"""Live rows of one key that are measured at most, so that a commit does not take longer as the rows of a key grow."""


class RowsByKeyStore(StoreWithRetention):
    """Rows by key and position. A position is a time and a second number, whose meaning depends on the kind of store.

    On disk and in the changelog the key of a row is: key, time (8 bytes), second number.
    """

    second: ClassVar[str]
    """The `struct` format of the second number of a position."""
    pending_bytes = 4 * SLOT_BYTES  # a changed row, and its entries in a dict and perhaps a set

    def __init__(self, builder: StoreBuilder, family: ColumnFamily, budget: LiveBudget) -> None:
        super().__init__(builder, family, budget)
        self._groups = RowsByKey(
            self._keys,
            self._values,
            family,
            self.second,
            alive=self._stored_times,
            on_read=self.on_read,
            lock=self._lock,
            reads=self.reads,
        )

    def _observe(self, time_ms: int) -> bool:
        """Advance `observed_ms` to the time of a row to be put; return False if rows of this time are deleted."""
        observed_ms = self.observed_ms
        if time_ms > observed_ms:
            self.observed_ms = time_ms
            return True
        return time_ms > observed_ms - self._retention_ms or time_ms > self._deleted_ms_at(observed_ms)

    def _is_in_range(self, keys: KeyRange) -> Callable[[Any], bool]:
        """Return a predicate: whether a live key lies in a range of serialized keys."""
        if keys == ALL_KEYS:
            return lambda live_key: True
        first, end = keys
        to_bytes = self._keys.to_bytes
        return lambda live_key: first <= to_bytes(live_key) and (end is None or to_bytes(live_key) < end)

    def _stored_times(self) -> tuple[int, int]:
        """Return the first and the last time of rows that are not deleted."""
        return self._deleted_ms() + 1, self.observed_ms

    def _all_rows(self) -> list[tuple[Any, RowPosition, Any]]:
        """Return (key, position, value) of all rows that are not deleted, expired rows too."""
        first_ms, last_ms = self._stored_times()
        return [
            (key, position, value)
            for key in self._groups.every_key()
            for position, value in self._groups[key].rows(first_ms, last_ms)
        ]

    def take_changes(self, timestamp_ms: int) -> Changes:
        return self._records(*self._groups.take_changes(self._deleted_ms()), timestamp_ms)

    def _records(self, keys: list[Any], positions: list[RowPosition], values: list[Any], timestamp_ms: int) -> Changes:
        pack = self._groups.place.pack
        packed = pa.array([pack(*position) for position in positions], pa.binary())
        encoded, timestamps = self._values.encode(values, timestamp_ms)
        if not self.builder.kind.timestamped:
            timestamps = pa.array(self.times_of(keys, positions), pa.int64())
        return Changes(join(self._keys.encode(keys), packed), encoded, timestamps)

    def times_of(self, keys: list[Any], positions: list[RowPosition]) -> list[int]:
        """Return the timestamps of the changelog records of rows."""
        return [time_ms for time_ms, _ in positions]

    def rows(self, changes: Changes) -> ByteRows:
        return ByteRows(changes.keys, self._values.stored(changes.values, changes.timestamps))

    def write(self, changes: Changes | None, offset: int | None) -> None:
        super().write(changes, offset)
        deleted_ms = max(-1, self._deleted_ms())
        sweep_interval_ms = self._retention_ms // 2 + 1
        if deleted_ms // sweep_interval_ms > self._swept_ms // sweep_interval_ms:
            self._sweep(deleted_ms)
        self._swept_ms = deleted_ms

    def _sweep(self, deleted_ms: int) -> None:
        """Delete rows up to a time, in memory and on disk. It is called rarely, because it reads every row on disk."""
        self._groups.drop_until(deleted_ms)
        size = self._groups.place.size
        unpack = self._groups.place.unpack
        deleted_ms = self._deleted_ms_at(self._changes_observed_ms)
        for chunk in self.family.chunks(b"", None):
            expired = [key for key in chunk.keys if unpack(key[-size:])[0] <= deleted_ms]
            if expired:
                rows = ByteRows(pa.array(expired, pa.binary()), pa.nulls(len(expired), pa.binary()))
                self.family.write(rows, None, self._changes_observed_ms)

    def written(self) -> None:
        self._groups.written()

    def apply(self, changes: Changes) -> None:
        size = self._groups.place.size
        times = integers(cut(changes.keys, -size, 8 - size))
        self.observed_ms = max(self.observed_ms, int(np.max(np.asarray(times), initial=-1)))
        if self.family.durable:
            self._groups.forget()
            self.reload()
        else:
            self._load_rows(self.rows(changes))

    def _load_rows(self, rows: ByteRows) -> None:
        size = self._groups.place.size
        unpack = self._groups.place.unpack
        positions = [unpack(data) for data in cut(rows.keys, -size).to_pylist()]
        self._groups.load(self._keys.decode(cut(rows.keys, 0, -size)), positions, self._values.of_stored(rows.values))
        self._groups.drop_until(self._deleted_ms())

    def load(self, everything: bool) -> Iterator[int]:
        if everything:
            rows = [chunk.columns() for chunk in self.family.chunks(b"", None)]
            self._load_rows(ByteRows(*(pa.concat_arrays(columns) for columns in zip(*rows, strict=True))))
            self._groups.complete = True
        return iter(())

    def dump(self) -> Changes:
        # Windows that are emitted when they close may have expired, and must still be in the dump.
        shows_expired = self.builder.caching or self.builder.time_ordered
        hidden_ms = self._deleted_ms() if shows_expired else self._expired_ms()
        rows = [row for row in self._all_rows() if row[1][0] > hidden_ms]
        keys, positions, values = ([row[part] for row in rows] for part in range(3))
        return self._records(keys, positions, values, 0)

    def num_pending(self) -> int:
        return self._groups.num_pending()

    def num_live(self) -> int:
        return max(self._groups.num_rows, len(self._groups))

    def sample(self) -> list[tuple[object, ...]]:
        rows: list[tuple[object, ...]] = []
        for key, group in islice(reversed(self._groups.items()), SAMPLED_ROWS):
            part = group.first(SAMPLED_ROWS_OF_KEY)
            rows += [(key, part), *[()] * (len(part) - 1)]  # the part holds the objects of all its rows
        return rows

    def evict(self, count: int) -> int:
        return self._groups.evict(count)
