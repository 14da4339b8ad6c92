"""Serdes of windowed keys, in the format of Kafka Streams."""

from __future__ import annotations

import struct

import pyarrow as pa

from kstreams.errors import SerdeError
from kstreams.record import Window, Windowed
from kstreams.serdes.base import Serde, SerdeUse, decode_error, of_topic_within

_START = struct.Struct(">q")
_END_START = struct.Struct(">qq")


def _pack_times(layout: struct.Struct, *times: int) -> bytes:
    """Pack the times of a window. Raises SerdeError for a time beyond 64 bits."""
    try:
        return layout.pack(*times)
    except struct.error as error:
        raise SerdeError(f"a window at {' and '.join(map(str, times))} ms cannot be written: {error}") from error


def time_window_key(key: bytes, window: Window) -> bytes:
    """Append the start of a window (8 bytes, big endian) to the bytes of a key."""
    return key + _pack_times(_START, window.start_ms)


def session_key(key: bytes, session: Window) -> bytes:
    """Append the end and the start of a session (8 bytes each, big endian) to the bytes of a key."""
    return key + _pack_times(_END_START, session.end_ms, session.start_ms)


class WindowedSerde(Serde[Windowed]):
    """Keys with a window. Derive from this class for a window kind of your own.

    Parameters
    ----------
    inner : Serde
        Serde of the key inside.
    """

    def __init__(self, inner: Serde) -> None:
        self.inner = inner
        self.type = None if inner.type is None else Windowed[inner.type]  # type: ignore[name-defined]

    def of_topic(self, use: SerdeUse) -> Serde[Windowed]:
        return of_topic_within(self, "inner", use)

    @property
    def asks_registry(self) -> bool:
        return self.inner.asks_registry

    def framed(self, column: pa.Array, headers: pa.Array | None) -> pa.Array:
        return self.inner.framed(column, headers)

    def unframed(self, column: pa.Array, headers: pa.Array | None) -> tuple[pa.Array, pa.Array | None]:
        return self.inner.unframed(column, headers)


class _FixedSizeWindowedSerde(WindowedSerde):
    """Serde of keys in windows of one size, where the start determines the end.

    Parameters
    ----------
    inner : Serde
        Serde of the key inside.
    size_ms : int
        Length of the windows in milliseconds.
    """

    def __init__(self, inner: Serde, size_ms: int) -> None:
        super().__init__(inner)
        self.size_ms = size_ms

    def serialize(self, value: Windowed) -> bytes:
        window = value.window
        if window.end_ms - window.start_ms != self.size_ms:
            raise SerdeError(f"{window} is no window of {self.size_ms} ms")
        return time_window_key(self.inner.serialize(value.key), window)


class TimeWindowedSerde(_FixedSizeWindowedSerde):
    """Windowed keys as the bytes of the key and the start of the window (8 bytes, big endian).

    Parameters
    ----------
    inner : Serde
        Serde of the key inside.
    size_ms : int
        Length of the windows in milliseconds.
    """

    def deserialize(self, data: bytes) -> Windowed:
        if len(data) < _START.size:
            raise decode_error("a windowed key", data, "its window start is missing")
        start_ms = _START.unpack(data[-8:])[0]
        return Windowed(self.inner.deserialize(data[:-8]), Window(start_ms, start_ms + self.size_ms))


class SessionWindowedSerde(WindowedSerde):
    """Session keys as the bytes of the key, then the end and the start of the session (8 bytes each, big endian)."""

    def serialize(self, value: Windowed) -> bytes:
        return session_key(self.inner.serialize(value.key), value.window)

    def deserialize(self, data: bytes) -> Windowed:
        if len(data) < _END_START.size:
            raise decode_error("a session key", data, "its end and start are missing")
        end_ms, start_ms = _END_START.unpack(data[-16:])
        return Windowed(self.inner.deserialize(data[:-16]), Window(start_ms, end_ms))


class WindowRowSerde(_FixedSizeWindowedSerde):
    """Keys of a window store's changelog: the bytes of the key, the window start, and a sequence number (4 bytes).

    Parameters
    ----------
    inner : Serde
        Serde of the key inside.
    size_ms : int
        Length of the windows in milliseconds.
    """

    def serialize(self, value: Windowed) -> bytes:
        return super().serialize(value) + bytes(4)

    def deserialize(self, data: bytes) -> Windowed:
        if len(data) < _START.size + 4:
            raise decode_error("a key of a window store", data, "its window start or number is missing")
        start_ms = _START.unpack(data[-12:-4])[0]
        return Windowed(self.inner.deserialize(data[:-12]), Window(start_ms, start_ms + self.size_ms))
