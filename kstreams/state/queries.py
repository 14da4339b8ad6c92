"""Typed queries of stores, their results, and reasons of failures: the queries of Kafka Streams by their names."""

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
    """The reason why a partition has no result. Kafka Streams: `FailureReason`."""

    UNKNOWN_QUERY_TYPE = "the kind of the store does not support this query"
    NOT_ACTIVE = "the partition is only a standby here"
    NOT_UP_TO_BOUND = "the store has not processed all records up to the bound yet: ask again"
    NOT_PRESENT = "the partition is not here now: ask again, or ask another process"
    DOES_NOT_EXIST = "the store has no such partition"
    STORE_EXCEPTION = "the store could not be read"


class StateQuery(Protocol):
    """A query of one partition of a store."""

    @property
    def kinds(self) -> Collection[str]:
        """The kinds of stores that can answer."""
        ...

    def read(self, store: object) -> Any:
        """Return the result of a store of such a kind."""
        ...


class _QueryOfReader:
    """A query of all kinds of stores with the same row reader, including kinds that an application registers."""

    reader: ClassVar[RowReader]
    timestamped: ClassVar[bool] = False

    @property
    def kinds(self) -> Collection[str]:
        """See `StateQuery`."""
        return kinds_read_by(self.reader, timestamped=self.timestamped)


class _KeyQuery(_QueryOfReader):
    """A query of one key."""

    key: Any

    def __post_init__(self) -> None:
        if self.key is None:
            raise StateError(f"{type(self).__name__} needs a key: no store has a row of a null key")


@dataclass(frozen=True)
class KeyQuery(_KeyQuery):
    """The value of a key, or None, without its timestamp."""

    key: Any
    reader = KEY_VALUE_ROWS

    def read(self, store: Any) -> Any:
        """See `StateQuery`."""
        return _plain_value(store, store.get(self.key))


@dataclass(frozen=True)
class TimestampedKeyQuery(_KeyQuery):
    """The value of a key and its timestamp as a `ValueAndTimestamp`, or None."""

    key: Any
    reader = KEY_VALUE_ROWS
    timestamped = True

    def read(self, store: Any) -> Any:
        """See `StateQuery`."""
        return without_headers(store.builder.query_value(store.get(self.key)))


@dataclass(frozen=True)
class RangeQuery(_QueryOfReader):
    """(key, value) from `low` to `high`, inclusive, in the order of serialized keys; None stands for no bound."""

    low: Any = None
    high: Any = None
    descending: bool = False
    reader = KEY_VALUE_ROWS

    def read(self, store: Any) -> list[tuple[Any, Any]]:
        """See `StateQuery`."""
        rows = (store.reverse_range if self.descending else store.range)(self.low, self.high)
        return [(key, _plain_value(store, value)) for key, value in rows]


@dataclass(frozen=True)
class TimestampedRangeQuery(_QueryOfReader):
    """The result of `RangeQuery`, with values as `ValueAndTimestamp`s."""

    low: Any = None
    high: Any = None
    descending: bool = False
    reader = KEY_VALUE_ROWS
    timestamped = True

    def read(self, store: Any) -> list[tuple[Any, Any]]:
        """See `StateQuery`."""
        return _rows(store, (store.reverse_range if self.descending else store.range)(self.low, self.high))


@dataclass(frozen=True)
class WindowKeyQuery(_KeyQuery):
    """(start, value) of the windows of a key that start between two times, inclusive; None stands for no bound."""

    key: Any
    from_time: Time | None = None
    to_time: Time | None = None
    reader = WINDOW_ROWS

    def read(self, store: Any) -> list[tuple[int, Any]]:
        """See `StateQuery`."""
        return _rows(store, store.fetch(self.key, *span_ms(self.from_time, self.to_time)))


@dataclass(frozen=True)
class WindowRangeQuery(_QueryOfReader):
    """(windowed key, value) of all windows that start between two times, inclusive; None stands for no bound."""

    from_time: Time | None = None
    to_time: Time | None = None
    reader = WINDOW_ROWS

    def read(self, store: Any) -> list[tuple[Any, Any]]:
        """See `StateQuery`."""
        return _rows(store, store.fetch_all(*span_ms(self.from_time, self.to_time)))


@dataclass(frozen=True)
class SessionKeyQuery(_KeyQuery):
    """(windowed key, value) of all sessions of a key. Kafka Streams: `WindowRangeQuery.withKey`."""

    key: Any
    reader = SESSION_ROWS

    def read(self, store: Any) -> list[tuple[Any, Any]]:
        """See `StateQuery`."""
        return _rows(store, store.fetch(self.key))


@dataclass(frozen=True)
class VersionedKeyQuery(_KeyQuery):
    """The latest version of a key as a `VersionedRecord`, or the version that was valid at a time; None if none."""

    key: Any
    as_of: Time | None = None
    reader = VERSION_ROWS

    def read(self, store: Any) -> Any:
        """See `StateQuery`."""
        return store.get(self.key, time_ms_or_none(self.as_of))


@dataclass(frozen=True)
class MultiVersionedKeyQuery(_KeyQuery):
    """The versions of a key that were valid between two times, as `VersionedRecord`s; None stands for no bound."""

    key: Any
    from_time: Time | None = None
    to_time: Time | None = None
    descending: bool = False
    reader = VERSION_ROWS

    def read(self, store: Any) -> list[Any]:
        """See `StateQuery`."""
        versions = list(store.history(self.key, time_ms_or_none(self.from_time), time_ms_or_none(self.to_time)))
        return versions[::-1] if self.descending else versions


@dataclass(frozen=True)
class TimestampedKeyWithHeadersQuery(_QueryOfReader):
    """The row of a key as a `Record`, or None.

    Stores `_with_headers` have headers. As in Kafka Streams 4.4, the stores of the DSL have none, so that headers are
    empty.
    """

    key: Any
    reader = KEY_VALUE_ROWS
    timestamped = True

    def read(self, store: Any) -> Record | None:
        """See `StateQuery`."""
        return next(iter(_records(store, [(self.key, store.get(self.key))])), None)


@dataclass(frozen=True)
class TimestampedRangeWithHeadersQuery(_QueryOfReader):
    """The result of `TimestampedRangeQuery`, with rows as `Record`s (see `TimestampedKeyWithHeadersQuery`)."""

    low: Any = None
    high: Any = None
    descending: bool = False
    reader = KEY_VALUE_ROWS
    timestamped = True

    def read(self, store: Any) -> list[Record]:
        """See `StateQuery`."""
        return _records(store, (store.reverse_range if self.descending else store.range)(self.low, self.high))


@dataclass(frozen=True)
class TimestampedWindowKeyWithHeadersQuery(_QueryOfReader):
    """The result of `WindowKeyQuery`, with rows as `Record`s with windowed keys."""

    key: Any
    from_time: Time | None = None
    to_time: Time | None = None
    reader = WINDOW_ROWS
    timestamped = True

    def read(self, store: Any) -> list[Record]:
        """See `StateQuery`."""
        size = store.builder.window_size_ms or 0
        rows = store.fetch(self.key, *span_ms(self.from_time, self.to_time))
        return _records(store, ((Windowed(self.key, Window(start, start + size)), value) for start, value in rows))


@dataclass(frozen=True)
class TimestampedWindowRangeWithHeadersQuery(_QueryOfReader):
    """The result of `WindowRangeQuery`, with rows as `Record`s with windowed keys."""

    from_time: Time | None = None
    to_time: Time | None = None
    reader = WINDOW_ROWS
    timestamped = True

    def read(self, store: Any) -> list[Record]:
        """See `StateQuery`."""
        return _records(store, store.fetch_all(*span_ms(self.from_time, self.to_time)))


@dataclass(frozen=True)
class SessionKeyWithHeadersQuery(_QueryOfReader):
    """The result of `SessionKeyQuery`, with rows as `Record`s, whose time is the end of the session.

    Kafka Streams: `TimestampedWindowRangeWithHeadersQuery.withKey`.
    """

    key: Any
    reader = SESSION_ROWS

    def read(self, store: Any) -> list[Record]:
        """See `StateQuery`."""
        rows = store.fetch(self.key)
        return [
            Record(key=key, value=without_headers(row), timestamp=key.window.end_ms, headers=headers_of(row))
            for key, row in ((key, store.builder.query_value(row)) for key, row in rows)
        ]


@dataclass(frozen=True)
class CountQuery(_QueryOfReader):
    """The approximate number of entries."""

    reader = KEY_VALUE_ROWS

    def read(self, store: Any) -> int:
        """See `StateQuery`."""
        count: int = store.approximate_num_entries()
        return count


@dataclass(frozen=True)
class QueryResult:
    """The result of one partition.

    Parameters
    ----------
    value : Any
        The result; None after a failure.
    position : mapping of TopicPartition to int
        The last processed offset of each input of the task; empty if it is not known, as for a standby.
    failure : FailureReason or None
    message : str
        The error, if the store could not be read.
    """

    value: Any = None
    position: Position = field(default_factory=dict)
    failure: FailureReason | None = None
    message: str = ""


@dataclass(frozen=True)
class StateQueryResult:
    """The results of all queried partitions. Kafka Streams: `StateQueryResult`.

    Examples
    --------
    >>> StateQueryResult({0: QueryResult(None), 1: QueryResult(7)}).only_value
    7
    """

    partitions: Mapping[int, QueryResult]

    @property
    def only_value(self) -> Any:
        """The only result that is not empty, else an empty list or None. Kafka Streams: `getOnlyPartitionResult`.

        Raises
        ------
        StateError
            If a partition failed, or several have a result.
        """
        failed = [f"{number}: {result.failure.name}" for number, result in self.partitions.items() if result.failure]
        if failed:
            raise StateError(f"no result of the partitions {', '.join(failed)}")
        values = [result.value for result in self.partitions.values() if result.value is not None]
        non_empty = [value for value in values if not (isinstance(value, list) and not value)]
        if len(non_empty) > 1:
            raise StateError(f"{len(non_empty)} partitions have a result: see each in `partitions`")
        return next(iter(non_empty or values), None)

    @property
    def position(self) -> Position:
        """The positions of all results together."""
        return {source: offset for result in self.partitions.values() for source, offset in result.position.items()}


def result_of(wait: Callable[[], Answer], number: int, bound: Position) -> QueryResult:
    """Wait for the answer of a partition, and check that its position has reached `bound` in the same partition."""
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


def _rows(store: Any, rows: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    convert = store.builder.query_value
    return [(key, without_headers(convert(value))) for key, value in rows]


def _records(store: Any, rows: Iterable[tuple[Any, Any]]) -> list[Record]:
    rows_of_store = ((key, store.builder.query_value(row)) for key, row in rows)
    return [
        Record(key=key, value=row.value, timestamp=row.timestamp, headers=headers_of(row))
        for key, row in rows_of_store
        if row is not None
    ]


def _plain_value(store: Any, row: Any) -> Any:
    value = store.builder.query_value(row)
    return value.value if value is not None and store.builder.kind.timestamped else value
