"""Stores for queries: all local partitions of a store as one, with the read methods of its kind."""

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
    """A view of a store with its read methods only; write methods raise StateError.

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
"""The last processed offset of each input of a store's task."""


class Answer(NamedTuple):
    """The answer of a partition of a store, and its position at that time."""

    value: Any
    position: Position


class StorePartition(Protocol):
    """One partition of a store, which reads on behalf of queries."""

    @property
    def number(self) -> int:
        """The number of the partition; -1 for a global store, which has all partitions."""
        ...

    def begin(self, read: Callable[[Any], Any]) -> Callable[[], Answer]:
        """Start a read of the store; the returned function waits for the answer."""
        ...


def _nowhere(key: object) -> int:
    return -1


@dataclass(frozen=True, slots=True)
class CommittedPartition:
    """A partition of a store as of the last commit of its task, which the querying thread reads.

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

    def begin(self, read: Callable[[Any], Any]) -> Callable[[], Answer]:
        """Return a function with which the caller reads the store itself."""
        return partial(self._answer, read)

    def _answer(self, read: Callable[[Any], Any]) -> Answer:
        view = self.views.acquire()
        try:
            return Answer(read(view.store(self.name)), view.position)
        finally:
            self.views.give_back(view)


class ReadOnlyStore:
    """All local partitions of a store, for reading. A subclass per kind of stores adds the methods.

    A lookup reads the partition of the key, and if it has no entry, all others. A scan reads all partitions at once,
    and returns their entries partition by partition, each in the order of its serialized keys. Kafka Streams:
    `KafkaStreams.store`.

    Parameters
    ----------
    name : str
    partitions : sequence of StorePartition
    partition_of : callable
        Returns the partition of a key by Kafka's default partitioner.
    told : callable, optional
        Converts a value of a partition to that of the query.
    """

    def __init__(
        self,
        name: str,
        partitions: Sequence[StorePartition],
        partition_of: PartitionOf = _nowhere,
        told: Callable[[Any], Any] | None = None,
    ) -> None:
        self.name = name
        self._partitions = partitions
        self._partition_of = partition_of
        self._told = told

    if not TYPE_CHECKING:  # otherwise type checkers accept every name

        def __getattr__(self, method: str) -> Any:
            raise AttributeError(f"the store {self.name} cannot be asked for {method!r}: it is read-only from here")

    def to_arrow(self, as_of: Time | None = None) -> pa.Table:
        """All entries as an Arrow table, in no order over the partitions.

        The columns are `key` and `value`; `timestamp` if the store has timestamps; `window_start` and `window_end` of
        windows and sessions; `valid_from` and `valid_to` of versions (null: the latest version). Times are
        milliseconds. Values of classes and of JSON become structs.

        Parameters
        ----------
        as_of : datetime or int, optional
            Only the versions that were valid at this time, or the windows and sessions that contain it.

        Raises
        ------
        StateError
            If the store has no form as a table, or values have several types.
        """
        return as_table(self._ask(rows_of_store, self._partitions), time_ms_or_none(as_of))

    def to_polars(self, as_of: Time | None = None) -> polars.DataFrame:
        """Return `to_arrow` as a DataFrame of polars, which must be installed."""
        try:
            import polars
        except ImportError as error:
            raise StateError("to_polars needs polars: install it with `pip install polars`") from error
        frame: polars.DataFrame = polars.from_arrow(self.to_arrow(as_of))
        return frame

    def _look_up(self, method: str, key: object, *args: object) -> Any:
        """Return the result of the key's partition; if it is None, the first result of another one that is not."""
        row = self._of_key(partial(_called, method, (key, *args)), key)
        return row if self._told is None else self._told(row)

    def _scan_key(self, method: str, key: object, *args: object) -> list[Any]:
        """Return the entries in the key's partition; if there are none, those of the first other one that has some."""
        return self._told_rows(self._of_key(partial(_some, method, (key, *args)), key) or [])

    def _scan(self, method: str, *args: object) -> list[Any]:
        """Return the entries of all partitions, partition by partition."""
        return self._told_rows(chain.from_iterable(self._ask(partial(_listed, method, args), self._partitions)))

    def _told_rows(self, rows: Iterable[Any]) -> list[Any]:
        told = self._told
        return list(rows) if told is None else [(key, told(value)) for key, value in rows]

    def _count(self, method: str) -> int:
        """Return the sum of the results of all partitions."""
        return sum(self._ask(partial(_called, method, ()), self._partitions))

    def _of_key(self, read: Callable[[Any], Any], key: object) -> Any:
        if key is None:
            raise StateError(f"store {self.name!r} has no row of a null key: ask for another key")
        partitions = self._partitions
        if len(partitions) > 1:
            home = self._partition_of(key)
            for row in self._ask(read, [partition for partition in partitions if partition.number == home]):
                if row is not None:
                    return row
            partitions = [partition for partition in partitions if partition.number != home]
        return next((row for row in self._ask(read, partitions) if row is not None), None)

    def _ask(self, read: Callable[[Any], Any], partitions: Sequence[StorePartition]) -> list[Any]:
        """Return the results of a read in these partitions, which is started in all of them at once."""
        if len(partitions) == 1:
            return [partitions[0].begin(read)().value]
        return [answer().value for answer in [partition.begin(read) for partition in partitions]]


def _called(method: str, args: tuple[Any, ...], store: object) -> Any:
    function = getattr(store, method, None)
    if function is None:
        name = getattr(store, "name", type(store).__name__)  # the object of a custom store may have no name
        raise AttributeError(f"the store {name} cannot be asked for {method!r}: it has no such method")
    return function(*args)


def _listed(method: str, args: tuple[Any, ...], store: object) -> list[Any]:
    """Return all entries of an iterator, so that they are read before the store changes."""
    with paused_garbage_collection():
        return list(_called(method, args, store))


def _some(method: str, args: tuple[Any, ...], store: object) -> list[Any] | None:
    """Return the entries of an iterator; None if there are none."""
    return list(_called(method, args, store)) or None


class ReadOnlyKeyValueStore(ReadOnlyStore):
    """A key-value store, plain or timestamped. Kafka Streams: `ReadOnlyKeyValueStore`."""

    def get(self, key: Any) -> Any:
        """Return the value of a key, or None."""
        return self._look_up("get", key)

    def range(self, low: Any = None, high: Any = None) -> list[tuple[Any, Any]]:
        """Return (key, value) from `low` to `high`, inclusive; None stands for no bound."""
        return self._scan("range", low, high)

    def reverse_range(self, low: Any = None, high: Any = None) -> list[tuple[Any, Any]]:
        """Return the result of `range` in descending order."""
        return self._scan("reverse_range", low, high)

    def all(self) -> list[tuple[Any, Any]]:
        """Return all (key, value)."""
        return self._scan("all")

    def reverse_all(self) -> list[tuple[Any, Any]]:
        """Return the result of `all` in descending order."""
        return self._scan("reverse_all")

    def prefix_scan(self, prefix: Any, serde: Serde | None = None) -> list[tuple[Any, Any]]:
        """Return (key, value) of the keys whose bytes begin with those of `prefix`, serialized by `serde`."""
        return self._scan("prefix_scan", prefix, serde)

    def approximate_num_entries(self) -> int:
        """Return the approximate number of entries."""
        return self._count("approximate_num_entries")


class ReadOnlyWindowStore(ReadOnlyStore):
    """A window store, plain or timestamped. Kafka Streams: `ReadOnlyWindowStore`.

    A time is an aware `datetime`, or milliseconds; starts of windows are returned in milliseconds. Windows are selected
    by their starts: from <= start <= to; None stands for no bound.
    """

    def get(self, key: Any, start: Time) -> Any:
        """Return the value of a key in the window with a start, or None. Kafka Streams: `fetch(key, time)`."""
        return self._look_up("get", key, time_ms(start))

    def fetch(self, key: Any, from_time: Time | None = None, to_time: Time | None = None) -> list[tuple[int, Any]]:
        """Return (start, value) of the windows of a key, ascending."""
        return self._scan_key("fetch", key, *span_ms(from_time, to_time))

    def backward_fetch(
        self, key: Any, from_time: Time | None = None, to_time: Time | None = None
    ) -> list[tuple[int, Any]]:
        """Return the result of `fetch` in descending order."""
        return self._scan_key("backward_fetch", key, *span_ms(from_time, to_time))

    def fetch_all(self, from_time: Time | None = None, to_time: Time | None = None) -> list[tuple[Windowed, Any]]:
        """Return (windowed key, value) of all keys."""
        return self._scan("fetch_all", *span_ms(from_time, to_time))

    def backward_fetch_all(
        self, from_time: Time | None = None, to_time: Time | None = None
    ) -> list[tuple[Windowed, Any]]:
        """Return the result of `fetch_all` in descending order."""
        return self._scan("backward_fetch_all", *span_ms(from_time, to_time))

    def fetch_range(
        self, low: object = None, high: object = None, from_time: Time | None = None, to_time: Time | None = None
    ) -> list[tuple[Windowed, Any]]:
        """Return the windows of the keys from `low` to `high`, inclusive; None stands for no bound."""
        return self._scan("fetch_range", low, high, *span_ms(from_time, to_time))

    def backward_fetch_range(
        self, low: object = None, high: object = None, from_time: Time | None = None, to_time: Time | None = None
    ) -> list[tuple[Windowed, Any]]:
        """Return the result of `fetch_range` in descending order."""
        return self._scan("backward_fetch_range", low, high, *span_ms(from_time, to_time))

    def all(self) -> list[tuple[Windowed, Any]]:
        """Return all (windowed key, value)."""
        return self._scan("all")

    def backward_all(self) -> list[tuple[Windowed, Any]]:
        """Return the result of `all` in descending order."""
        return self._scan("backward_all")


class ReadOnlySessionStore(ReadOnlyStore):
    """A session store. Kafka Streams: `ReadOnlySessionStore`.

    A time is an aware `datetime`, or milliseconds; bounds of sessions are returned in milliseconds.
    """

    def fetch_session(self, key: object, start: Time, end: Time) -> Any:
        """Return the value of the session with these bounds, or None."""
        return self._look_up("fetch_session", key, time_ms(start), time_ms(end))

    def fetch(self, key: Any) -> list[tuple[Windowed, Any]]:
        """Return (windowed key, value) of all sessions of a key."""
        return self._scan_key("fetch", key)

    def backward_fetch(self, key: Any) -> list[tuple[Windowed, Any]]:
        """Return the result of `fetch` in descending order."""
        return self._scan_key("backward_fetch", key)

    def fetch_range(self, low: object = None, high: object = None) -> list[tuple[Windowed, Any]]:
        """Return all sessions of the keys from `low` to `high`, inclusive; None stands for no bound."""
        return self._scan("fetch_range", low, high)

    def backward_fetch_range(self, low: object = None, high: object = None) -> list[tuple[Windowed, Any]]:
        """Return the result of `fetch_range` in descending order."""
        return self._scan("backward_fetch_range", low, high)

    def find_sessions(
        self, key: Any, earliest_end: Time | None = None, latest_start: Time | None = None
    ) -> list[tuple[Windowed, Any]]:
        """Return the sessions of a key with end >= earliest_end and start <= latest_start; None stands for no bound."""
        return self._scan_key("find_sessions", key, *span_ms(earliest_end, latest_start))

    def backward_find_sessions(
        self, key: object, earliest_end: Time | None = None, latest_start: Time | None = None
    ) -> list[tuple[Windowed, Any]]:
        """Return the result of `find_sessions` in descending order."""
        return self._scan_key("backward_find_sessions", key, *span_ms(earliest_end, latest_start))

    def find_sessions_range(
        self, low: Any = None, high: Any = None, earliest_end: Time | None = None, latest_start: Time | None = None
    ) -> list[tuple[Windowed, Any]]:
        """Return the result of `find_sessions` for the keys from `low` to `high`, inclusive; None is no bound."""
        return self._scan("find_sessions_range", low, high, *span_ms(earliest_end, latest_start))

    def backward_find_sessions_range(
        self,
        low: object = None,
        high: object = None,
        earliest_end: Time | None = None,
        latest_start: Time | None = None,
    ) -> list[tuple[Windowed, Any]]:
        """Return the result of `find_sessions_range` in descending order."""
        return self._scan("backward_find_sessions_range", low, high, *span_ms(earliest_end, latest_start))

    def all(self) -> list[tuple[Windowed, Any]]:
        """Return all (windowed key, value)."""
        return self._scan("all")

    def backward_all(self) -> list[tuple[Windowed, Any]]:
        """Return the result of `all` in descending order."""
        return self._scan("backward_all")


class ReadOnlyVersionedStore(ReadOnlyStore):
    """The read methods of a versioned key-value store. Kafka Streams: `VersionedKeyValueStore`.

    A time is an aware `datetime`, or milliseconds; times of versions are returned in milliseconds.
    """

    def get(self, key: Any, as_of: Time | None = None) -> VersionedRecord | None:
        """Return the latest version of a key, or the version that was valid at a time; None if there is none."""
        record: VersionedRecord | None = self._look_up("get", key, time_ms_or_none(as_of))
        return record

    def history(self, key: Any, from_time: Time | None = None, to_time: Time | None = None) -> list[VersionedRecord]:
        """Return the versions of a key that were valid between two times, by time; None stands for no bound."""
        return self._scan_key("history", key, time_ms_or_none(from_time), time_ms_or_none(to_time))

    def range(
        self, low: Any = None, high: Any = None, from_time: Time | None = None, to_time: Time | None = None
    ) -> list[tuple[Any, VersionedRecord]]:
        """Return (key, version) of the keys from `low` to `high`, inclusive, as `history`; None stands for no bound."""
        return self._scan("range", low, high, time_ms_or_none(from_time), time_ms_or_none(to_time))

    def reverse_range(
        self, low: Any = None, high: Any = None, from_time: Time | None = None, to_time: Time | None = None
    ) -> list[tuple[Any, VersionedRecord]]:
        """Return the result of `range` with keys in descending order; the versions of a key ascend."""
        return self._scan("reverse_range", low, high, time_ms_or_none(from_time), time_ms_or_none(to_time))


class ReadOnlyBuffer(ReadOnlyStore):
    """A buffer of a suppression or a join."""

    def num_records(self) -> int:
        """Return the number of records."""
        return self._count("num_records")

    def num_bytes(self) -> int:
        """Return the bytes of the serialized records in the buffer of a suppression."""
        return self._count("num_bytes")
