"""Stores for queries from outside: all local partitions of a store as one, with the reading methods of its kind."""

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
    """Has the reading methods of the store, and refuses the writing ones.

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
"""What a store stands for: of each input of its task the last offset whose record took part."""


class Answer(NamedTuple):
    """What a partition of a store answers, and what it stood for then."""

    value: Any
    position: Position


class StorePartition(Protocol):
    """One partition of a store, and who answers for it."""

    @property
    def number(self) -> int:
        """The partition; -1 for a global store, which holds all of them."""
        ...

    def begin(self, question: Callable[[Any], Any]) -> Callable[[], Answer]:
        """Have a question of the store answered; what is returned waits for the answer."""
        ...


def _nowhere(key: object) -> int:
    return -1


@dataclass(frozen=True, slots=True)
class CommittedPartition:
    """A store as of the last commit of its task; who asks reads it.

    Parameters
    ----------
    number : int
    views : CommittedViews
    name : str
        Of the store.
    """

    number: int
    views: CommittedViews
    name: str

    def begin(self, question: Callable[[Any], Any]) -> Callable[[], Answer]:
        """Let the caller answer a question when it waits for that."""
        return partial(self._answer, question)

    def _answer(self, question: Callable[[Any], Any]) -> Answer:
        view = self.views.acquire()
        try:
            return Answer(question(view.store(self.name)), view.position)
        finally:
            self.views.give_back(view)


class ReadOnlyStore:
    """All local partitions of a store, to be read. A class per kind of stores adds the methods.

    A look-up of a key asks the partition in which it should be; where that has nothing, all others. All partitions of a
    scan are asked at once; it gives their entries one after the other, each in the order of its serialized keys: there
    is no order over all. Kafka Streams: `KafkaStreams.store`.

    Parameters
    ----------
    name : str
    partitions : sequence of StorePartition
    partition_of : callable
        The partition in which Kafka's default partitioner puts a key.
    told : callable, optional
        What queries are told of a value that a partition gives; without it, the value itself.
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

    if not TYPE_CHECKING:  # a type checker would take every name to be there

        def __getattr__(self, method: str) -> Any:
            raise AttributeError(f"the store {self.name} cannot be asked for {method!r}: it is read-only from here")

    def to_arrow(self, as_of: Time | None = None) -> pa.Table:
        """All entries as an Arrow table, in no order over the partitions.

        Its columns are `key` and `value`; `timestamp` where the store keeps one; `window_start` and `window_end` of
        windows and sessions; `valid_from` and `valid_to` of versions (null: it still holds). Times are milliseconds.
        Values of classes and of JSON become structs.

        Parameters
        ----------
        as_of : datetime or int, optional
            Only the versions that held at this time, or the windows and sessions that contain it.

        Raises
        ------
        StateError
            When the store has no form as a table, or values are of several types.
        """
        return as_table(self._ask(rows_of_store, self._partitions), time_ms_or_none(as_of))

    def to_polars(self, as_of: Time | None = None) -> polars.DataFrame:
        """`to_arrow` as a frame of polars, which has to be installed."""
        try:
            import polars
        except ImportError as error:
            raise StateError("to_polars needs polars: install it with `pip install polars`") from error
        frame: polars.DataFrame = polars.from_arrow(self.to_arrow(as_of))
        return frame

    def _look_up(self, method: str, key: object, *args: object) -> Any:
        """The answer of the key's partition; where that is None, the first of another one that is not."""
        row = self._of_key(partial(_called, method, (key, *args)), key)
        return row if self._told is None else self._told(row)

    def _scan_key(self, method: str, key: object, *args: object) -> list[Any]:
        """The entries in the key's partition; where there are none, those of the first other one that has some."""
        return self._told_rows(self._of_key(partial(_some, method, (key, *args)), key) or [])

    def _scan(self, method: str, *args: object) -> list[Any]:
        """The entries of all partitions, one after the other."""
        return self._told_rows(chain.from_iterable(self._ask(partial(_listed, method, args), self._partitions)))

    def _told_rows(self, rows: Iterable[Any]) -> list[Any]:
        told = self._told
        return list(rows) if told is None else [(key, told(value)) for key, value in rows]

    def _count(self, method: str) -> int:
        """The sum of the answers of all partitions."""
        return sum(self._ask(partial(_called, method, ()), self._partitions))

    def _of_key(self, question: Callable[[Any], Any], key: object) -> Any:
        if key is None:
            raise StateError(f"store {self.name!r} has no row of a null key: ask for another key")
        partitions = self._partitions
        if len(partitions) > 1:
            home = self._partition_of(key)
            for row in self._ask(question, [partition for partition in partitions if partition.number == home]):
                if row is not None:
                    return row
            partitions = [partition for partition in partitions if partition.number != home]
        return next((row for row in self._ask(question, partitions) if row is not None), None)

    def _ask(self, question: Callable[[Any], Any], partitions: Sequence[StorePartition]) -> list[Any]:
        """The answers of these partitions, which are asked at once."""
        if len(partitions) == 1:
            return [partitions[0].begin(question)().value]
        return [answer().value for answer in [partition.begin(question) for partition in partitions]]


def _called(method: str, args: tuple[Any, ...], store: object) -> Any:
    read = getattr(store, method, None)
    if read is None:
        name = getattr(store, "name", type(store).__name__)  # what a custom store is made of may have none
        raise AttributeError(f"the store {name} cannot be asked for {method!r}: it has no such method")
    return read(*args)


def _listed(method: str, args: tuple[Any, ...], store: object) -> list[Any]:
    """All that an iterator gives, read while the store stands still."""
    with paused_garbage_collection():
        return list(_called(method, args, store))


def _some(method: str, args: tuple[Any, ...], store: object) -> list[Any] | None:
    """As `_listed`; None where there is nothing."""
    return list(_called(method, args, store)) or None


class ReadOnlyKeyValueStore(ReadOnlyStore):
    """A key-value store, plain or timestamped. Kafka Streams: `ReadOnlyKeyValueStore`."""

    def get(self, key: Any) -> Any:
        """The value of a key, or None."""
        return self._look_up("get", key)

    def range(self, low: Any = None, high: Any = None) -> list[tuple[Any, Any]]:
        """(key, value) from `low` to `high`, both included and None for open."""
        return self._scan("range", low, high)

    def reverse_range(self, low: Any = None, high: Any = None) -> list[tuple[Any, Any]]:
        """`range` in descending order."""
        return self._scan("reverse_range", low, high)

    def all(self) -> list[tuple[Any, Any]]:
        """Every (key, value)."""
        return self._scan("all")

    def reverse_all(self) -> list[tuple[Any, Any]]:
        """`all` in descending order."""
        return self._scan("reverse_all")

    def prefix_scan(self, prefix: Any, serde: Serde | None = None) -> list[tuple[Any, Any]]:
        """(key, value) of the keys whose bytes begin with those of `prefix`, which `serde` writes."""
        return self._scan("prefix_scan", prefix, serde)

    def approximate_num_entries(self) -> int:
        """Roughly how many entries there are."""
        return self._count("approximate_num_entries")


class ReadOnlyWindowStore(ReadOnlyStore):
    """A window store, plain or timestamped. Kafka Streams: `ReadOnlyWindowStore`.

    A time is an aware `datetime`, or milliseconds; the starts of windows are given in milliseconds. Windows are asked
    for by their starts: from <= start <= to, None for open.
    """

    def get(self, key: Any, start: Time) -> Any:
        """The value of the window of a key that starts at a time, or None. Kafka Streams: `fetch(key, time)`."""
        return self._look_up("get", key, time_ms(start))

    def fetch(self, key: Any, from_time: Time | None = None, to_time: Time | None = None) -> list[tuple[int, Any]]:
        """(start, value) of the windows of a key, ascending."""
        return self._scan_key("fetch", key, *span_ms(from_time, to_time))

    def backward_fetch(
        self, key: Any, from_time: Time | None = None, to_time: Time | None = None
    ) -> list[tuple[int, Any]]:
        """`fetch` in descending order."""
        return self._scan_key("backward_fetch", key, *span_ms(from_time, to_time))

    def fetch_all(self, from_time: Time | None = None, to_time: Time | None = None) -> list[tuple[Windowed, Any]]:
        """(windowed key, value) of all keys."""
        return self._scan("fetch_all", *span_ms(from_time, to_time))

    def backward_fetch_all(
        self, from_time: Time | None = None, to_time: Time | None = None
    ) -> list[tuple[Windowed, Any]]:
        """`fetch_all` in descending order."""
        return self._scan("backward_fetch_all", *span_ms(from_time, to_time))

    def fetch_range(
        self, low: object = None, high: object = None, from_time: Time | None = None, to_time: Time | None = None
    ) -> list[tuple[Windowed, Any]]:
        """As `fetch_all`, of the keys from `low` to `high`, both included and None for open."""
        return self._scan("fetch_range", low, high, *span_ms(from_time, to_time))

    def backward_fetch_range(
        self, low: object = None, high: object = None, from_time: Time | None = None, to_time: Time | None = None
    ) -> list[tuple[Windowed, Any]]:
        """`fetch_range` in descending order."""
        return self._scan("backward_fetch_range", low, high, *span_ms(from_time, to_time))

    def all(self) -> list[tuple[Windowed, Any]]:
        """Every (windowed key, value)."""
        return self._scan("all")

    def backward_all(self) -> list[tuple[Windowed, Any]]:
        """`all` in descending order."""
        return self._scan("backward_all")


class ReadOnlySessionStore(ReadOnlyStore):
    """A session store. Kafka Streams: `ReadOnlySessionStore`.

    A time is an aware `datetime`, or milliseconds; the bounds of sessions are given in milliseconds.
    """

    def fetch_session(self, key: object, start: Time, end: Time) -> Any:
        """The value of exactly this session, or None."""
        return self._look_up("fetch_session", key, time_ms(start), time_ms(end))

    def fetch(self, key: Any) -> list[tuple[Windowed, Any]]:
        """(windowed key, value) of all sessions of a key."""
        return self._scan_key("fetch", key)

    def backward_fetch(self, key: Any) -> list[tuple[Windowed, Any]]:
        """`fetch` in descending order."""
        return self._scan_key("backward_fetch", key)

    def fetch_range(self, low: object = None, high: object = None) -> list[tuple[Windowed, Any]]:
        """All sessions of the keys from `low` to `high`, both included and None for open."""
        return self._scan("fetch_range", low, high)

    def backward_fetch_range(self, low: object = None, high: object = None) -> list[tuple[Windowed, Any]]:
        """`fetch_range` in descending order."""
        return self._scan("backward_fetch_range", low, high)

    def find_sessions(
        self, key: Any, earliest_end: Time | None = None, latest_start: Time | None = None
    ) -> list[tuple[Windowed, Any]]:
        """Sessions of a key with end >= earliest_end and start <= latest_start, None for open."""
        return self._scan_key("find_sessions", key, *span_ms(earliest_end, latest_start))

    def backward_find_sessions(
        self, key: object, earliest_end: Time | None = None, latest_start: Time | None = None
    ) -> list[tuple[Windowed, Any]]:
        """`find_sessions` in descending order."""
        return self._scan_key("backward_find_sessions", key, *span_ms(earliest_end, latest_start))

    def find_sessions_range(
        self, low: Any = None, high: Any = None, earliest_end: Time | None = None, latest_start: Time | None = None
    ) -> list[tuple[Windowed, Any]]:
        """As `find_sessions`, of the keys from `low` to `high`, both included and None for open."""
        return self._scan("find_sessions_range", low, high, *span_ms(earliest_end, latest_start))

    def backward_find_sessions_range(
        self,
        low: object = None,
        high: object = None,
        earliest_end: Time | None = None,
        latest_start: Time | None = None,
    ) -> list[tuple[Windowed, Any]]:
        """`find_sessions_range` in descending order."""
        return self._scan("backward_find_sessions_range", low, high, *span_ms(earliest_end, latest_start))

    def all(self) -> list[tuple[Windowed, Any]]:
        """Every (windowed key, value)."""
        return self._scan("all")

    def backward_all(self) -> list[tuple[Windowed, Any]]:
        """`all` in descending order."""
        return self._scan("backward_all")


class ReadOnlyVersionedStore(ReadOnlyStore):
    """A versioned key-value store. Kafka Streams: `VersionedKeyValueStore`, its reading methods.

    A time is an aware `datetime`, or milliseconds; those of versions are given in milliseconds.
    """

    def get(self, key: Any, as_of: Time | None = None) -> VersionedRecord | None:
        """The latest version of a key, or the one that held at a time; None when there is none."""
        record: VersionedRecord | None = self._look_up("get", key, time_ms_or_none(as_of))
        return record

    def history(self, key: Any, from_time: Time | None = None, to_time: Time | None = None) -> list[VersionedRecord]:
        """The versions of a key that held at some time from `from_time` to `to_time` (None for open), by time."""
        return self._scan_key("history", key, time_ms_or_none(from_time), time_ms_or_none(to_time))

    def range(
        self, low: Any = None, high: Any = None, from_time: Time | None = None, to_time: Time | None = None
    ) -> list[tuple[Any, VersionedRecord]]:
        """(key, version) of the keys from `low` to `high`, both included and None for open: each as in `history`."""
        return self._scan("range", low, high, time_ms_or_none(from_time), time_ms_or_none(to_time))

    def reverse_range(
        self, low: Any = None, high: Any = None, from_time: Time | None = None, to_time: Time | None = None
    ) -> list[tuple[Any, VersionedRecord]]:
        """`range` with keys in descending order; the versions of a key ascend."""
        return self._scan("reverse_range", low, high, time_ms_or_none(from_time), time_ms_or_none(to_time))


class ReadOnlyBuffer(ReadOnlyStore):
    """A buffer of a suppression or a join."""

    def num_records(self) -> int:
        """How many records it holds."""
        return self._count("num_records")

    def num_bytes(self) -> int:
        """How many bytes the records of a suppression's buffer take, serialized."""
        return self._count("num_bytes")
