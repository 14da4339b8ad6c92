"""Custom stores: objects of the user that log their changes, and are restored from the log."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pyarrow as pa

from kstreams.errors import StateError
from kstreams.state.api import Changes, StoreBuilder
from kstreams.state.column_family import ByteRows, ColumnFamily
from kstreams.state.kinds.live_store import SAMPLED_ROWS, LiveStore
from kstreams.state.live_budget import LiveBudget
from kstreams.state.rows.rows_in_order import RowsInOrder


class LiveCustomStore(LiveStore):
    """The log of a custom store: the last record of each key, from which the user's object is restored.

    The log is in memory. After a restart it is restored from the changelog or, if the store is persistent, from its
    rows on disk in the order in which they were written.
    """

    def __init__(self, builder: StoreBuilder, family: ColumnFamily, budget: LiveBudget) -> None:
        super().__init__(builder, family, budget)
        if builder.make is None:
            raise StateError(
                f"the custom store {builder.name!r} has no function that makes it: declare the store with Stores.custom"
            )
        self._records: dict[bytes, tuple[bytes | None, int]] = {}
        self._changed: dict[bytes, None] = {}
        self._unwritten: dict[bytes, None] = {}
        self.handle = builder.make(self.log)
        self._ordered_rows = RowsInOrder(family)
        if family.durable:
            self.apply(self._ordered_rows.read())

    def log(self, key: bytes, value: bytes | None, timestamp: int = 0) -> None:
        """Log the new value of a key; None logs its deletion."""
        if not isinstance(key, bytes) or not isinstance(value, bytes | None):
            raise StateError(
                f"store {self.name!r} logs bytes, not a {type(key).__name__} with a {type(value).__name__}: "
                "log a key as bytes, and a value as bytes or None for a deletion"
            )
        self._records[key] = value, timestamp
        self._changed[key] = None

    def take_changes(self, timestamp_ms: int) -> Changes:
        changed, self._changed = self._changed, {}
        self._unwritten |= changed
        return self._changes_of(list(changed))

    def _changes_of(self, keys: list[bytes]) -> Changes:
        records = [self._records[key] for key in keys]
        values = [value for value, _ in records]
        times = [timestamp for _, timestamp in records]
        return Changes(pa.array(keys, pa.binary()), pa.array(values, pa.binary()), pa.array(times, pa.int64()))

    def rows(self, changes: Changes) -> ByteRows:
        return self._ordered_rows.numbered(changes)

    def written(self) -> None:
        for key in self._unwritten.keys() - self._changed.keys():
            if self._records[key][0] is None:
                del self._records[key]
        self._unwritten.clear()

    def apply(self, changes: Changes) -> None:
        columns = (column.to_pylist() for column in changes)
        for key, value, timestamp in zip(*columns, strict=True):
            self._records[key] = value, timestamp
            self.handle.restore(key, value, timestamp)
        self._records = {key: record for key, record in self._records.items() if record[0] is not None}

    def dump(self) -> Changes:
        return self._changes_of([key for key, (value, _) in self._records.items() if value is not None])

    def num_pending(self) -> int:
        return len(self._changed) + len(self._unwritten)

    def num_live(self) -> int:
        return len(self._records)

    def sample(self) -> list[tuple[object, ...]]:
        return list(islice(reversed(self._records.items()), SAMPLED_ROWS))

    def close(self) -> None:
        super().close()
        close: Any = getattr(self.handle, "close", None)
        if close is not None:
            close()
