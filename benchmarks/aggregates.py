"""Aggregates whose groups have many members: the cost of a record, the changelog and a restart by their number."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import kstreams as ks
from benchmarks.one_task import ALWAYS, NEVER, Sink
from kstreams.config import Config
from kstreams.kernel.batch import Batch, Row, TopicPartition
from kstreams.kernel.clock import ManualClock
from kstreams.processor.context.application import Application
from kstreams.processor.task.task import Task, TaskResources
from kstreams.record import Change
from kstreams.serdes import ChangeSerde, serde_of
from kstreams.state import open_task_state

SIZES = (1_000, 100_000, 1_000_000)
MEASURED = 10_000
PER_COMMIT = 1_000
HOUR = 3_600_000
_BYTES_OF = serde_of(int).serialize


def run() -> dict[str, float]:
    """What a record costs once a group has so many members (µs), what changelogs get (bytes), and a restart (ms)."""
    figures: dict[str, float] = {}
    for name, topology in TOPOLOGIES.items():
        for size in SIZES:
            figures |= {
                f"{name}, {size:,} members: {what}": figure for what, figure in measured(topology, size).items()
            }
    for name, topology in TABLES.items():
        for size in SIZES:
            costs = of_table(topology, size)
            figures |= {f"{name} of a table, {size:,} rows: {what}": cost for what, cost in costs.items()}
    return figures


class OneTask:
    """A task over RocksDB with its commits."""

    def __init__(self, topology: ks.Topology, folder: Path, *, columns: bool) -> None:
        part = topology.sub_topologies[-1]
        (self._topic,) = (topic for source in part.sources for topic in source.topics)
        self.state = open_task_state(part.stores, folder)
        settings = {"application.id": "bench", "columns.min.rows": ALWAYS if columns else NEVER}
        application = Application.of(Config.of(settings), ManualClock())
        self._task = Task(part, 0, application, TaskResources(self.state, Sink()))
        self._offset = 0

    def process(self, rows: Sequence[Row]) -> None:
        """Process rows of the topic that the last sub-topology reads."""
        self._task.process(self._task.stamp(Batch.of_rows(TopicPartition(self._topic, 0), rows, self._offset)))
        self._offset += len(rows)

    def commit(self) -> int:
        """Commit; return the bytes for the changelogs."""
        self._task.flush()
        changes = self.state.changes(0)
        self.state.persist(changes, dict.fromkeys(changes, self._offset))
        return sum(part.keys.nbytes + part.values.nbytes for part in changes.values())


def measured(topology: Callable[[], ks.Topology], size: int) -> dict[str, float]:
    """Fill one group with members, then measure further records, half of which bring new members."""
    with tempfile.TemporaryDirectory() as folder:
        task = OneTask(topology(), Path(folder), columns=True)
        for start in range(0, size, 100_000):
            task.process(_rows(range(start, min(size, start + 100_000))))
        task.commit()
        by_column = _timed(task, size)
        task.state.close()
        begin = time.perf_counter()
        task = OneTask(topology(), Path(folder), columns=False)
        task.process(_rows([size]))
        restart = time.perf_counter() - begin
        by_record = _timed(task, size + MEASURED)
        task.state.close()
    return {
        "µs a record, by record": by_record[0],
        "µs a record, in columns": by_column[0],
        "bytes of changelogs a record": by_record[1],
        "ms to open and process a record": restart * 1000,
    }


def _timed(task: OneTask, first: int) -> tuple[float, float]:
    written = 0
    begin = time.process_time()
    for start in range(0, MEASURED, PER_COMMIT):
        new = range(first + start, first + start + PER_COMMIT // 2)
        task.process(_rows([*new, *range(PER_COMMIT // 2)]))
        written += task.commit()
    return (time.process_time() - begin) / MEASURED * 1e6, written / MEASURED


def _rows(members: Iterable[int]) -> list[Row]:
    return [Row(b"group", _BYTES_OF(member), 1_000, ()) for member in members]


def of_table(topology: Callable[[], ks.Topology], size: int) -> dict[str, float]:
    """CPU microseconds for an update of a table whose rows are all in one group of so many."""
    with tempfile.TemporaryDirectory() as folder:
        task = OneTask(topology(), Path(folder), columns=False)
        for start in range(0, size, 100_000):
            task.process([_change(Change(number, None)) for number in range(start, min(size, start + 100_000))])
        task.commit()
        moved = [Change(size + number, number * 7919 % size) for number in range(min(size, MEASURED))]
        begin = time.process_time()
        written = 0
        for start in range(0, len(moved), PER_COMMIT):
            task.process([_change(change) for change in moved[start : start + PER_COMMIT]])
            written += task.commit()
        took = time.process_time() - begin
        task.state.close()
    return {"µs an update": took / len(moved) * 1e6, "bytes of changelogs an update": written / len(moved)}


def _change(change: Change[int]) -> Row:
    return Row(b"all", ChangeSerde(serde_of(int)).serialize(change), 1_000, ())


def _n_unique() -> ks.Topology:
    return _built(lambda grouped: grouped.aggregate(users=ks.value.n_unique()))


def _n_unique_of_hours() -> ks.Topology:
    hours = ks.TimeWindows(size=HOUR)
    return _built(lambda grouped: grouped.windowed_by(hours).aggregate(users=ks.value.n_unique()))


def _built(aggregate: Callable[[Any], Any]) -> ks.Topology:
    builder = ks.StreamsBuilder()
    aggregate(builder.stream("in", key=str, value=int).group_by_key())
    return builder.build()


def _grouped_rows(aggregate: Callable[[Any], Any]) -> ks.Topology:
    builder = ks.StreamsBuilder()
    aggregate(builder.table("in", key=str, value=int).group_by(lambda _, value: ("all", value), key=str, value=int))
    return builder.build()


def _top_n() -> ks.Topology:
    return _grouped_rows(lambda rows: rows.top_n(3, by=lambda value: value))


def _max_by() -> ks.Topology:
    return _grouped_rows(lambda rows: rows.aggregate(best=ks.value.max_by(ks.value % 1_000_003)))


def _median() -> ks.Topology:
    return _grouped_rows(lambda rows: rows.aggregate(middle=ks.value.median()))


TABLES: dict[str, Callable[[], ks.Topology]] = {"top_n": _top_n, "max_by": _max_by, "median": _median}


def _of_stream(**fields: ks.Expr) -> Callable[[], ks.Topology]:
    return lambda: _built(lambda grouped: grouped.aggregate(**fields))


def _best_of_stream() -> ks.Topology:
    return _built(lambda grouped: grouped.top_n(10, by=lambda value: value))


def _collected() -> ks.Topology:
    """Lists that are emitted once, when their window closes: so no record costs the reading of a list."""
    hours = ks.TimeWindows(size=HOUR, grace=0)
    closed = ks.EmitStrategy.ON_WINDOW_CLOSE
    return _built(lambda grouped: grouped.windowed_by(hours).emit_strategy(closed).aggregate(all=ks.value.collect()))


TOPOLOGIES: dict[str, Callable[[], ks.Topology]] = {
    "n_unique": _n_unique,
    "n_unique by hour": _n_unique_of_hours,
    "first and last": _of_stream(first=ks.value.first(), last=ks.value.last()),
    "top_n": _best_of_stream,
    "median": _of_stream(middle=ks.value.median()),
    "collect": _collected,
}
