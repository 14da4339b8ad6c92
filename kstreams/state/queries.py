"""Typed queries of stores, what they answer, and why some do not: the queries of Kafka Streams by their names."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, Protocol

from kstreams.errors import StateError, StoreNotAvailableError
from kstreams.kernel.durations import Time, span_ms, time_ms_or_none
from kstreams.record import Record, Window, Windowed
from kstreams.state.read_only_store import Answer, Position
from kstreams.state.row_readers import KEY_VALUE_ROWS, SESSION_ROWS, VERSION_ROWS, WINDOW_ROWS
from kstreams.state.store_builder import RowReader, kinds_read_by
from kstreams.state.values_with_headers import headers_of, without_headers


class FailureReason(Enum):
    """Why a partition gives no answer. Kafka Streams: `FailureReason`."""

    UNKNOWN_QUERY_TYPE = "the store is of a kind that does not know such a query"
    NOT_ACTIVE = "the partition is only a standby here"
    NOT_UP_TO_BOUND = "the store does not stand for all that was asked for yet: ask again"
    NOT_PRESENT = "the partition is not here now: ask again, or ask another process"
    DOES_NOT_EXIST = "the store has no such partition"
    STORE_EXCEPTION = "the store could not be read"


class StateQuery(Protocol):
    """A question of one partition of a store."""

    @property
    def kinds(self) -> Collection[str]:
        """The kinds of stores that can be asked."""
        ...

    def ask(self, store: object) -> Any:
        """The answer of a store of such a kind."""
        ...


class _RowsQuery:
    """A query of all kinds of stores whose rows a reader reads, also of kinds that an application registers."""

    reader: ClassVar[RowReader]
    timestamped: ClassVar[bool] = False

    @property
    def kinds(self) -> Collection[str]:
        """See `StateQuery`."""
        return kinds_read_by(self.reader, timestamped=self.timestamped)


class _OfKey(_RowsQuery):
    """A query of one key."""

    key: Any

    def __post_init__(self) -> None:
        if self.key is None:
            raise StateError(f"{type(self).__name__} needs a key: no store has a row of a null key")


@dataclass(frozen=True)
class KeyQuery(_OfKey):
    """The value of a key, or None, without its timestamp."""

    key: Any
    reader = KEY_VALUE_ROWS

    def ask(self, store: Any) -> Any:
        """See `StateQuery`."""
        return _plain(store, store.get(self.key))


@dataclass(frozen=True)
class TimestampedKeyQuery(_OfKey):
    """The value of a key and its timestamp as a `ValueAndTimestamp`, or None."""

    key: Any
    reader = KEY_VALUE_ROWS
    timestamped = True

    def ask(self, store: Any) -> Any:
        """See `StateQuery`."""
        return without_headers(store.builder.told(store.get(self.key)))


@dataclass(frozen=True)
class RangeQuery(_RowsQuery):
    """(key, value) from `low` to `high`, both included and None for open, in the order of serialized keys."""

    low: Any = None
    high: Any = None
    descending: bool = False
    reader = KEY_VALUE_ROWS

    def ask(self, store: Any) -> list[tuple[Any, Any]]:
        """See `StateQuery`."""
        rows = (store.reverse_range if self.descending else store.range)(self.low, self.high)
        return [(key, _plain(store, value)) for key, value in rows]


@dataclass(frozen=True)
class TimestampedRangeQuery(_RowsQuery):
    """As `RangeQuery`, with values as `ValueAndTimestamp`s."""

    low: Any = None
    high: Any = None
    descending: bool = False
    reader = KEY_VALUE_ROWS
    timestamped = True

    def ask(self, store: Any) -> list[tuple[Any, Any]]:
        """See `StateQuery`."""
        return _told(store, (store.reverse_range if self.descending else store.range)(self.low, self.high))


@dataclass(frozen=True)
class WindowKeyQuery(_OfKey):
    """(start, value) of the windows of a key that start between two times, both included and None for open."""

    key: Any
    from_time: Time | None = None
    to_time: Time | None = None
    reader = WINDOW_ROWS

    def ask(self, store: Any) -> list[tuple[int, Any]]:
        """See `StateQuery`."""
        return _told(store, store.fetch(self.key, *span_ms(self.from_time, self.to_time)))


@dataclass(frozen=True)
class WindowRangeQuery(_RowsQuery):
    """(windowed key, value) of all windows that start between two times, both included and None for open."""

    from_time: Time | None = None
    to_time: Time | None = None
    reader = WINDOW_ROWS

    def ask(self, store: Any) -> list[tuple[Any, Any]]:
        """See `StateQuery`."""
        return _told(store, store.fetch_all(*span_ms(self.from_time, self.to_time)))


@dataclass(frozen=True)
class SessionKeyQuery(_OfKey):
    """(windowed key, value) of all sessions of a key. Kafka Streams: `WindowRangeQuery.withKey`."""

    key: Any
    reader = SESSION_ROWS

    def ask(self, store: Any) -> list[tuple[Any, Any]]:
        """See `StateQuery`."""
        return _told(store, store.fetch(self.key))


@dataclass(frozen=True)
class VersionedKeyQuery(_OfKey):
    """The latest version of a key as a `VersionedRecord`, or the one that held at a time; None without one."""

    key: Any
    as_of: Time | None = None
    reader = VERSION_ROWS

    def ask(self, store: Any) -> Any:
        """See `StateQuery`."""
        return store.get(self.key, time_ms_or_none(self.as_of))


@dataclass(frozen=True)
class MultiVersionedKeyQuery(_OfKey):
    """The versions of a key that held at some time between two times (None for open), as `VersionedRecord`s."""

    key: Any
    from_time: Time | None = None
    to_time: Time | None = None
    descending: bool = False
    reader = VERSION_ROWS

    def ask(self, store: Any) -> list[Any]:
        """See `StateQuery`."""
        versions = list(store.history(self.key, time_ms_or_none(self.from_time), time_ms_or_none(self.to_time)))
        return versions[::-1] if self.descending else versions


@dataclass(frozen=True)
class TimestampedKeyWithHeadersQuery(_RowsQuery):
    """The row of a key as a `Record`, or None.

    Stores `_with_headers` have headers. As in Kafka Streams 4.4, those that the DSL makes have none: it is empty then.
    """

    key: Any
    reader = KEY_VALUE_ROWS
    timestamped = True

    def ask(self, store: Any) -> Record | None:
        """See `StateQuery`."""
        return next(iter(_records(store, [(self.key, store.get(self.key))])), None)


@dataclass(frozen=True)
class TimestampedRangeWithHeadersQuery(_RowsQuery):
    """As `TimestampedRangeQuery`, with rows as `Record`s; of headers see `TimestampedKeyWithHeadersQuery`."""

    low: Any = None
    high: Any = None
    descending: bool = False
    reader = KEY_VALUE_ROWS
    timestamped = True

    def ask(self, store: Any) -> list[Record]:
        """See `StateQuery`."""
        return _records(store, (store.reverse_range if self.descending else store.range)(self.low, self.high))


@dataclass(frozen=True)
class TimestampedWindowKeyWithHeadersQuery(_RowsQuery):
    """As `WindowKeyQuery`, with rows as `Record`s under windowed keys."""

    key: Any
    from_time: Time | None = None
    to_time: Time | None = None
    reader = WINDOW_ROWS
    timestamped = True

    def ask(self, store: Any) -> list[Record]:
        """See `StateQuery`."""
        size = store.builder.window_size_ms or 0
        rows = store.fetch(self.key, *span_ms(self.from_time, self.to_time))
        return _records(store, ((Windowed(self.key, Window(start, start + size)), value) for start, value in rows))


@dataclass(frozen=True)
class TimestampedWindowRangeWithHeadersQuery(_RowsQuery):
    """As `WindowRangeQuery`, with rows as `Record`s under windowed keys."""

    from_time: Time | None = None
    to_time: Time | None = None
    reader = WINDOW_ROWS
    timestamped = True

    def ask(self, store: Any) -> list[Record]:
        """See `StateQuery`."""
        return _records(store, store.fetch_all(*span_ms(self.from_time, self.to_time)))


@dataclass(frozen=True)
class SessionKeyWithHeadersQuery(_RowsQuery):
    """As `SessionKeyQuery`, with rows as `Record`s, whose time is the end of the session.

    Kafka Streams: `TimestampedWindowRangeWithHeadersQuery.withKey`.
    """

    key: Any
    reader = SESSION_ROWS

    def ask(self, store: Any) -> list[Record]:
        """See `StateQuery`."""
        rows = store.fetch(self.key)
        return [
            Record(key=key, value=without_headers(row), timestamp=key.window.end_ms, headers=headers_of(row))
            for key, row in ((key, store.builder.told(row)) for key, row in rows)
        ]


@dataclass(frozen=True)
class CountQuery(_RowsQuery):
    """The approximate number of entries."""

    reader = KEY_VALUE_ROWS

    def ask(self, store: Any) -> int:
        """See `StateQuery`."""
        count: int = store.approximate_num_entries()
        return count


@dataclass(frozen=True)
class QueryResult:
    """What one partition answers.

    Parameters
    ----------
    value : Any
        The answer; None where there is a failure.
    position : mapping of TopicPartition to int
        What it stands for: of each input of the task the last offset whose record took part; empty where that is not
        known, as for a standby.
    failure : FailureReason or None
    message : str
        What happened, when the store could not be read.
    """

    value: Any = None
    position: Position = field(default_factory=dict)
    failure: FailureReason | None = None
    message: str = ""


@dataclass(frozen=True)
class StateQueryResult:
    """The answers of all partitions that were asked. Kafka Streams: `StateQueryResult`.

    Examples
    --------
    >>> StateQueryResult({0: QueryResult(None), 1: QueryResult(7)}).only_value
    7
    """

    partitions: Mapping[int, QueryResult]

    @property
    def only_value(self) -> Any:
        """The one answer that has something, else an empty list or None; Kafka Streams: `getOnlyPartitionResult`.

        Raises
        ------
        StateError
            When a partition failed, or several have an answer.
        """
        failed = [f"{number}: {result.failure.name}" for number, result in self.partitions.items() if result.failure]
        if failed:
            raise StateError(f"no answer of the partitions {', '.join(failed)}")
        answers = [result.value for result in self.partitions.values() if result.value is not None]
        non_empty = [answer for answer in answers if not (isinstance(answer, list) and not answer)]
        if len(non_empty) > 1:
            raise StateError(f"{len(non_empty)} partitions have an answer: look at each in `partitions`")
        return next(iter(non_empty or answers), None)

    @property
    def position(self) -> Position:
        """What all answers together stand for."""
        return {source: offset for result in self.partitions.values() for source, offset in result.position.items()}


def result_of(wait: Callable[[], Answer], number: int, bound: Position) -> QueryResult:
    """Wait for the answer of a partition, and look whether it stands for what lies in the same partition of `bound`."""
    try:
        value, position = wait()
    except StoreNotAvailableError as error:
        return QueryResult(failure=FailureReason.NOT_PRESENT, message=str(error))
    except Exception as error:
        return QueryResult(failure=FailureReason.STORE_EXCEPTION, message=f"{type(error).__name__}: {error}")
    required = {source: offset for source, offset in bound.items() if source.partition == number}
    if any(position.get(source, -1) < offset for source, offset in required.items()):
        return QueryResult(position=position, failure=FailureReason.NOT_UP_TO_BOUND)
    return QueryResult(value, position)


def _told(store: Any, rows: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    convert = store.builder.told
    return [(key, without_headers(convert(value))) for key, value in rows]


def _records(store: Any, rows: Iterable[tuple[Any, Any]]) -> list[Record]:
    rows_of_store = ((key, store.builder.told(row)) for key, row in rows)
    return [
        Record(key=key, value=row.value, timestamp=row.timestamp, headers=headers_of(row))
        for key, row in rows_of_store
        if row is not None
    ]


def _plain(store: Any, row: Any) -> Any:
    value = store.builder.told(row)
    return value.value if value is not None and store.builder.kind.timestamped else value
