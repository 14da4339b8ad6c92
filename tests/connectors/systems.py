"""Two small systems outside of topics: numbered orders as a source, and a SQLite database as a sink."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pyarrow as pa

from kstreams.connectors import RefusedRow, Sink, SinkBatch, SinkTask, SinkWriter, Source, SourceBatch, SourceReader
from kstreams.errors import ConnectorUnavailableError, FencedError
from kstreams.testing.connectors import Order, order_batch, order_of


class Numbered(Source):
    """Orders with the ids 0, 1, 2 and so on, `count` in each split."""

    def __init__(self, count: int, splits: Sequence[str] = ("a", "b"), *, batch: int = 1_000, tasks: int = 2) -> None:
        super().__init__(key=int, value=Order, tasks=tasks)
        self.count = count
        self.names = splits
        self.batch = batch

    def splits(self) -> Sequence[str]:
        return self.names

    def open(self, split: str, position: int | None) -> SourceReader:
        return NumberedReader(self, self.names.index(split) * self.count, position or 0)


class NumberedReader:
    def __init__(self, source: Numbered, first: int, position: int) -> None:
        self._source = source
        self._first = first
        self._position = position

    def read(self) -> SourceBatch | None:
        begin = self._position
        self._position = end = min(begin + self._source.batch, self._source.count)
        if begin == end:
            return None
        orders = order_batch(range(self._first + begin, self._first + end))
        return SourceBatch(orders.values, end, orders.keys, orders.timestamps)

    def committed(self, position: int) -> None:
        pass

    def close(self) -> None:
        pass


class Finite(Numbered):
    """Orders in splits that end. `reads` counts how often they are read."""

    is_finished_in_turn = True

    def __init__(self, count: int, splits: Sequence[str]) -> None:
        super().__init__(count, splits)
        self.reads = 0

    def open(self, split: str, position: int | None) -> SourceReader:
        return FiniteReader(self, super().open(split, position))


class FiniteReader:
    def __init__(self, source: Finite, rows: SourceReader) -> None:
        self._source = source
        self._rows = rows
        self.committed = rows.committed
        self.close = rows.close

    def read(self) -> SourceBatch:
        self._source.reads += 1
        batch = self._rows.read()
        return batch or SourceBatch(pa.nulls(0), self._source.count, is_end=True)


class Database(Sink):
    """A table `orders` in a SQLite file. It refuses the names in `refused`, and is away while a file `away` exists."""

    def __init__(self, path: Path, refused: Sequence[str] = ()) -> None:
        self.path = path
        self.refused = refused

    def open(self, task: SinkTask) -> SinkWriter:
        return DatabaseWriter(self, task)


class DatabaseWriter:
    def __init__(self, sink: Database, task: SinkTask) -> None:
        self._sink = sink
        self._task = task.id
        self._require_target()
        self._database = sqlite3.connect(sink.path, timeout=60)
        with self._database:
            self._database.execute("CREATE TABLE IF NOT EXISTS offsets (task TEXT PRIMARY KEY, next INTEGER)")
            self._database.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER, name TEXT, amount REAL)")
        self._offset: int | None = None
        self._rows: list[tuple[int, dict[str, object]]] = []

    def next_offset(self) -> int | None:
        row = self._database.execute("SELECT next FROM offsets WHERE task = ?", [self._task]).fetchone()
        self._offset = None if row is None else row[0]
        return self._offset

    def write(self, batch: SinkBatch) -> None:
        self._require_target()
        self._rows += zip(batch.offsets.tolist(), batch.values.to_pylist(), strict=True)

    def flush(self) -> list[RefusedRow]:
        refused = [
            RefusedRow(offset, ValueError(f"{row['name']} is not wanted"))
            for offset, row in self._rows
            if row["name"] in self._sink.refused
        ]
        self._rows = [(offset, row) for offset, row in self._rows if row["name"] not in self._sink.refused]
        return refused

    def commit(self, next_offset: int) -> None:
        self._require_target()
        with self._database:
            self._database.execute("BEGIN IMMEDIATE")
            row = self._database.execute("SELECT next FROM offsets WHERE task = ?", [self._task]).fetchone()
            if (None if row is None else row[0]) != self._offset:
                raise FencedError(f"another writer of {self._task} has committed")
            rows = [(row["id"], row["name"], row["amount"]) for _, row in self._rows]
            self._database.executemany("INSERT INTO orders VALUES (?, ?, ?)", rows)
            self._database.execute("INSERT OR REPLACE INTO offsets VALUES (?, ?)", [self._task, next_offset])
        self._offset = next_offset
        self._rows = []

    def close(self) -> None:
        self._database.close()

    def _require_target(self) -> None:
        if (self._sink.path.parent / "away").exists():
            raise ConnectorUnavailableError(f"{self._sink.path} is away")


def orders_in(path: Path) -> list[Order]:
    """Return the orders in a database, by id."""
    if not path.exists():
        return []
    with closing(sqlite3.connect(path, timeout=60)) as database:
        if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'orders'").fetchall():
            return []
        return [Order(*row) for row in database.execute("SELECT id, name, amount FROM orders ORDER BY id, name")]


def orders(count: int) -> list[Order]:
    """Return the orders 0 to `count`."""
    return [order_of(number) for number in range(count)]
