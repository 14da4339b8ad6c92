"""What flows: records, the windows they fall into, and values with a timestamp."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, NoReturn

import msgspec

from kstreams.kernel.durations import Time, time_ms

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # has defaults: a class without type arguments is one of any types

    K = TypeVar("K", default=Any)
    V = TypeVar("V", default=Any)
else:
    from typing import TypeVar

    K = TypeVar("K")
    V = TypeVar("V")

Headers = Sequence[tuple[str, bytes | None]]


_SPELLINGS = {
    **{f"get_{name}": name for name in ("key", "value", "timestamp", "headers")},
    **{name: f"context.record_metadata().{name}" for name in ("topic", "partition", "offset")},
    "time": "timestamp",
    "with_time": "with_timestamp(...)",
}
"""What stands here for other names, which errors of operators suggest."""


class Record(msgspec.Struct, Generic[K, V], frozen=True, kw_only=True):
    """One key, value, timestamp and headers.

    Parameters
    ----------
    key, value
        Of any type; `None` is Kafka's null.
    timestamp : int
        Event time in milliseconds since the epoch.
    headers : sequence of (str, bytes or None)
        In order; a name may occur more than once.

    Examples
    --------
    >>> Record(key="a", value=1, timestamp=0).with_value(2).value
    2
    """

    key: K
    value: V
    timestamp: int = 0
    headers: Headers = ()

    _spellings: ClassVar[Mapping[str, str]] = _SPELLINGS

    def with_key(self, key: Any) -> Record[Any, V]:
        """The same record under another key."""
        return Record(key=key, value=self.value, timestamp=self.timestamp, headers=self.headers)

    def with_value(self, value: Any) -> Record[K, Any]:
        """The same record with another value."""
        return Record(key=self.key, value=value, timestamp=self.timestamp, headers=self.headers)

    def with_timestamp(self, timestamp: Time) -> Record[K, V]:
        """The same record at another time: an aware datetime, or milliseconds."""
        at_ms = timestamp if type(timestamp) is int else time_ms(timestamp)
        return Record(key=self.key, value=self.value, timestamp=at_ms, headers=self.headers)

    def with_headers(self, headers: Headers) -> Record[K, V]:
        """The same record with other headers."""
        return Record(key=self.key, value=self.value, timestamp=self.timestamp, headers=headers)


class FixedKeyRecord(msgspec.Struct, Generic[K, V], frozen=True, kw_only=True):
    """A record whose key stays as it is: what a `FixedKeyProcessor` takes and forwards.

    It has all that a `Record` has but for `with_key`, so that it stays where it is. Kafka Streams: `FixedKeyRecord`.

    Examples
    --------
    >>> FixedKeyRecord(key="a", value=1, timestamp=0).with_value("one").value
    'one'
    """

    key: K
    value: V
    timestamp: int = 0
    headers: Headers = ()

    _spellings: ClassVar[Mapping[str, str]] = {**_SPELLINGS, "with_key": "process() where keys change"}

    def with_value(self, value: Any) -> FixedKeyRecord[K, Any]:
        """The same record with another value."""
        return msgspec.structs.replace(self, value=value)

    def with_timestamp(self, timestamp: Time) -> FixedKeyRecord[K, V]:
        """The same record at another time: an aware datetime, or milliseconds."""
        return msgspec.structs.replace(self, timestamp=time_ms(timestamp))

    def with_headers(self, headers: Headers) -> FixedKeyRecord[K, V]:
        """The same record with other headers."""
        return msgspec.structs.replace(self, headers=headers)


def last_header(headers: Headers, name: str) -> bytes | None:
    """The value of the last header of a name; None where there is none.

    Examples
    --------
    >>> last_header((("tries", b"1"), ("tries", b"2")), "tries")
    b'2'
    """
    for other, raw in reversed(headers):
        if other == name:
            return raw
    return None


class RecordWithMetadata(msgspec.Struct, Generic[K, V], frozen=True, kw_only=True):
    """A record with the place of the input record that led to it: what functions take with `with_record=True`.

    It is read-only: what a function gives decides what goes on. To change headers there is `map_headers`.

    Parameters
    ----------
    key, value, timestamp, headers
        As of a `Record`.
    topic : str or None
        Where the input record was read from. None outside of any input record, as behind a table's record cache.
    partition : int
        Of the task.
    offset : int
        Of the input record, -1 outside of any.

    Examples
    --------
    >>> order = RecordWithMetadata(key="a", value=1, headers=(("trace", b"7"),), topic="orders", partition=0, offset=4)
    >>> order.header("trace"), order.offset
    (b'7', 4)
    """

    key: K
    value: V
    timestamp: int = 0
    headers: Headers = ()
    topic: str | None = None
    partition: int = 0
    offset: int = -1

    _spellings: ClassVar[Mapping[str, str]] = {
        **{f"get_{name}": name for name in ("key", "value", "timestamp", "headers", "topic", "partition", "offset")},
        "time": "timestamp",
        "timestamp_ms": "timestamp",
        "last_header": "header(name)",
        "with_value": "map_values(), of which the function returns the new value",
        "with_key": "select_key(), of which the function returns the new key",
        "with_headers": "map_headers(), of which the function returns the new headers",
    }

    def header(self, name: str) -> bytes | None:
        """The last header of a name; None where there is none. Kafka: `headers().lastHeader(name).value()`."""
        return last_header(self.headers, name)


class ProducerRecord(NamedTuple):
    """A record on its way to a topic; its partition follows from its key. Kafka: `ProducerRecord`.

    Parameters
    ----------
    topic : str
    key, value
        Bytes or None; live objects where they are still to be serialized.
    timestamp : int
        Event time in milliseconds since the epoch.
    headers : sequence of (str, bytes or None)
    """

    topic: str
    key: Any
    value: Any
    timestamp: int = 0
    headers: Headers = ()


class RecordMetadata(NamedTuple):
    """Where an input record came from."""

    topic: str
    partition: int
    offset: int


class Window(NamedTuple):
    """An interval of event time in milliseconds; the kind of window decides whether the end belongs to it."""

    start_ms: int
    end_ms: int


class Windowed(NamedTuple, Generic[K]):
    """A key within one window: what the keys of windowed tables are."""

    key: K
    window: Window


class _Renamed:
    """A name of another library, which answers with the name to write.

    `__getattr__` would answer for every name, but made each field half as slow again.
    """

    def __init__(self, name: str, advice: str) -> None:
        self._name = name
        self._advice = advice

    def __get__(self, instance: object, owner: type) -> NoReturn:
        raise AttributeError(f"{owner.__name__} has no {self._name}: {self._advice}", name=self._name, obj=instance)


for _name in ("start", "startTime", "start_time"):
    setattr(Window, _name, _Renamed(_name, "write start_ms, milliseconds since 1970"))
for _name in ("end", "endTime", "end_time"):
    setattr(Window, _name, _Renamed(_name, "write end_ms, milliseconds since 1970"))
for _name in ("start", "startTime", "start_time", "start_ms", "end", "endTime", "end_time", "end_ms"):
    setattr(Windowed, _name, _Renamed(_name, "it is a key within its window: write window.start_ms and window.end_ms"))


class ValueAndTimestamp(NamedTuple, Generic[V]):
    """A table's value and the event time (ms) of its last update."""

    value: V
    timestamp: int


class ValueTimestampHeaders(NamedTuple, Generic[V]):
    """A value, its event time (ms) and its headers: what stores with headers hold. Kafka Streams has the same name.

    Examples
    --------
    >>> ValueTimestampHeaders("paid", 5, [("trace-id", b"7")]).headers
    [('trace-id', b'7')]
    """

    value: V
    timestamp: int
    headers: Headers = ()


class AggregationWithHeaders(NamedTuple, Generic[V]):
    """The value of a session and its headers: what session stores with headers hold, as in Kafka Streams.

    Examples
    --------
    >>> AggregationWithHeaders(3, [("trace-id", b"7")]).aggregation
    3
    """

    aggregation: V
    headers: Headers = ()


class Change(NamedTuple, Generic[V]):
    """An update of a table: what flows between table operators.

    `old` is None unless an operator downstream asked for old values. `is_latest` is False for an
    out-of-order update of a versioned table.
    """

    new: V | None
    old: V | None = None
    is_latest: bool = True
