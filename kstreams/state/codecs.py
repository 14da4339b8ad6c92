"""The live form of keys and values in memory, and their bytes. The live form is the object if this is safe, else bytes.

A key may be identified by its Python object only if equal objects have equal bytes, and unequal objects unequal bytes.
A value may be stored as an object only if it is immutable. All other keys and values are serialized at every put, as
Kafka Streams does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from itertools import repeat
from operator import is_
from typing import Any, TypeAlias

import pyarrow as pa

from kstreams.errors import SerdeError, StateError
from kstreams.record import AggregationWithHeaders, ValueAndTimestamp, ValueTimestampHeaders
from kstreams.serdes import Serde
from kstreams.serdes.registry import has_immutable_values, same_bytes_when_equal
from kstreams.state.api import StoreBuilder
from kstreams.state.rows.byte_columns import cut, integers, timestamped
from kstreams.state.values_with_headers import checked_row, headers_to_keep, joined, part, parted

KeyRange: TypeAlias = tuple[bytes, bytes | None]
"""Serialized keys from the first (inclusive) to the second (exclusive); None stands for no bound."""

ALL_KEYS: KeyRange = (b"", None)

_TIMESTAMPED = partial(tuple.__new__, ValueAndTimestamp)  # its own `__new__` would be a Python call per value


class KeyCodec:
    """The keys of a store.

    `live` converts a key to its live form, and `public` converts it back. Both are None if the live form is the key
    itself, so that the hot path can skip the call.
    """

    def __init__(self, store: str, serde: Serde | None) -> None:
        if serde is None:
            raise StateError(f"store {store!r} does not know the type of its keys: declare it with key=")
        self.serde = serde
        self._store = store
        self.direct = same_bytes_when_equal(serde)
        self.live: Callable[[Any], Any] | None = None if self.direct else self._serialize
        self.public: Callable[[Any], Any] | None = None if self.direct else serde.deserialize

    def _serialize(self, key: object) -> bytes:
        if key is None:
            raise self.missing()
        return self.serde.serialize(key)

    def to_live(self, key: object) -> Any:
        """Return the live form of a key; raise StateError if the key is None."""
        if key is None:
            raise self.missing()
        live = self.live
        return key if live is None else live(key)

    def to_public(self, live_key: object) -> Any:
        """Return the key of a live form."""
        public = self.public
        return live_key if public is None else public(live_key)

    def missing(self) -> StateError:
        """Return the error for a key that is None."""
        return StateError(f"store {self._store!r} takes no null key: filter such records out before")

    def to_bytes(self, live: Any) -> bytes:
        """Return the bytes of a key in live form."""
        if not self.direct:
            return live  # type: ignore[no-any-return]
        if live is None:
            raise self.missing()
        return self.serde.serialize(live)

    def of_bytes(self, data: bytes) -> Any:
        """Return the live form of a serialized key."""
        return self.serde.deserialize(data) if self.direct else data

    def span(self, low: object, high: object) -> KeyRange:
        """Return the range of serialized keys from `low` to `high`, both inclusive; None stands for no bound."""
        write = self.serde.serialize
        return b"" if low is None else write(low), None if high is None else write(high) + b"\x00"

    def encode(self, live_values: list[object]) -> pa.Array:
        """Return the bytes of several keys in live form."""
        if not self.direct:
            return pa.array(live_values, pa.binary())
        return _encoded(self._store, "key", self.serde, live_values)

    def decode(self, column: pa.Array) -> list[object]:
        """Return the live forms of several serialized keys."""
        return self.serde.decode_rows(column) if self.direct else column.to_pylist()


class ValueCodec(ABC):
    """The values of a store: objects of callers, their live form, and the bytes in a changelog and on disk.

    `live` and `public` convert between objects and live form; both are None if these are the same.
    """

    live: Callable[[Any], Any] | None
    public: Callable[[Any], Any] | None

    def to_live(self, value: object) -> Any:
        """Return the live form of a value; None stays None."""
        live = self.live
        return value if live is None or value is None else live(value)

    def to_public(self, live_value: object) -> Any:
        """Return the object of a live value; None stays None."""
        public = self.public
        return live_value if public is None or live_value is None else public(live_value)

    @abstractmethod
    def encode(self, live_values: list[object], timestamp_ms: int) -> tuple[pa.Array, pa.Array]:
        """Return changelog values and timestamps; `timestamp_ms` if the store has no timestamps."""

    @abstractmethod
    def stored(self, values: pa.Array, timestamps: pa.Array) -> pa.Array:
        """Return the persisted bytes of changelog values and timestamps."""

    @abstractmethod
    def of_stored(self, column: pa.Array) -> list[object]:
        """Return the live values of persisted bytes."""

    @abstractmethod
    def of_bytes(self, data: bytes) -> Any:
        """Return the live value of persisted bytes."""

    @abstractmethod
    def shown(self, live_values: list[object]) -> list[object]:
        """Return the objects of several live values; None stays None."""

    @abstractmethod
    def values(self, live_values: list[Any]) -> list[Any]:
        """Return the objects of several live values, without timestamps and headers."""


class PlainValueCodec(ValueCodec):
    """Values without timestamps and headers."""

    def __init__(self, store: str, serde: Serde | None) -> None:
        if serde is None:
            raise StateError(f"store {store!r} does not know the type of its values: declare it with value=")
        self.serde = serde
        self._store = store
        self.direct = has_immutable_values(serde)
        self.live: Callable[[Any], Any] | None = None if self.direct else serde.serialize
        self.public: Callable[[Any], Any] | None = None if self.direct else serde.deserialize

    def encode(self, live_values: list[object], timestamp_ms: int) -> tuple[pa.Array, pa.Array]:
        return self.to_bytes(live_values), pa.repeat(pa.scalar(timestamp_ms, pa.int64()), len(live_values))

    def to_bytes(self, live_values: list[object]) -> pa.Array:
        """Return serialized values; None becomes null."""
        if not self.direct:
            return pa.array(live_values, pa.binary())
        return _encoded(self._store, "value", self.serde, live_values)

    def stored(self, values: pa.Array, timestamps: pa.Array) -> pa.Array:
        return values

    def of_stored(self, column: pa.Array) -> list[object]:
        return self.serde.decode_rows(column) if self.direct else column.to_pylist()

    def of_bytes(self, data: bytes) -> Any:
        return self.serde.deserialize(data) if self.direct else data

    def shown(self, live_values: list[object]) -> list[object]:
        return live_values if self.direct else self.serde.decode_rows(pa.array(live_values, pa.binary()))

    values = shown


class TimestampedValueCodec(ValueCodec):
    """`ValueAndTimestamp`: the timestamp is that of the changelog record, and precedes the value on disk."""

    def __init__(self, store: str, serde: Serde | None) -> None:
        self._plain = plain = PlainValueCodec(store, serde)
        self.live: Callable[[Any], Any] | None = None if plain.direct else self._live
        self.public: Callable[[Any], Any] | None = None if plain.direct else self._public

    def _live(self, value_and_timestamp: ValueAndTimestamp[object]) -> ValueAndTimestamp[bytes] | None:
        value, timestamp = value_and_timestamp
        return None if value is None else ValueAndTimestamp(self._plain.serde.serialize(value), timestamp)

    def _public(self, live: ValueAndTimestamp[bytes]) -> ValueAndTimestamp[object]:
        return ValueAndTimestamp(self._plain.serde.deserialize(live[0]), live[1])

    def encode(self, live_values: list[Any], timestamp_ms: int) -> tuple[pa.Array, pa.Array]:
        values = self._plain.to_bytes([None if live is None else live[0] for live in live_values])
        return values, pa.array([timestamp_ms if live is None else live[1] for live in live_values], pa.int64())

    def stored(self, values: pa.Array, timestamps: pa.Array) -> pa.Array:
        return timestamped(values, timestamps)

    def of_stored(self, column: pa.Array) -> list[object]:
        values = self._plain.of_stored(cut(column, 8))
        timestamps = integers(cut(column, 0, 8)).to_pylist()
        return _with_timestamps(values, timestamps)

    def shown(self, live_values: list[Any]) -> list[Any]:
        if self.public is None:
            return live_values
        return _with_timestamps(self.values(live_values), [None if live is None else live[1] for live in live_values])

    def values(self, live_values: list[Any]) -> list[Any]:
        return self._plain.values([None if live is None else live[0] for live in live_values])

    def of_bytes(self, data: bytes) -> Any:
        return ValueAndTimestamp(self._plain.of_bytes(data[8:]), int.from_bytes(data[:8], "big", signed=True))


def _with_timestamps(values: list[Any], timestamps: list[Any]) -> list[Any]:
    """Return values with their timestamps; None if there is no value."""
    pairs = zip(values, timestamps, strict=True)
    if any(map(is_, values, repeat(None))):
        return [None if value is None else ValueAndTimestamp(value, timestamp) for value, timestamp in pairs]
    return list(map(_TIMESTAMPED, pairs))


class HeadersValueCodec(ValueCodec):
    """`AggregationWithHeaders`: in bytes, the headers follow the value (see `values_with_headers`)."""

    row: type[Any] = AggregationWithHeaders

    def __init__(self, store: str, serde: Serde | None) -> None:
        self._plain = plain = PlainValueCodec(store, serde)
        self.live: Callable[[Any], Any] | None = self._live  # a list of headers could be changed after the put
        self.public: Callable[[Any], Any] | None = None if plain.direct else self._public

    def _live(self, row: object) -> Any:
        value, *times, headers = checked_row(row, self.row)
        if value is None:
            return None
        write = self._plain.live
        return self.row(value if write is None else write(value), *times, headers_to_keep(headers))

    def _public(self, live: Any) -> Any:
        return self.row(self._plain.serde.deserialize(live[0]), *live[1:])

    def encode(self, live_values: list[object], timestamp_ms: int) -> tuple[pa.Array, pa.Array]:
        return self._joined(live_values), pa.repeat(pa.scalar(timestamp_ms, pa.int64()), len(live_values))

    def _joined(self, live_values: list[Any]) -> pa.Array:
        values = self._plain.to_bytes([None if live is None else live[0] for live in live_values])
        return joined(values, [() if live is None else live[-1] for live in live_values])

    def stored(self, values: pa.Array, timestamps: pa.Array) -> pa.Array:
        return values

    def of_stored(self, column: pa.Array) -> list[Any]:
        values, headers = parted(column)
        return self._rows(self._plain.of_stored(values), headers)

    def of_bytes(self, data: bytes) -> Any:
        value, headers = part(data)
        return self.row(self._plain.of_bytes(value or b""), headers)

    def shown(self, live_values: list[object]) -> list[object]:
        public = self.public
        return live_values if public is None else [None if live is None else public(live) for live in live_values]

    def values(self, live_values: list[Any]) -> list[Any]:
        return self._plain.values([None if live is None else live[0] for live in live_values])

    def _rows(self, values: list[Any], *columns: list[Any]) -> list[Any]:
        rows = zip(values, *columns, strict=True)
        return [None if row[0] is None else self.row(*row) for row in rows]


class TimestampedHeadersValueCodec(HeadersValueCodec):
    """`ValueTimestampHeaders`: the timestamp is that of the changelog record, and precedes the value on disk."""

    row = ValueTimestampHeaders

    def encode(self, live_values: list[Any], timestamp_ms: int) -> tuple[pa.Array, pa.Array]:
        times = [timestamp_ms if live is None else live[1] for live in live_values]
        return self._joined(live_values), pa.array(times, pa.int64())

    def stored(self, values: pa.Array, timestamps: pa.Array) -> pa.Array:
        return timestamped(values, timestamps)

    def of_stored(self, column: pa.Array) -> list[Any]:
        values, headers = parted(cut(column, 8))
        return self._rows(self._plain.of_stored(values), integers(cut(column, 0, 8)).to_pylist(), headers)

    def of_bytes(self, data: bytes) -> Any:
        value, headers = part(data, 8)
        return self.row(self._plain.of_bytes(value or b""), int.from_bytes(data[:8], "big", signed=True), headers)


_CODECS: Mapping[tuple[bool, bool], Callable[[str, Serde | None], ValueCodec]] = {
    (False, False): PlainValueCodec,
    (True, False): TimestampedValueCodec,
    (False, True): HeadersValueCodec,
    (True, True): TimestampedHeadersValueCodec,
}
"""The codec by (timestamped, with headers)."""


def value_codec(builder: StoreBuilder) -> ValueCodec:
    """Return the codec of a store's values."""
    return _CODECS[builder.kind.timestamped, builder.kind.headers](builder.name, builder.value)


def as_in_changelog(builder: StoreBuilder, stored: pa.Array, times: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return the changelog values and timestamps of persisted bytes; `times` if the store has no timestamps."""
    return (cut(stored, 8), integers(cut(stored, 0, 8))) if builder.kind.timestamped else (stored, times)


def _encoded(store: str, side: str, serde: Serde, live_values: list[Any]) -> pa.Array:
    try:
        return serde.encode_rows(live_values)
    except (SerdeError, TypeError, AttributeError, pa.ArrowException) as error:
        raise SerdeError(f"store {store!r} holds a {side} that its serde {serde!r} cannot write: {error}") from error
