"""`RowsByKeyStore`: a store whose rows are grouped by key: sessions, and the windows of joins and sliding windows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from kstreams.state.api import Changes, StoreBuilder
from kstreams.state.codecs import ALL_KEYS, KeyRange
from kstreams.state.column_family import ByteRows, ColumnFamily
from kstreams.state.kinds.live_store import SAMPLE
from kstreams.state.kinds.store_with_retention import StoreWithRetention
from kstreams.state.live_budget import LiveBudget
from kstreams.state.rows.byte_columns import cut, integers, join
from kstreams.state.rows.entries import SLOT_BYTES
from kstreams.state.rows.rows_by_key import RowPosition, RowsByKey


class RowsByKeyStore(StoreWithRetention):
    """Rows by key and place, which is (time, second number).

    On disk and in the changelog a row's key is: key, time (8 bytes), second number.
    """

    second: ClassVar[str]
    pending_bytes = 4 * SLOT_BYTES  # of a change: its row, by which a dict and perhaps a set know it

    def __init__(self, builder: StoreBuilder, family: ColumnFamily, budget: LiveBudget) -> None:
        super().__init__(builder, family, budget)
        self._groups = RowsByKey(
            self._keys,
            self._values,
            family,
            self.second,
            alive=self._times,
            on_read=self.on_read,
            lock=self._lock,
            reads=self.reads,
        )

    def _observe(self, time_ms: int) -> bool:
        """Note the time of a row that is to be put; return False if rows of this time are deleted already."""
        observed_ms = self.observed_ms
        if time_ms > observed_ms:
            self.observed_ms = time_ms
            return True
        return time_ms > observed_ms - self._retention_ms or time_ms > self._deleted_ms_at(observed_ms)

    def _lies_in(self, keys: KeyRange) -> Callable[[Any], bool]:
        """Return whether a key, as it is known in memory, lies in a range of serialized keys."""
        if keys == ALL_KEYS:
            return lambda live_key: True
        first, end = keys
        to_bytes = self._keys.to_bytes
        return lambda live_key: first <= to_bytes(live_key) and (end is None or to_bytes(live_key) < end)

    def _times(self) -> tuple[int, int]:
        """Return the first and the last time that a row may have."""
        return self._deleted_ms() + 1, self.observed_ms

    def _all_rows(self) -> list[tuple[Any, RowPosition, Any]]:
        """Return all rows that are not deleted, expired ones too: key, place, value."""
        times = self._times()
        return [
            (key, place, value) for key in self._groups.every_key() for place, value in self._groups[key].rows(*times)
        ]

    def take_changes(self, timestamp_ms: int) -> Changes:
        return self._records(*self._groups.take_changes(self._deleted_ms()), timestamp_ms)

    def _records(self, keys: list[Any], places: list[RowPosition], values: list[Any], timestamp_ms: int) -> Changes:
        pack = self._groups.place.pack
        packed = pa.array([pack(*place) for place in places], pa.binary())
        encoded, timestamps = self._values.encode(values, timestamp_ms)
        if not self.builder.kind.timestamped:
            timestamps = pa.array(self.times_of(keys, places), pa.int64())
        return Changes(join(self._keys.encode(keys), packed), encoded, timestamps)

    def times_of(self, keys: list[Any], places: list[RowPosition]) -> list[int]:
        """The times of rows in the changelog."""
        return [time for time, _ in places]

    def rows(self, changes: Changes) -> ByteRows:
        return ByteRows(changes.keys, self._values.stored(changes.values, changes.timestamps))

    def write(self, changes: Changes | None, offset: int | None) -> None:
        super().write(changes, offset)
        deleted_ms = max(-1, self._deleted_ms())
        pause_ms = self._retention_ms // 2 + 1
        if deleted_ms // pause_ms > self._swept_ms // pause_ms:
            self._sweep(deleted_ms)
        self._swept_ms = deleted_ms

    def _sweep(self, deleted_ms: int) -> None:
        """Delete rows up to a time, in memory and on disk. It is seldom called, since it reads every row on disk."""
        self._groups.drop_until(deleted_ms)
        size = self._groups.place.size
        unpack = self._groups.place.unpack
        deleted_ms = self._deleted_ms_at(self._handed_ms)
        for chunk in self.family.chunks(b"", None):
            expired = [key for key in chunk.keys if unpack(key[-size:])[0] <= deleted_ms]
            if expired:
                rows = ByteRows(pa.array(expired, pa.binary()), pa.nulls(len(expired), pa.binary()))
                self.family.write(rows, None, self._handed_ms)

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
            self._take(self.rows(changes))

    def _take(self, rows: ByteRows) -> None:
        size = self._groups.place.size
        unpack = self._groups.place.unpack
        places = [unpack(data) for data in cut(rows.keys, -size).to_pylist()]
        self._groups.load(self._keys.decode(cut(rows.keys, 0, -size)), places, self._values.of_stored(rows.values))
        self._groups.drop_until(self._deleted_ms())

    def load(self, everything: bool) -> Iterator[int]:
        if everything:
            rows = [chunk.columns() for chunk in self.family.chunks(b"", None)]
            self._take(ByteRows(*(pa.concat_arrays(columns) for columns in zip(*rows, strict=True))))
            self._groups.complete = True
        return iter(())

    def dump(self) -> Changes:
        # Windows that are emitted on close may have expired, and must still be found.
        shows_expired = self.builder.caching or self.builder.time_ordered
        hidden_ms = self._deleted_ms() if shows_expired else self._expired_ms()
        rows = [row for row in self._all_rows() if row[1][0] > hidden_ms]
        keys, places, values = ([row[part] for row in rows] for part in range(3))
        return self._records(keys, places, values, 0)

    def num_pending(self) -> int:
        return self._groups.num_pending()

    def num_live(self) -> int:
        return max(self._groups.num_rows, len(self._groups))

    def sample(self) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = []
        for key, group in islice(reversed(self._groups.items()), SAMPLE):
            rows += [(key, group), *[()] * (len(group) - 1)]  # the first row of a key stands for all of them
        return rows

    def evict(self, count: int) -> int:
        return self._groups.evict(count)
