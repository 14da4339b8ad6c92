"""Stores of the user's own making: objects that write down what must not be lost, and are filled from that again."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pyarrow as pa

from kstreams.errors import StateError
from kstreams.state.api import Changes, StoreBuilder
from kstreams.state.column_family import ByteRows, ColumnFamily
from kstreams.state.kinds.live_store import SAMPLE, LiveStore
from kstreams.state.live_budget import LiveBudget
from kstreams.state.rows.rows_in_order import RowsInOrder


class LiveCustomStore(LiveStore):
    """The log of a custom store: the last record of each key, from which the user's object can be made again.

    It lives in memory, so that it is restored from its changelog after every restart; where it is persisted, from its
    rows in the order in which they were written.
    """

    def __init__(self, builder: StoreBuilder, family: ColumnFamily, budget: LiveBudget) -> None:
        super().__init__(builder, family, budget)
        if builder.make is None:
            raise StateError(f"store {builder.name!r} is of your own making: describe it with Stores.custom")
        self._records: dict[bytes, tuple[bytes | None, int]] = {}
        self._changed: dict[bytes, None] = {}
        self._handed: dict[bytes, None] = {}
        self.handle = builder.make(self.log)
        self._in_turn = RowsInOrder(family)
        if family.durable:
            self.apply(self._in_turn.read())

    def log(self, key: bytes, value: bytes | None, timestamp: int = 0) -> None:
        """Write down that a key has this value from now on; None that it has none."""
        if not isinstance(key, bytes) or not isinstance(value, bytes | None):
            raise StateError(f"store {self.name!r} logs bytes: a key, and a value or None for a deletion")
        self._records[key] = value, timestamp
        self._changed[key] = None

    def take_changes(self, timestamp_ms: int) -> Changes:
        changed, self._changed = self._changed, {}
        self._handed |= changed
        return self._of(list(changed))

    def _of(self, keys: list[bytes]) -> Changes:
        records = [self._records[key] for key in keys]
        values = [value for value, _ in records]
        times = [timestamp for _, timestamp in records]
        return Changes(pa.array(keys, pa.binary()), pa.array(values, pa.binary()), pa.array(times, pa.int64()))

    def rows(self, changes: Changes) -> ByteRows:
        return self._in_turn.numbered(changes)

    def written(self) -> None:
        for key in self._handed.keys() - self._changed.keys():
            if self._records[key][0] is None:
                del self._records[key]
        self._handed.clear()

    def apply(self, changes: Changes) -> None:
        columns = (column.to_pylist() for column in changes)
        for key, value, timestamp in zip(*columns, strict=True):
            self._records[key] = value, timestamp
            self.handle.restore(key, value, timestamp)
        self._records = {key: record for key, record in self._records.items() if record[0] is not None}

    def dump(self) -> Changes:
        return self._of([key for key, (value, _) in self._records.items() if value is not None])

    def num_pending(self) -> int:
        return len(self._changed) + len(self._handed)

    def num_live(self) -> int:
        return len(self._records)

    def sample(self) -> list[tuple[Any, ...]]:
        return list(islice(reversed(self._records.items()), SAMPLE))

    def close(self) -> None:
        super().close()
        close: Any = getattr(self.handle, "close", None)
        if close is not None:
            close()
