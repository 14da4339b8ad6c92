"""Records, windows and windowed keys, and values with timestamps."""

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
"""By names of other libraries: what to write, for the errors of operators."""


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
        """Return the record with another key."""
        return Record(key=key, value=self.value, timestamp=self.timestamp, headers=self.headers)

    def with_value(self, value: Any) -> Record[K, Any]:
        """Return the record with another value."""
        return Record(key=self.key, value=value, timestamp=self.timestamp, headers=self.headers)

    def with_timestamp(self, timestamp: Time) -> Record[K, V]:
        """Return the record with another timestamp: an aware datetime, or milliseconds."""
        at_ms = timestamp if type(timestamp) is int else time_ms(timestamp)
        return Record(key=self.key, value=self.value, timestamp=at_ms, headers=self.headers)

    def with_headers(self, headers: Headers) -> Record[K, V]:
        """Return the record with other headers."""
        return Record(key=self.key, value=self.value, timestamp=self.timestamp, headers=headers)


class FixedKeyRecord(msgspec.Struct, Generic[K, V], frozen=True, kw_only=True):
    """A record whose key cannot change, for `FixedKeyProcessor`.

    It has the methods of `Record` except `with_key`: it stays in its partition. Kafka Streams: `FixedKeyRecord`.

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
        """Return the record with another value."""
        return msgspec.structs.replace(self, value=value)

    def with_timestamp(self, timestamp: Time) -> FixedKeyRecord[K, V]:
        """Return the record with another timestamp: an aware datetime, or milliseconds."""
        return msgspec.structs.replace(self, timestamp=time_ms(timestamp))

    def with_headers(self, headers: Headers) -> FixedKeyRecord[K, V]:
        """Return the record with other headers."""
        return msgspec.structs.replace(self, headers=headers)


def last_header(headers: Headers, name: str) -> bytes | None:
    """Return the value of the last header of a name; None if there is none.

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
    """A record with the position of its input record, for functions with `with_record=True`.

    It is read-only: the result of the function is forwarded. `map_headers` changes headers.

    Parameters
    ----------
    key, value, timestamp, headers
        As in `Record`.
    topic : str or None
        Topic of the input record; None without one, such as for an update from a record cache.
    partition : int
        Partition of the task.
    offset : int
        Offset of the input record; -1 without one.

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
        """Return the last header of a name; None if there is none. Kafka: `headers().lastHeader(name).value()`."""
        return last_header(self.headers, name)


class ProducerRecord(NamedTuple):
    """A record to be written to a topic; its key decides the partition. Kafka: `ProducerRecord`.

    Parameters
    ----------
    topic : str
    key, value
        Bytes or None; objects before serialization.
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
    """The position of an input record: topic, partition and offset."""

    topic: str
    partition: int
    offset: int


class Window(NamedTuple):
    """An interval of event time in milliseconds; whether it includes its end depends on the kind of window."""

    start_ms: int
    end_ms: int


class Windowed(NamedTuple, Generic[K]):
    """A key within a window: the key of windowed tables."""

    key: K
    window: Window


class _Renamed:
    """A name of another library; reading it raises an error that names what to write.

    `__getattr__` would handle every name, but would make access to fields 50 % slower.
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
    """The value of a row and the event time (ms) of its last update."""

    value: V
    timestamp: int


class ValueTimestampHeaders(NamedTuple, Generic[V]):
    """A value of a store with headers: the value, its event time (ms) and its headers. Kafka Streams has the same name.

    Examples
    --------
    >>> ValueTimestampHeaders("paid", 5, [("trace-id", b"7")]).headers
    [('trace-id', b'7')]
    """

    value: V
    timestamp: int
    headers: Headers = ()


class AggregationWithHeaders(NamedTuple, Generic[V]):
    """The value of a session store with headers: the aggregate of a session and its headers, as in Kafka Streams.

    Examples
    --------
    >>> AggregationWithHeaders(3, [("trace-id", b"7")]).aggregation
    3
    """

    aggregation: V
    headers: Headers = ()


class Change(NamedTuple, Generic[V]):
    """An update of a table, as table operators forward it.

    `old` is None unless an operator downstream needs old values. `is_latest` is False for an out-of-order update of a
    versioned table.
    """

    new: V | None
    old: V | None = None
    is_latest: bool = True
