"""`ReadOnlyStore`: the local partitions of a store for queries, with the read methods of its kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import pyarrow as pa

from kstreams.errors import StateError
from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.durations import Time, span_ms, time_ms, time_ms_or_none
from kstreams.os.garbage_collection import paused_garbage_collection
from kstreams.record import Windowed
from kstreams.serdes import Serde
from kstreams.state.api import VersionedRecord
from kstreams.state.committed import CommittedViews
from kstreams.state.tables.store_tables import as_table, rows_of_store

if TYPE_CHECKING:
    import polars


class ReadOnlyView:
    """A store for processors that must not write to it. It has the read methods, and refuses the write methods.

    Examples
    --------
    >>> from kstreams.state import Stores, open_task_state
    >>> totals = open_task_state([Stores.key_value("totals", key=str, value=int)]).stores["totals"]
    >>> totals.put("a", 1)
    >>> ReadOnlyView(totals).get("a")
    1
    >>> ReadOnlyView(totals).put("a", 2)
    Traceback (most recent call last):
    kstreams.errors.StateError: the global store 'totals' is read-only here: only the processor that fills it may put
    """

    __slots__ = ("_store", "name")

    def __init__(self, store: Any) -> None:
        self._store = store
        self.name = store.name

    def __getattr__(self, method: str) -> Any:
        if method in self._store.builder.kind.writes:
            raise StateError(
                f"the global store {self.name!r} is read-only here: only the processor that fills it may {method}"
            )
        return getattr(self._store, method)


PartitionOf = Callable[[Any], int]
Position = Mapping[TopicPartition, int]
"""The last processed offset of each input of a task."""
Read = Callable[[Any], Any]
"""Reads one partition of a store, and returns the answer."""


class Answer(NamedTuple):
    """The answer of one partition of a store, and the position of the store at that time."""

    value: Any
    position: Position


class StorePartition(Protocol):
    """One partition of a store, and the way to read it."""

    @property
    def number(self) -> int:
        """The partition. -1 for a global store, which contains all partitions."""
        ...

    def begin(self, read: Read) -> Callable[[], Answer]:
        """Begin to read the store. The returned function waits for the answer."""
        ...


def _unknown_partition(key: object) -> int:
    return -1


@dataclass(frozen=True, slots=True)
class CommittedPartition:
    """A partition as of the last commit of its task, which the thread of the caller reads.

    Parameters
    ----------
    number : int
    views : CommittedViews
    name : str
        The name of the store.
    """

    number: int
    views: CommittedViews
    name: str

    def begin(self, read: Read) -> Callable[[], Answer]:
        """Return a function that reads in the thread of its caller."""
        return partial(self._answer, read)

    def _answer(self, read: Read) -> Answer:
        with self.views.reading() as view:
            return Answer(read(view.store(self.name)), view.position)


class ReadOnlyStore:
    """All local partitions of a store. A subclass per kind of stores has the read methods.

    A look-up of a key reads the partition of Kafka's default partitioner. If that has no row, it reads all others. A
    scan reads all partitions at the same time, and returns the entries of one partition after the other. Within a
    partition, they are in the order of serialized keys. Kafka Streams: `KafkaStreams.store`.

    Parameters
    ----------
    name : str
    partitions : sequence of StorePartition
    partition_of : callable
        Returns the partition of Kafka's default partitioner for a key.
    query_value : callable, optional
        Converts a stored value to the value that queries return. Default: no conversion.
    """

    def __init__(
        self,
        name: str,
        partitions: Sequence[StorePartition],
        partition_of: PartitionOf = _unknown_partition,
        query_value: Callable[[Any], Any] | None = None,
    ) -> None:
        self.name = name
        self._partitions = partitions
        self._partition_of = partition_of
        self._query_value = query_value

    if not TYPE_CHECKING:  # a type checker would accept every name

        def __getattr__(self, method: str) -> Any:
            raise AttributeError(f"the store {self.name} has no method {method!r} here: it is read-only for queries")

    def to_arrow(self, as_of: Time | None = None) -> pa.Table:
        """Return all entries as an Arrow table, one partition after the other.

        The columns are `key` and `value`; `timestamp` if the store has timestamps; `window_start` and `window_end` of
        windows and sessions; `valid_from` and `valid_to` of versions (null for the latest one). Times are milliseconds.
        Values of classes and of JSON become structs.

        Parameters
        ----------
        as_of : datetime or int, optional
            A time. The table then has only the versions that were valid at this time, or the windows and sessions that
            contain it.

        Raises
        ------
        StateError
            If the store cannot be a table, or its values are of several types.
        """
        return as_table(self._read(rows_of_store, self._partitions), time_ms_or_none(as_of))

    def to_polars(self, as_of: Time | None = None) -> polars.DataFrame:
        """Return `to_arrow` as a frame of polars, which has to be installed."""
        try:
            import polars
        except ImportError as error:
            raise StateError("to_polars needs polars: install it with `pip install polars`") from error
        frame: polars.DataFrame = polars.from_arrow(self.to_arrow(as_of))
        return frame

    def _look_up(self, key: object, read: Read) -> Any:
        """Return the answer of the partition of a key, or else the first answer of another one that is not None."""
        row = self._of_key(key, read)
        return row if self._query_value is None else self._query_value(row)

    def _scan_key(self, key: object, read: Callable[[Any], Iterable[Any]]) -> list[Any]:
        """Return the entries in the partition of a key, or else those of the first other one that has entries."""
        return self._converted(self._of_key(key, partial(_entries_or_none, read)) or [])

    def _scan(self, read: Callable[[Any], Iterable[Any]]) -> list[Any]:
        """Return the entries of all partitions, one after the other."""
        return self._converted(chain.from_iterable(self._read(partial(_entries, read), self._partitions)))

    def _converted(self, rows: Iterable[Any]) -> list[Any]:
        query_value = self._query_value
        return list(rows) if query_value is None else [(key, query_value(value)) for key, value in rows]

    def _count(self, read: Callable[[Any], int]) -> int:
        """Return the sum of the answers of all partitions."""
        return sum(self._read(read, self._partitions))

    def _of_key(self, key: object, read: Read) -> Any:
        if key is None:
            raise StateError(f"store {self.name!r} has no row of a null key: ask for another key")
        partitions = self._partitions
        if len(partitions) > 1:
            home = self._partition_of(key)
            for row in self._read(read, [partition for partition in partitions if partition.number == home]):
                if row is not None:
                    return row
            partitions = [partition for partition in partitions if partition.number != home]
        return next((row for row in self._read(read, partitions) if row is not None), None)

    def _read(self, read: Read, partitions: Sequence[StorePartition]) -> list[Any]:
        """Return the answers of partitions, which read at the same time."""
        if len(partitions) == 1:
            return [partitions[0].begin(read)().value]
        return [answer().value for answer in [partition.begin(read) for partition in partitions]]


def _entries(read: Callable[[Any], Iterable[Any]], store: object) -> list[Any]:
    """Return all entries of an iterator, before the store changes."""
    with paused_garbage_collection():
        return list(read(store))


def _entries_or_none(read: Callable[[Any], Iterable[Any]], store: object) -> list[Any] | None:
    """Return all entries of an iterator. None if there are none."""
    return list(read(store)) or None


class ReadOnlyKeyValueStore(ReadOnlyStore):
    """A key-value store, plain or timestamped. Kafka Streams: `ReadOnlyKeyValueStore`."""

    def get(self, key: Any) -> Any:
        """Return the value of a key, or None."""
        return self._look_up(key, lambda store: store.get(key))

    def range(self, low: Any = None, high: Any = None) -> list[tuple[Any, Any]]:
        """Return (key, value) from `low` to `high`, both included and None for open."""
        return self._scan(lambda store: store.range(low, high))

    def reverse_range(self, low: Any = None, high: Any = None) -> list[tuple[Any, Any]]:
        """Return `range` in descending order."""
        return self._scan(lambda store: store.reverse_range(low, high))

    def all(self) -> list[tuple[Any, Any]]:
        """Return every (key, value)."""
        return self._scan(lambda store: store.all())

    def reverse_all(self) -> list[tuple[Any, Any]]:
        """Return `all` in descending order."""
        return self._scan(lambda store: store.reverse_all())

    def prefix_scan(self, prefix: Any, serde: Serde | None = None) -> list[tuple[Any, Any]]:
        """Return (key, value) of the keys whose bytes begin with those of `prefix`, serialized by `serde`."""
        return self._scan(lambda store: store.prefix_scan(prefix, serde))

    def approximate_num_entries(self) -> int:
        """Return the approximate number of entries."""
        return self._count(lambda store: store.approximate_num_entries())


class ReadOnlyWindowStore(ReadOnlyStore):
    """A window store, plain or timestamped. Kafka Streams: `ReadOnlyWindowStore`.

    A time is an aware `datetime`, or milliseconds. Starts of windows are milliseconds in results. The bounds are for
    the starts of windows: from <= start <= to, None for open.
    """

    def get(self, key: Any, start: Time) -> Any:
        """Return the value of the window of a key that starts at a time, or None. Kafka Streams: `fetch(key, time)`."""
        start_ms = time_ms(start)
        return self._look_up(key, lambda store: store.get(key, start_ms))

    def fetch(self, key: Any, from_time: Time | None = None, to_time: Time | None = None) -> list[tuple[int, Any]]:
        """Return (start, value) of the windows of a key in ascending order."""
        first_ms, last_ms = span_ms(from_time, to_time)
        return self._scan_key(key, lambda store: store.fetch(key, first_ms, last_ms))

    def backward_fetch(
        self, key: Any, from_time: Time | None = None, to_time: Time | None = None
    ) -> list[tuple[int, Any]]:
        """Return `fetch` in descending order."""
        first_ms, last_ms = span_ms(from_time, to_time)
        return self._scan_key(key, lambda store: store.backward_fetch(key, first_ms, last_ms))

    def fetch_all(self, from_time: Time | None = None, to_time: Time | None = None) -> list[tuple[Windowed, Any]]:
        """Return (windowed key, value) of all keys."""
        first_ms, last_ms = span_ms(from_time, to_time)
        return self._scan(lambda store: store.fetch_all(first_ms, last_ms))

    def backward_fetch_all(
        self, from_time: Time | None = None, to_time: Time | None = None
    ) -> list[tuple[Windowed, Any]]:
        """Return `fetch_all` in descending order."""
        first_ms, last_ms = span_ms(from_time, to_time)
        return self._scan(lambda store: store.backward_fetch_all(first_ms, last_ms))

    def fetch_range(
        self, low: object = None, high: object = None, from_time: Time | None = None, to_time: Time | None = None
    ) -> list[tuple[Windowed, Any]]:
        """Return `fetch_all` of the keys from `low` to `high`, both included and None for open."""
        first_ms, last_ms = span_ms(from_time, to_time)
        return self._scan(lambda store: store.fetch_range(low, high, first_ms, last_ms))

    def backward_fetch_range(
        self, low: object = None, high: object = None, from_time: Time | None = None, to_time: Time | None = None
    ) -> list[tuple[Windowed, Any]]:
        """Return `fetch_range` in descending order."""
        first_ms, last_ms = span_ms(from_time, to_time)
        return self._scan(lambda store: store.backward_fetch_range(low, high, first_ms, last_ms))

    def all(self) -> list[tuple[Windowed, Any]]:
        """Return every (windowed key, value)."""
        return self._scan(lambda store: store.all())

    def backward_all(self) -> list[tuple[Windowed, Any]]:
        """Return `all` in descending order."""
        return self._scan(lambda store: store.backward_all())


class ReadOnlySessionStore(ReadOnlyStore):
    """A session store. Kafka Streams: `ReadOnlySessionStore`.

    A time is an aware `datetime`, or milliseconds. The bounds of sessions are milliseconds in results.
    """

    def fetch_session(self, key: object, start: Time, end: Time) -> Any:
        """Return the value of exactly this session, or None."""
        start_ms = time_ms(start)
        end_ms = time_ms(end)
        return self._look_up(key, lambda store: store.fetch_session(key, start_ms, end_ms))

    def fetch(self, key: Any) -> list[tuple[Windowed, Any]]:
        """Return (windowed key, value) of all sessions of a key."""
        return self._scan_key(key, lambda store: store.fetch(key))

    def backward_fetch(self, key: Any) -> list[tuple[Windowed, Any]]:
        """Return `fetch` in descending order."""
        return self._scan_key(key, lambda store: store.backward_fetch(key))

    def fetch_range(self, low: object = None, high: object = None) -> list[tuple[Windowed, Any]]:
        """Return all sessions of the keys from `low` to `high`, both included and None for open."""
        return self._scan(lambda store: store.fetch_range(low, high))

    def backward_fetch_range(self, low: object = None, high: object = None) -> list[tuple[Windowed, Any]]:
        """Return `fetch_range` in descending order."""
        return self._scan(lambda store: store.backward_fetch_range(low, high))

    def find_sessions(
        self, key: Any, earliest_end: Time | None = None, latest_start: Time | None = None
    ) -> list[tuple[Windowed, Any]]:
        """Return the sessions of a key with end >= earliest_end and start <= latest_start, None for open."""
        earliest_end_ms, latest_start_ms = span_ms(earliest_end, latest_start)
        return self._scan_key(key, lambda store: store.find_sessions(key, earliest_end_ms, latest_start_ms))

    def backward_find_sessions(
        self, key: object, earliest_end: Time | None = None, latest_start: Time | None = None
    ) -> list[tuple[Windowed, Any]]:
        """Return `find_sessions` in descending order."""
        earliest_end_ms, latest_start_ms = span_ms(earliest_end, latest_start)
        return self._scan_key(key, lambda store: store.backward_find_sessions(key, earliest_end_ms, latest_start_ms))

    def find_sessions_range(
        self, low: Any = None, high: Any = None, earliest_end: Time | None = None, latest_start: Time | None = None
    ) -> list[tuple[Windowed, Any]]:
        """Return `find_sessions` of the keys from `low` to `high`, both included and None for open."""
        earliest_end_ms, latest_start_ms = span_ms(earliest_end, latest_start)
        return self._scan(lambda store: store.find_sessions_range(low, high, earliest_end_ms, latest_start_ms))

    def backward_find_sessions_range(
        self,
        low: object = None,
        high: object = None,
        earliest_end: Time | None = None,
        latest_start: Time | None = None,
    ) -> list[tuple[Windowed, Any]]:
        """Return `find_sessions_range` in descending order."""
        earliest_end_ms, latest_start_ms = span_ms(earliest_end, latest_start)
        return self._scan(lambda store: store.backward_find_sessions_range(low, high, earliest_end_ms, latest_start_ms))

    def all(self) -> list[tuple[Windowed, Any]]:
        """Return every (windowed key, value)."""
        return self._scan(lambda store: store.all())

    def backward_all(self) -> list[tuple[Windowed, Any]]:
        """Return `all` in descending order."""
        return self._scan(lambda store: store.backward_all())


class ReadOnlyVersionedStore(ReadOnlyStore):
    """A versioned key-value store. Kafka Streams: the read methods of `VersionedKeyValueStore`.

    A time is an aware `datetime`, or milliseconds. Times of versions are milliseconds in results.
    """

    def get(self, key: Any, as_of: Time | None = None) -> VersionedRecord | None:
        """Return the latest version of a key, or the version that was valid at a time. None if there is none."""
        as_of_ms = time_ms_or_none(as_of)
        record: VersionedRecord | None = self._look_up(key, lambda store: store.get(key, as_of_ms))
        return record

    def history(self, key: Any, from_time: Time | None = None, to_time: Time | None = None) -> list[VersionedRecord]:
        """Return the versions of a key that were valid between two times, None for open, in order of time."""
        from_ms = time_ms_or_none(from_time)
        to_ms = time_ms_or_none(to_time)
        return self._scan_key(key, lambda store: store.history(key, from_ms, to_ms))

    def range(
        self, low: Any = None, high: Any = None, from_time: Time | None = None, to_time: Time | None = None
    ) -> list[tuple[Any, VersionedRecord]]:
        """Return (key, version) of the keys from `low` to `high`, None for open, with the versions of `history`."""
        from_ms = time_ms_or_none(from_time)
        to_ms = time_ms_or_none(to_time)
        return self._scan(lambda store: store.range(low, high, from_ms, to_ms))

    def reverse_range(
        self, low: Any = None, high: Any = None, from_time: Time | None = None, to_time: Time | None = None
    ) -> list[tuple[Any, VersionedRecord]]:
        """Return `range` with keys in descending order. The versions of a key are in ascending order."""
        from_ms = time_ms_or_none(from_time)
        to_ms = time_ms_or_none(to_time)
        return self._scan(lambda store: store.reverse_range(low, high, from_ms, to_ms))


class ReadOnlyBuffer(ReadOnlyStore):
    """A buffer of a suppression or a join."""

    def num_records(self) -> int:
        """Return the number of buffered records."""
        return self._count(lambda store: store.num_records())

    def num_bytes(self) -> int:
        """Return the size of the serialized records in the buffer of a suppression."""
        return self._count(lambda store: store.num_bytes())
