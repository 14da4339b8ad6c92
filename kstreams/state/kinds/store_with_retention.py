"""`StoreWithRetention`: the base of stores whose rows expire: windows and sessions."""

from __future__ import annotations

from kstreams.errors import StateError
from kstreams.state.api import StoreBuilder
from kstreams.state.codecs import KeyCodec, value_codec
from kstreams.state.column_family import ColumnFamily
from kstreams.state.kinds.live_store import LiveStore
from kstreams.state.live_budget import LiveBudget
from kstreams.state.rows.scan_order import segment_ms


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
