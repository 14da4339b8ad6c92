"""`open_task_state`: the stores of one task, opened together and committed together.

If the values of a store have headers, these are the headers of the records in its changelog, as in Kafka Streams.
`Changes` have them beside the value, in its bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kstreams.errors import StateError
from kstreams.kernel.batch import Batch, TopicPartition, headers_column
from kstreams.state.api import Changes, StoreBuilder, TaskState
from kstreams.state.column_family import ColumnFamily, MemoryColumnFamily, Statistic
from kstreams.state.committed import CommittedViews
from kstreams.state.kinds.live_store import LiveStore
from kstreams.state.kinds.measured_store import MeasuredStore
from kstreams.state.live_budget import LiveBudget, StateLimits
from kstreams.state.rows.byte_columns import cut, integers, last_of_each
from kstreams.state.rows.scan_order import segment_ms
from kstreams.state.rows.store_measures import OperationTime, ReadCounts, StoreOperation
from kstreams.state.values_with_headers import joined, parted


def as_records(builder: StoreBuilder, source: TopicPartition, changes: Changes) -> Batch:
    """Return changes of a store as records for its changelog."""
    offsets = np.arange(len(changes), dtype=np.int64)
    if not builder.kind.headers:
        return Batch(source, offsets, *changes)
    values, headers = parted(changes.values)
    return Batch(source, offsets, changes.keys, values, changes.timestamps, headers_column(headers))


def as_changes(builder: StoreBuilder, batch: Batch) -> Changes:
    """Return records of a store's changelog as changes.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from kstreams.state import Stores
    >>> builder = Stores.timestamped_key_value_with_headers("last", key=str, value=str)
    >>> rows = joined(pa.array([b"v"]), [(("trace", b"7"),)])
    >>> changes = Changes(pa.array([b"a"]), rows, pa.array([5]))
    >>> records = as_records(builder, TopicPartition("changelog", 0), changes)
    >>> records.values.to_pylist(), records.header_rows()
    ([b'v'], [(('trace', b'7'),)])
    >>> as_changes(builder, records) == changes
    True
    """
    if not builder.kind.headers:
        return Changes(batch.keys, batch.values, batch.timestamps)
    return Changes(batch.keys, joined(batch.values, batch.header_rows()), batch.timestamps)


MOST_BYTES = 2**31 - 1
_TIME_BYTES = 8


def merged(builder: StoreBuilder, parts: Sequence[Changes], most_bytes: int = MOST_BYTES) -> Changes:
    """Return the last record of every key, in the order of writing, without deletions and expired records.

    Parameters
    ----------
    builder : StoreBuilder
    parts : sequence of Changes
        All records of the store, oldest first; the first part may be a snapshot.
    most_bytes : int
        The greatest size of all keys, and of all values.

    Raises
    ------
    StateError
        If the records are larger: a column of Arrow has a limited size.

    Examples
    --------
    >>> from kstreams.state import Stores
    >>> def records(keys, values):
    ...     return Changes(pa.array(keys), pa.array(values, pa.binary()), pa.array([0] * len(keys)))
    >>> parts = [records([b"a", b"b", b"c"], [b"1", b"1", b"1"]), records([b"c", b"a"], [None, b"2"])]
    >>> merged_parts = merged(Stores.key_value("totals", key=str, value=int), parts)
    >>> list(zip(merged_parts.keys.to_pylist(), merged_parts.values.to_pylist()))
    [(b'b', b'1'), (b'a', b'2')]
    """
    for column in ([part.keys for part in parts], [part.values for part in parts]):
        if (size := sum(array.nbytes for array in column)) > most_bytes:
            raise StateError(
                f"The store {builder.name!r} has {size:,} bytes of records in one task; at most {most_bytes:,} are "
                "merged. Give the topics more partitions, so that each task holds less."
            )
    current = map(builder.kind.current_form, parts)
    together = Changes(*(pa.concat_arrays(columns) for columns in zip(*current, strict=True)))
    last = _taken(together, np.sort(np.asarray(last_of_each(together.keys))))
    return _filtered(last, pc.and_(last.values.is_valid(), _alive(builder, together.keys, last.keys)))


def _alive(builder: StoreBuilder, all_keys: pa.Array, keys: pa.Array) -> pa.Array | pa.Scalar:
    """Return a mask of the rows that have not expired at the latest time of all rows."""
    begin = builder.kind.time_in_key
    if begin is None or builder.retention_ms is None or len(keys) == 0:
        return pa.scalar(True)
    stop = begin + _TIME_BYTES
    newest_ms = int(np.max(np.asarray(integers(cut(all_keys, begin, stop)))))
    kept_ms = builder.retention_ms + (segment_ms(builder) or 0)
    return pc.greater(integers(cut(keys, begin, stop)), newest_ms - kept_ms)


def _taken(rows: Changes, places: np.typing.NDArray[np.int64]) -> Changes:
    indices = pa.array(places)
    return Changes(*(column.take(indices) for column in rows))


def _filtered(rows: Changes, mask: pa.Array) -> Changes:
    return Changes(*(column.filter(mask) for column in rows))


_PREFIX = "observed:"


def observed_times(stores: TaskState) -> dict[str, int]:
    """Return the entries of the task metadata for the highest times of the stores."""
    return {_PREFIX + store: time for store, time in stores.observed().items()}


def observe_times(stores: TaskState, metadata: Mapping[str, int]) -> None:
    """Set the highest times of the stores from the task metadata."""
    times = {name.removeprefix(_PREFIX): time for name, time in metadata.items() if name.startswith(_PREFIX)}
    stores.observe(times)


SCHEMA = pa.schema([("key", pa.binary()), ("value", pa.binary()), ("timestamp", pa.int64())])
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


def encoded_changes(parts: Iterable[Changes]) -> pa.Buffer:
    """Encode changes as an Arrow stream, with a batch for each part.

    Examples
    --------
    >>> raw = encoded_changes([Changes(pa.array([b"a"]), pa.array([None], pa.binary()), pa.array([5]))])
    >>> pa.ipc.open_stream(raw).read_all().to_pylist()
    [{'key': b'a', 'value': None, 'timestamp': 5}]
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA, options=_OPTIONS) as writer:
        for part in parts:
            writer.write_batch(pa.RecordBatch.from_arrays(list(part), schema=SCHEMA))
    return sink.getvalue()


class Database(Protocol):
    """The database with the column families of a task's stores."""

    def family(self, store: str) -> ColumnFamily:
        """Return the column family of a store."""
        ...

    def statistics(self) -> dict[str, Statistic]:
        """Return statistics by name; empty if the database does not collect them."""
        ...

    def close(self) -> None:
        """Flush, and close the files."""
        ...


class OpenTaskState:
    """The open stores of one task (see `TaskState`)."""

    def __init__(
        self,
        stores: Mapping[str, LiveStore],
        database: Database | None,
        directory: Path | None = None,
        measured: bool = False,
    ) -> None:
        self._measured = {name: MeasuredStore(store) for name, store in stores.items()} if measured else {}
        self.stores: Mapping[str, Any] = {
            name: self._measured.get(name, store) if store.handle is store else store.handle
            for name, store in stores.items()
        }
        self._live = stores
        self._database = database
        self._is_open = True
        self.directory = directory
        viewed = [store for store in stores.values() if store.family.durable and store.builder.kind.reads_committed]
        families: dict[str, Any] = {store.name: store.family for store in viewed}
        self.committed = views = CommittedViews([store.builder for store in viewed], families)

        def close_files() -> None:
            views.close()
            if database is not None:
                database.close()

        self.close_files = close_files

    def changes(self, timestamp_ms: int = 0) -> dict[str, Changes]:
        changes_by_store = {
            name: self._changes(store, timestamp_ms) for name, store in self._live.items() if store.num_pending()
        }
        return {name: changes for name, changes in changes_by_store.items() if len(changes)}

    def _changes(self, store: LiveStore, timestamp_ms: int) -> Changes:
        parts = [*store.take_popped(timestamp_ms), store.changes(timestamp_ms)]
        return Changes(*map(pa.concat_arrays, zip(*parts, strict=True))) if len(parts) > 1 else parts[0]

    def popped(self, timestamp_ms: int = 0) -> Iterator[tuple[str, Changes]]:
        popped = ((name, store.take_popped(timestamp_ms)) for name, store in self._live.items())
        return ((name, part) for name, parts in popped for part in parts if len(part))

    def persist(
        self,
        changes: Mapping[str, Changes],
        offsets: Mapping[str, int],
        position: Mapping[TopicPartition, int] | None = None,
    ) -> None:
        with self.committed.changing(position):
            for name, store in self._live.items():
                if name in changes or name in offsets or store.num_pending():
                    self._measured.get(name, store).write(changes.get(name), offsets.get(name))

    def changelog_offset(self, store: str) -> int | None:
        return self._store(store).family.offset

    def restore(self, store: str, batch: Batch) -> None:
        if len(batch):
            self.restore_changes(store, as_changes(self._store(store).builder, batch), int(batch.offsets[-1]) + 1)

    def restore_changes(self, store: str, changes: Changes, offset: int) -> None:
        if len(changes):
            with self.committed.changing():
                self._measured.get(store, self._store(store)).restore(changes, offset)

    def dump(self, store: str) -> Changes:
        return self._store(store).dump()

    def snapshot(self) -> dict[str, Changes]:
        return {name: store.dump() for name, store in self._live.items()}

    def observed(self) -> dict[str, int]:
        return {name: store.observed_ms for name, store in self._live.items() if store.observed_ms >= 0}

    def observe(self, times: Mapping[str, int]) -> None:
        for name, time_ms in times.items():
            if name in self._live:
                self._live[name].observe(time_ms)

    def estimated_size(self, store: str) -> tuple[int, int]:
        family = self._live[store].family
        return family.estimated_rows(), family.estimated_bytes()

    def database_properties(self, store: str, names: Iterable[str]) -> dict[str, int]:
        return self._live[store].family.properties(names)

    def database_statistics(self) -> dict[str, Statistic]:
        return {} if self._database is None else self._database.statistics()

    def operation_times(self) -> dict[str, dict[StoreOperation, OperationTime]]:
        return {name: store.times for name, store in self._measured.items()}

    def reads(self) -> dict[str, ReadCounts]:
        return {name: store.reads for name, store in self._live.items()}

    def num_bytes_pending(self) -> int:
        return sum(store.num_bytes_pending() for store in self._live.values())

    def num_bytes_live(self) -> int:
        return sum(store.num_bytes_live() for store in self._live.values())

    def make_room(self) -> None:
        for store in self._live.values():
            store.make_room()

    def close(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        self.committed.close()
        for store in self._live.values():
            store.close()
        self.close_files()

    def _store(self, name: str) -> LiveStore:
        store = self._live.get(name)
        if store is None:
            raise StateError(f"no store {name!r} in this task; it has {sorted(self._live)}")
        return store


def open_task_state(
    stores: Sequence[StoreBuilder],
    directory: Path | None = None,
    *,
    limits: StateLimits | None = None,
    caching: bool = True,
    keep_all: bool = False,
    measured: bool = False,
) -> TaskState:
    """Open the stores of one task.

    Parameters
    ----------
    stores : sequence of StoreBuilder
        The stores, with unique names.
    directory : Path or None
        The folder of the task, created if it does not exist. If None, all stores are in memory.
    limits : StateLimits or None
        The memory limits of the process; those of the first caller count.
    caching : bool
        True if the record cache is on. If it is off, no store caches, even if its builder says so.
    keep_all : bool
        True if the folder has the rows of stores in memory too, from one opening to the next.
    measured : bool
        True if lookups are counted, operations are timed and RocksDB collects statistics, which takes some time.

    Raises
    ------
    CorruptStateError
        If the files are damaged.
    StateError
        If another process has locked the folder, or it cannot be written to.

    Examples
    --------
    >>> from kstreams.state import Stores
    >>> state = open_task_state([Stores.key_value("totals", key=str, value=int)])
    >>> totals = state.stores["totals"]
    >>> totals.put("a", 1)
    >>> totals.get("a"), len(state.changes()["totals"])
    (1, 1)
    """
    limits = limits or StateLimits()
    stores = stores if caching else [replace(builder, caching=False) for builder in stores]
    on_disk = [builder.name for builder in stores if keep_all or builder.store == "rocksdb"]
    extra = [name for builder in stores for name in _extra_families(builder)]
    families = {}
    database = None
    if directory is not None and on_disk:
        database = _open_database(directory, [*on_disk, *extra], limits, measured)
        families = {name: database.family(name) for name in (*on_disk, *extra)}
    budget = _budget(limits.live_max_bytes).loading(limits.load_max_bytes)
    opened = {builder.name: _store(builder, families, budget) for builder in stores}
    return OpenTaskState(opened, database, directory, measured)


def _open_database(directory: Path, stores: Sequence[str], limits: StateLimits, measured: bool) -> Database:
    from kstreams.state.rocksdb import RocksDatabase  # rocksdict is imported only for stores on disk

    return RocksDatabase(directory, stores, limits, measured=measured)


@cache
def _budget(live_max_bytes: int) -> LiveBudget:
    """Return the budget of all stores of the process that are opened with this limit."""
    return LiveBudget(live_max_bytes)


def _extra_families(builder: StoreBuilder) -> list[str]:
    """Return the names of a store's column families other than that of its rows."""
    return [f"{builder.name}/{extra}" for extra in builder.kind.extra_families]


def _store(builder: StoreBuilder, families: Mapping[str, ColumnFamily], budget: LiveBudget) -> LiveStore:
    names = (builder.name, *_extra_families(builder))
    family, *extra = (families.get(name) or MemoryColumnFamily() for name in names)
    store: LiveStore = builder.kind.open(builder, family, budget, *extra)
    return store
