"""`RowsByKeyStore`: what session stores and join-window stores share: rows by key and place, and their retention."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from kstreams.errors import StateError
from kstreams.state.api import Changes, StoreBuilder
from kstreams.state.codecs import KeyCodec, value_codec
from kstreams.state.column_family import ByteRows, ColumnFamily
from kstreams.state.kinds.live_store import SAMPLE, LiveStore
from kstreams.state.live_budget import LiveBudget
from kstreams.state.rows.byte_columns import cut, integers, join
from kstreams.state.rows.entries import SLOT_BYTES
from kstreams.state.rows.rows_by_key import RowPosition, RowsByKey

_SHORTEST_MS = 60_000


def segment_ms(builder: StoreBuilder) -> int | None:
    """Length of a store's segments in milliseconds; None for a store in memory, which drops each row by itself.

    In memory too, what is emitted on close must still be there when it closes.

    Examples
    --------
    >>> from kstreams.state import Stores
    >>> segment_ms(Stores.session("visits", 3_600_000, key=str, value=int))
    1800000
    """
    if (builder.store == "memory" and not builder.time_ordered) or builder.retention_ms is None:
        return None
    return max(builder.retention_ms // 2, _SHORTEST_MS)


class RowsByKeyStore(LiveStore):
    """Rows by key and place; reads find none whose time is at or before (greatest time put - retention).

    They are gone for `all` too once their segment is over, as in Kafka Streams over RocksDB; in memory, at once. Below
    and in the changelog a row's key is: key, time (8 bytes), second number.
    """

    second: ClassVar[str]
    pending_bytes = 4 * SLOT_BYTES  # of a change: its row, by which a dict and perhaps a set know it

    def __init__(self, builder: StoreBuilder, family: ColumnFamily, budget: LiveBudget) -> None:
        super().__init__(builder, family, budget)
        if builder.retention_ms is None:
            raise StateError(f"store {builder.name!r} needs retention_ms: how long it keeps what it holds")
        self._retention_ms = builder.retention_ms
        self._keys = KeyCodec(builder.name, builder.key)
        self._values = value_codec(builder)
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
        self._segment_ms = segment_ms(builder)
        self._swept_ms = max(-1, self._gone_ms(self.observed_ms))

    def _held(self, value: object) -> Any:
        """A value as it lives in memory."""
        live = self._values.live
        return value if live is None or value is None else live(value)

    def _observe(self, time_ms: int) -> bool:
        """Note a time; False when it is gone already."""
        observed_ms = self.observed_ms
        if time_ms > observed_ms:
            self.observed_ms = time_ms
            return True
        return time_ms > observed_ms - self._retention_ms or time_ms > self._gone_ms(observed_ms)

    def _lies_between(self, low: object, high: object) -> Callable[[Any], bool]:
        """Whether a key, as it is known in memory, lies from `low` to `high`, by its bytes."""
        (first, end) = self._keys.span(low, high)
        to_bytes = self._keys.to_bytes
        return lambda live: first <= to_bytes(live) and (end is None or to_bytes(live) < end)

    def _key(self, key: object) -> Any:
        if key is None:
            raise self._keys.missing()
        live = self._keys.live
        return key if live is None else live(key)

    def _public_key(self, live: object) -> Any:
        public = self._keys.public
        return live if public is None else public(live)

    def _public(self, value: object) -> Any:
        public = self._values.public
        return value if public is None or value is None else public(value)

    def _limit_ms(self) -> int:
        """Rows with this time or an earlier one have expired: nobody finds them any more."""
        return self.observed_ms - self._retention_ms

    def _gone_ms(self, observed_ms: int) -> int:
        """Rows with this time or an earlier one are gone, with their segment."""
        limit_ms = observed_ms - self._retention_ms
        return limit_ms // self._segment_ms * self._segment_ms - 1 if self._segment_ms else limit_ms

    def _times(self) -> tuple[int, int]:
        """The first and the last time that a row may have."""
        return self._gone_ms(self.observed_ms) + 1, self.observed_ms

    def _kept(self) -> list[tuple[Any, RowPosition, Any]]:
        """Everything that is not gone: key, place, value."""
        times = self._times()
        return [
            (key, place, value) for key in self._groups.every_key() for place, value in self._groups[key].rows(*times)
        ]

    def take_changes(self, timestamp_ms: int) -> Changes:
        return self._records(*self._groups.take_changes(self._gone_ms(self.observed_ms)), timestamp_ms)

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
        gone_ms = max(-1, self._gone_ms(self.observed_ms))
        pause_ms = self._retention_ms // 2 + 1
        if gone_ms // pause_ms > self._swept_ms // pause_ms:
            self._sweep(gone_ms)
        self._swept_ms = gone_ms

    def _sweep(self, gone_ms: int) -> None:
        """Remove expired rows, in memory and on disk; seldom, since on disk every row is read."""
        self._groups.drop_until(gone_ms)
        size = self._groups.place.size
        unpack = self._groups.place.unpack
        gone_ms = self._gone_ms(self._handed_ms)
        for chunk in self.family.chunks(b"", None):
            expired = [key for key in chunk.keys if unpack(key[-size:])[0] <= gone_ms]
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
        self._groups.drop_until(self._gone_ms(self.observed_ms))

    def load(self, everything: bool) -> Iterator[int]:
        if everything:
            rows = [chunk.columns() for chunk in self.family.chunks(b"", None)]
            self._take(ByteRows(*(pa.concat_arrays(columns) for columns in zip(*rows, strict=True))))
            self._groups.complete = True
        return iter(())

    def dump(self) -> Changes:
        shows_expired = self.builder.caching or self.builder.time_ordered  # what closes must still be found
        hidden_ms = self._gone_ms(self.observed_ms) if shows_expired else self._limit_ms()
        rows = [row for row in self._kept() if row[1][0] > hidden_ms]
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
