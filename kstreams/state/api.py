"""What a store is asked to hold, and what a task can ask of its state.

A store gives live Python objects to operators; its bytes reach disk and changelog only at a commit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.record import Headers, ValueAndTimestamp, Windowed
from kstreams.serdes import Serde
from kstreams.state.column_family import Statistic
from kstreams.state.committed import CommittedViews
from kstreams.state.rows.store_measures import OperationTime, ReadCounts, StoreOperation
from kstreams.state.store_builder import CustomStore, StoreBuilder, StoreKind, register_store_kind

VALID_TO_UNDEFINED = -1
NOT_PUT = -(2**63)


class Changes(NamedTuple):
    """What a store changed since its last commit: one entry per key, exactly the records of its changelog.

    The headers of values, where a store keeps them, lie in `values` (see `as_records` in `task_state.py`).
    """

    keys: pa.Array  # binary
    values: pa.Array  # binary, null = deleted
    timestamps: pa.Array  # int64 ms

    def __len__(self) -> int:
        return len(self.keys)


class StateStore(Protocol):
    """What every store can do; the kinds add their reads and writes (see below)."""

    name: str

    def changes(self, timestamp_ms: int = 0) -> Changes:
        """The entries written since the last call, as changelog records; the caller makes them durable.

        `timestamp_ms` becomes the timestamp of records whose store knows none: those of a plain key-value store, and
        tombstones. The task passes its stream time, as Kafka Streams does.
        """
        ...


class KeyValueStore(Protocol):
    """Values by key.

    `put(key, None)` deletes; iterators give (key, value) in the order of the serialized keys, ends included. A
    timestamped store holds ValueAndTimestamp, one with headers ValueTimestampHeaders. Column operators use get_many,
    get_values (without timestamps and headers) and put_many.
    """

    def get(self, key: Any) -> Any: ...
    def put(self, key: Any, value: Any) -> None: ...
    def delete(self, key: object) -> Any: ...
    def put_if_absent(self, key: object, value: object) -> Any: ...
    def put_all(self, entries: Collection[tuple[Any, Any]]) -> None: ...
    def range(self, low: Any = None, high: Any = None) -> Iterator[tuple[Any, Any]]: ...
    def reverse_range(self, low: Any = None, high: Any = None) -> Iterator[tuple[Any, Any]]: ...
    def all(self) -> Iterator[tuple[Any, Any]]: ...
    def reverse_all(self) -> Iterator[tuple[Any, Any]]: ...
    def prefix_scan(self, prefix: Any, serde: Serde | None = None) -> Iterator[tuple[Any, Any]]: ...
    def approximate_num_entries(self) -> int: ...
    def get_many(self, keys: list[Any]) -> list[Any]: ...
    def get_values(self, keys: list[Any]) -> list[Any]: ...
    def put_many(self, keys: list[Any], values: list[Any]) -> None: ...


class WindowStore(Protocol):
    """Values by key and window start; entries whose start is at or before (greatest start put - retention) are gone.

    With retain_duplicates several values live under one key and start, in the order of their puts (join windows);
    put(None) is then a no-op. A timestamped one holds ValueAndTimestamp.
    """

    def put(self, key: Any, value: Any, start_ms: int) -> None: ...
    def get(self, key: Any, start_ms: int) -> Any: ...
    def fetch(self, key: Any, from_ms: int, to_ms: int) -> Iterator[tuple[int, Any]]:
        """(start, value) of a key with from <= start <= to, ascending."""
        ...

    def backward_fetch(self, key: Any, from_ms: int, to_ms: int) -> Iterator[tuple[int, Any]]: ...
    def fetch_all(self, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed, Any]]:
        """All keys, from <= start <= to, ordered by (start, serialized key)."""
        ...

    def backward_fetch_all(self, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed, Any]]: ...
    def fetch_range(self, low: object, high: object, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed, Any]]:
        """As `fetch_all`, of the keys from `low` to `high`, both included and None for open."""
        ...

    def backward_fetch_range(
        self, low: object, high: object, from_ms: int, to_ms: int
    ) -> Iterator[tuple[Windowed, Any]]: ...
    def all(self) -> Iterator[tuple[Windowed, Any]]: ...
    def backward_all(self) -> Iterator[tuple[Windowed, Any]]: ...
    def get_many(self, keys: list[Any], starts_ms: list[int]) -> list[Any]: ...
    def put_many(self, keys: list[Any], starts_ms: list[int], values: list[Any]) -> None: ...


class SessionStore(Protocol):
    """Aggregates by session: a key and its window, both ends inclusive."""

    def put(self, session: Windowed, value: Any, record_ms: int | None = None) -> None: ...
    def remove(self, session: Windowed) -> None: ...
    def fetch_session(self, key: object, start_ms: int, end_ms: int) -> Any: ...
    def fetch(self, key: Any) -> Iterator[tuple[Windowed, Any]]: ...
    def find_sessions(self, key: Any, earliest_end_ms: int, latest_start_ms: int) -> Iterator[tuple[Windowed, Any]]: ...
    def find_sessions_range(
        self, low: Any, high: Any, earliest_end_ms: int, latest_start_ms: int
    ) -> Iterator[tuple[Windowed, Any]]:
        """As `find_sessions`, of the keys from `low` to `high`, both included and None for open."""
        ...

    def fetch_range(self, low: object, high: object) -> Iterator[tuple[Windowed, Any]]: ...
    def backward_fetch(self, key: Any) -> Iterator[tuple[Windowed, Any]]: ...
    def backward_fetch_range(self, low: object, high: object) -> Iterator[tuple[Windowed, Any]]: ...
    def backward_find_sessions(
        self, key: object, earliest_end_ms: int, latest_start_ms: int
    ) -> Iterator[tuple[Windowed, Any]]: ...
    def backward_find_sessions_range(
        self, low: object, high: object, earliest_end_ms: int, latest_start_ms: int
    ) -> Iterator[tuple[Windowed, Any]]: ...
    def ended_by(self, latest_end_ms: int, after_ms: int | None = None) -> Iterator[tuple[Windowed, Any]]:
        """All sessions with after_ms < end <= latest_end_ms, ordered by (end, start, serialized key)."""
        ...

    def all(self) -> Iterator[tuple[Windowed, Any]]: ...
    def backward_all(self) -> Iterator[tuple[Windowed, Any]]: ...


class VersionedRecord(NamedTuple):
    """A value and when it holds: from `timestamp` up to, not including, `valid_to` (None: until further notice)."""

    value: Any
    timestamp: int
    valid_to: int | None = None


class VersionedStore(Protocol):
    """The history of each key, as far back as the history retention reaches.

    `put` answers when the value ends to hold: the timestamp of the next version, VALID_TO_UNDEFINED when it is the
    latest, NOT_PUT when it is older than the history retention and was not kept.
    """

    def put(self, key: Any, value: Any, timestamp: int) -> int: ...
    def delete(self, key: object, timestamp: int) -> VersionedRecord | None: ...
    def get(self, key: Any, as_of_ms: int | None = None) -> VersionedRecord | None: ...


class BufferedChange(NamedTuple):
    """An update of a table in a buffer."""

    new: Any
    old: Any
    timestamp: int
    headers: Headers


class TimeOrderedBuffer(Protocol):
    """Updates that are held back, one per key, leaving in the order (time, serialized key)."""

    def get(self, key: Any) -> BufferedChange | None: ...
    def put(self, key: Any, change: BufferedChange, time_ms: int) -> None:
        """Keep `change`; a key that is held already keeps its place (its first time)."""
        ...

    def pop_until(self, time_ms: int) -> Iterator[tuple[Any, BufferedChange]]:
        """Remove and give, in order, what has time <= time_ms."""
        ...

    def pop_first(self) -> tuple[Any, BufferedChange] | None: ...
    def num_records(self) -> int: ...
    def num_bytes(self) -> int: ...


class BufferedRecord(NamedTuple):
    """A record of a stream in a buffer."""

    key: Any
    value: Any
    timestamp: int
    headers: Headers


class RecordBuffer(Protocol):
    """Records that are held back, any number per key, leaving in the order (timestamp, serialized key, arrival)."""

    def put(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None: ...
    def pop_until(self, time_ms: int) -> Iterator[BufferedRecord]:
        """Remove and give, in order, what has timestamp <= time_ms."""
        ...

    def num_records(self) -> int: ...


class UnmatchedRow(NamedTuple):
    """The position of a row in an outer-join store; rows are ordered by it."""

    timestamp: int
    left_side: bool
    key: bytes


class OuterJoinStore(Protocol):
    """Rows of a left or outer stream-stream join that have found no partner yet."""

    def put(self, key: Any, value: Any, timestamp: int, left_side: bool) -> None: ...
    def remove(self, key: Any, timestamp: int, left_side: bool) -> None:
        """Forget all rows of this key, time and side: they found a partner."""
        ...

    def first_row(self, left_side: bool) -> UnmatchedRow | None:
        """The first row of a side."""
        ...

    def row_after(self, row: UnmatchedRow) -> UnmatchedRow | None:
        """The row after a row, on either side."""
        ...

    def num_values(self, row: UnmatchedRow) -> int:
        """How many values one row has."""
        ...

    def last_row(self) -> UnmatchedRow | None:
        """The last row, on either side."""
        ...

    def pop_until(self, left_before_ms: int, right_before_ms: int) -> Iterator[tuple[Any, Any, int, bool]]:
        """Remove and give (key, value, timestamp, left_side) with timestamp < the side's limit.

        Order: timestamp, then right rows before left rows, then serialized key, then arrival.
        """
        ...


class TaskState(Protocol):
    """All stores of one task.

    `persist` is called after the changelog records of `changes` are durable (and their transaction committed): it
    writes data and changelog offsets in the same WriteBatch, so that what is on disk is always a committed prefix.
    """

    stores: Mapping[str, Any]
    """By name, each of the kind its builder says."""

    directory: Path | None
    """The folder that belongs to the task; None when it has none."""

    committed: CommittedViews
    """The stores as of the last commit, for any thread."""

    close_files: Callable[[], None]
    """Releases the files without the stores, for whoever holds these no longer."""

    def changes(self, timestamp_ms: int = 0) -> dict[str, Changes]:
        """Per store that changed: its changelog records since the last call (see `StateStore.changes`)."""
        ...

    def popped(self, timestamp_ms: int = 0) -> Iterator[tuple[str, Changes]]:
        """Of each store the deletions that come before its `changes`, in parts, where they may be very many.

        Who does not ask for them finds them among the changes.
        """
        ...

    def persist(
        self,
        changes: Mapping[str, Changes],
        offsets: Mapping[str, int],
        position: Mapping[TopicPartition, int] | None = None,
    ) -> None:
        """Write changes; `offsets` holds, per logged store, the changelog offset after its last record.

        `changes` is what `changes()` gave last, of all stores, logged or not; `position` what they stand for: of each
        input the last offset that was processed (None: as before).
        """
        ...

    def changelog_offset(self, store: str) -> int | None:
        """The changelog offset up to which the store on disk is complete; None when it is not known."""
        ...

    def restore(self, store: str, batch: Batch) -> None:
        """Apply records of the store's changelog, in order, and remember the offset after them.

        Raises
        ------
        StateError
            When the store holds uncommitted changes: they and the records could contradict each other.
        """
        ...

    def restore_changes(self, store: str, changes: Changes, offset: int) -> None:
        """The same of records in the form of `changes` and `dump`; `offset` is the one after them."""
        ...

    def dump(self, store: str) -> Changes:
        """Everything a store holds now, as changelog records that `restore` takes; what has expired is left out."""
        ...

    def snapshot(self) -> dict[str, Changes]:
        """`dump` of every store."""
        ...

    def observed(self) -> dict[str, int]:
        """Of each store with a retention the highest time that it has seen, from which that counts."""
        ...

    def observe(self, times: Mapping[str, int]) -> None:
        """Let stores go on from what `observed` gave: their rows may not tell, where what came last is gone again."""
        ...

    def estimated_size(self, store: str) -> tuple[int, int]:
        """Roughly how many rows a store has on disk, and how many bytes they take."""
        ...

    def database_properties(self, store: str, names: Iterable[str]) -> Mapping[str, int]:
        """Return the values of these properties of RocksDB for a store, by name. Empty for a store in memory."""
        ...

    def database_statistics(self) -> Mapping[str, Statistic]:
        """Return RocksDB's statistics of the task's database, by RocksDB's names. Empty if it gathers none."""
        ...

    def operation_times(self) -> Mapping[str, Mapping[StoreOperation, OperationTime]]:
        """Return the running times by store and operation. Empty if nothing is measured."""
        ...

    def reads(self) -> Mapping[str, ReadCounts]:
        """How often each store was asked for rows of a key (if that is counted), and read RocksDB for them."""
        ...

    def num_bytes_pending(self) -> int:
        """Roughly what uncommitted changes hold in memory; over its limit the runtime commits."""
        ...

    def num_bytes_live(self) -> int:
        """Roughly what live values hold in memory."""
        ...

    def make_room(self) -> None:
        """Evict live values that RocksDB holds too, where the stores of the process take more than their limit."""
        ...

    def close(self) -> None:
        """Flush what is persisted and release the files; uncommitted changes are dropped."""
        ...


__all__ = [
    "NOT_PUT",
    "VALID_TO_UNDEFINED",
    "BufferedChange",
    "BufferedRecord",
    "Changes",
    "CustomStore",
    "KeyValueStore",
    "OuterJoinStore",
    "RecordBuffer",
    "SessionStore",
    "StateStore",
    "StoreBuilder",
    "StoreKind",
    "TaskState",
    "TimeOrderedBuffer",
    "UnmatchedRow",
    "ValueAndTimestamp",
    "VersionedRecord",
    "VersionedStore",
    "WindowStore",
    "register_store_kind",
]
