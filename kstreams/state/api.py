"""The interfaces of stores and of the state of a task.

A store gives live Python objects to operators; its bytes are written to disk and changelog only at a commit.
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
    """The changes of a store since its last commit: one entry per key, the records of its changelog.

    If the values of a store have headers, `values` contains them (see `as_records` in `task_state.py`).
    """

    keys: pa.Array  # binary
    values: pa.Array  # binary, null = deleted
    timestamps: pa.Array  # int64 ms

    def __len__(self) -> int:
        return len(self.keys)


class StateStore(Protocol):
    """The methods that all stores have; the kinds of stores add reads and writes (see below)."""

    name: str

    def changes(self, timestamp_ms: int = 0) -> Changes:
        """Return the entries that were written since the last call, as changelog records.

        `timestamp_ms` is the timestamp of records without their own: those of a plain key-value store, and tombstones.
        The task passes its stream time, as Kafka Streams does.
        """
        ...


class KeyValueStore(Protocol):
    """Values by key.

    `put(key, None)` deletes. Iterators yield (key, value) in the order of the serialized keys; bounds are inclusive.
    The values of a timestamped store are ValueAndTimestamp, and with headers ValueTimestampHeaders. Column operators
    use get_many, get_values (without timestamps and headers) and put_many.
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
    """Values by key and window start. An entry expires if its start is at most the greatest start minus the retention.

    With retain_duplicates, a key and start may have several values, in the order of their puts, as for windows of
    joins; put(None) then does nothing. The values of a timestamped store are ValueAndTimestamp.
    """

    def put(self, key: Any, value: Any, start_ms: int) -> None: ...
    def get(self, key: Any, start_ms: int) -> Any: ...
    def fetch(self, key: Any, from_ms: int, to_ms: int) -> Iterator[tuple[int, Any]]:
        """Yield (start, value) of a key with from <= start <= to, ascending."""
        ...

    def backward_fetch(self, key: Any, from_ms: int, to_ms: int) -> Iterator[tuple[int, Any]]: ...
    def fetch_all(self, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed, Any]]:
        """Yield the entries of all keys with from <= start <= to, ordered by (start, serialized key)."""
        ...

    def backward_fetch_all(self, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed, Any]]: ...
    def fetch_range(self, low: object, high: object, from_ms: int, to_ms: int) -> Iterator[tuple[Windowed, Any]]:
        """Yield as `fetch_all`, for the keys from `low` to `high`, inclusive; None stands for no bound."""
        ...

    def backward_fetch_range(
        self, low: object, high: object, from_ms: int, to_ms: int
    ) -> Iterator[tuple[Windowed, Any]]: ...
    def all(self) -> Iterator[tuple[Windowed, Any]]: ...
    def backward_all(self) -> Iterator[tuple[Windowed, Any]]: ...
    def get_many(self, keys: list[Any], starts_ms: list[int]) -> list[Any]: ...
    def put_many(self, keys: list[Any], starts_ms: list[int], values: list[Any]) -> None: ...


class SessionStore(Protocol):
    """Aggregates by session: a key and its window, whose bounds are inclusive."""

    def put(self, session: Windowed, value: Any, record_ms: int | None = None) -> None: ...
    def remove(self, session: Windowed) -> None: ...
    def fetch_session(self, key: object, start_ms: int, end_ms: int) -> Any: ...
    def fetch(self, key: Any) -> Iterator[tuple[Windowed, Any]]: ...
    def find_sessions(self, key: Any, earliest_end_ms: int, latest_start_ms: int) -> Iterator[tuple[Windowed, Any]]: ...
    def find_sessions_range(
        self, low: Any, high: Any, earliest_end_ms: int, latest_start_ms: int
    ) -> Iterator[tuple[Windowed, Any]]:
        """Yield as `find_sessions`, for the keys from `low` to `high`, inclusive; None stands for no bound."""
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
        """Yield all sessions with after_ms < end <= latest_end_ms, ordered by (end, start, serialized key)."""
        ...

    def all(self) -> Iterator[tuple[Windowed, Any]]: ...
    def backward_all(self) -> Iterator[tuple[Windowed, Any]]: ...


class VersionedRecord(NamedTuple):
    """A value that is valid from `timestamp` up to `valid_to`, which is exclusive; None: it is the latest value."""

    value: Any
    timestamp: int
    valid_to: int | None = None


class VersionedStore(Protocol):
    """The versions of each key within the history retention.

    `put` returns until when the value is valid: the timestamp of the next version, VALID_TO_UNDEFINED if it is the
    latest, NOT_PUT if it is older than the history retention and was dropped.
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
    """Buffered updates, one per key, which are removed in the order (time, serialized key)."""

    def get(self, key: Any) -> BufferedChange | None: ...
    def put(self, key: Any, change: BufferedChange, time_ms: int) -> None:
        """Buffer a change. A key that is in the buffer keeps its first time."""
        ...

    def pop_until(self, time_ms: int) -> Iterator[tuple[Any, BufferedChange]]:
        """Remove and return, in order, the changes with time <= time_ms."""
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
    """Buffered records, any number per key, which are removed in the order (timestamp, serialized key, arrival)."""

    def put(self, key: Any, value: Any, timestamp: int, headers: Headers) -> None: ...
    def pop_until(self, time_ms: int) -> Iterator[BufferedRecord]:
        """Remove and return, in order, the records with timestamp <= time_ms."""
        ...

    def num_records(self) -> int: ...


class UnmatchedRow(NamedTuple):
    """The position of a row in an outer-join store; rows are ordered by it."""

    timestamp: int
    left_side: bool
    key: bytes


class OuterJoinStore(Protocol):
    """Rows of a left or outer stream-stream join that have no partner yet."""

    def put(self, key: Any, value: Any, timestamp: int, left_side: bool) -> None: ...
    def remove(self, key: Any, timestamp: int, left_side: bool) -> None:
        """Remove all rows of a key, time and side, as they have a partner."""
        ...

    def first_row(self, left_side: bool) -> UnmatchedRow | None:
        """Return the first row of a side; None if there is none."""
        ...

    def row_after(self, row: UnmatchedRow) -> UnmatchedRow | None:
        """Return the next row of either side; None if there is none."""
        ...

    def num_values(self, row: UnmatchedRow) -> int:
        """Return the number of values of a row."""
        ...

    def last_row(self) -> UnmatchedRow | None:
        """Return the last row of either side; None if there is none."""
        ...

    def pop_until(self, left_before_ms: int, right_before_ms: int) -> Iterator[tuple[Any, Any, int, bool]]:
        """Remove rows with timestamp < the limit of their side; yield (key, value, timestamp, left_side).

        Order: timestamp, then right rows before left rows, then serialized key, then arrival.
        """
        ...


class TaskState(Protocol):
    """All stores of one task.

    `persist` is called after the changelog records of `changes` are durable, and their transaction is committed. It
    writes rows and changelog offsets in the same WriteBatch, so that the rows on disk are always those of a commit.
    """

    stores: Mapping[str, Any]
    """The stores by name, each of the kind of its builder."""

    directory: Path | None
    """The folder of the task; None if it has none."""

    committed: CommittedViews
    """The stores as of the last commit, for all threads."""

    close_files: Callable[[], None]
    """Closes the files without the stores, for a caller that has no reference to the stores."""

    def changes(self, timestamp_ms: int = 0) -> dict[str, Changes]:
        """Return the changes since the last call of each store that has changed (see `StateStore.changes`)."""
        ...

    def popped(self, timestamp_ms: int = 0) -> Iterator[tuple[str, Changes]]:
        """Yield deletions that precede the `changes` of a store, in parts, because they may be very many.

        If this is not called, `changes` returns the deletions too.
        """
        ...

    def persist(
        self,
        changes: Mapping[str, Changes],
        offsets: Mapping[str, int],
        position: Mapping[TopicPartition, int] | None = None,
    ) -> None:
        """Write the last result of `changes()`, for logged stores and others.

        `offsets` are the changelog offsets after the last record of each logged store. `position` is the last processed
        offset of each input; None: unchanged.
        """
        ...

    def changelog_offset(self, store: str) -> int | None:
        """Return the changelog offset up to which the store on disk is complete; None if it is not known."""
        ...

    def restore(self, store: str, batch: Batch) -> None:
        """Apply records of the store's changelog, in order, and set the changelog offset after them.

        Raises
        ------
        StateError
            If the store has uncommitted changes, which could contradict the records.
        """
        ...

    def restore_changes(self, store: str, changes: Changes, offset: int) -> None:
        """Apply changelog records in the form of `changes` and `dump`; `offset` is the changelog offset after them."""
        ...

    def dump(self, store: str) -> Changes:
        """Return all rows of a store that have not expired, as changelog records that `restore` takes."""
        ...

    def snapshot(self) -> dict[str, Changes]:
        """Return the `dump` of each store."""
        ...

    def observed(self) -> dict[str, int]:
        """Return the highest time of each store with a retention, from which the retention counts."""
        ...

    def observe(self, times: Mapping[str, int]) -> None:
        """Set the highest times from `observed`. The rows of a store may lack them, if the last ones were deleted."""
        ...

    def estimated_size(self, store: str) -> tuple[int, int]:
        """Return the approximate number of rows of a store on disk, and their approximate bytes."""
        ...

    def database_properties(self, store: str, names: Iterable[str]) -> Mapping[str, int]:
        """Return the values of these properties of RocksDB for a store, by name. Empty for a store in memory."""
        ...

    def database_statistics(self) -> Mapping[str, Statistic]:
        """Return RocksDB's statistics of the task's database, by RocksDB's names. Empty if it collects none."""
        ...

    def operation_times(self) -> Mapping[str, Mapping[StoreOperation, OperationTime]]:
        """Return the running times by store and operation. Empty if nothing is measured."""
        ...

    def reads(self) -> Mapping[str, ReadCounts]:
        """Return the lookups in each store, if they are counted, and the reads of RocksDB."""
        ...

    def num_bytes_pending(self) -> int:
        """Return the approximate memory of uncommitted changes. Above a limit, the runtime commits."""
        ...

    def num_bytes_live(self) -> int:
        """Return the approximate memory of live values."""
        ...

    def make_room(self) -> None:
        """Evict live values that are in RocksDB too, if the stores of the process exceed their limit."""
        ...

    def close(self) -> None:
        """Flush persisted rows, and close the files. Uncommitted changes are dropped."""
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
