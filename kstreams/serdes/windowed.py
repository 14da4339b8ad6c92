"""Serdes of windowed keys, in the bytes that Kafka Streams writes to topics."""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa

from kstreams.errors import SerdeError
from kstreams.record import Window, Windowed
from kstreams.serdes.base import Serde, SerdeUse, decode_error, of_topic_within

_START = struct.Struct(">q")
_END_START = struct.Struct(">qq")


def _packed(layout: struct.Struct, *times: int) -> bytes:
    """Times of a window as bytes; raises SerdeError for one beyond 64 bits."""
    try:
        return layout.pack(*times)
    except struct.error as error:
        raise SerdeError(f"a window at {' and '.join(map(str, times))} has no bytes: {error}") from error


def time_window_key(key: bytes, window: Window) -> bytes:
    """The bytes of a key in a window of one size: those of the key, then the window's start (8 bytes, big endian)."""
    return key + _packed(_START, window.start_ms)


def session_key(key: bytes, session: Window) -> bytes:
    """The bytes of a key in a session: those of the key, then the session's end and start (8 bytes each)."""
    return key + _packed(_END_START, session.end_ms, session.start_ms)


class WindowedSerde(Serde[Windowed[Any]]):
    """Keys within a window; those of one inner key go to one partition, whatever their windows.

    A serde of windows of your own extends it.

    Parameters
    ----------
    inner : Serde
        Serde of the key inside.
    """

    def __init__(self, inner: Serde[Any]) -> None:
        self.inner = inner
        # None where the type of the keys inside is not known
        self.type = None if inner.type is None else Windowed[inner.type]  # type: ignore[name-defined]

    def of_topic(self, use: SerdeUse) -> Serde[Windowed[Any]]:
        made: Serde[Windowed[Any]] = of_topic_within(self, "inner", use)
        return made

    @property
    def asks_registry(self) -> bool:
        return self.inner.asks_registry

    def framed(self, column: pa.Array, headers: pa.Array | None) -> pa.Array:
        return self.inner.framed(column, headers)

    def unframed(self, column: pa.Array, headers: pa.Array | None) -> tuple[pa.Array, pa.Array | None]:
        return self.inner.unframed(column, headers)


class _OfOneSize(WindowedSerde):
    """Keys in windows of one size, so that the end of a window follows from its start.

    Parameters
    ----------
    inner : Serde
        Serde of the key inside.
    size_ms : int
        Length of the windows in milliseconds.
    """

    def __init__(self, inner: Serde[Any], size_ms: int) -> None:
        super().__init__(inner)
        self.size_ms = size_ms

    def serialize(self, value: Windowed[Any]) -> bytes:
        window = value.window
        if window.end_ms - window.start_ms != self.size_ms:
            raise SerdeError(f"{window} is no window of {self.size_ms} ms")
        return time_window_key(self.inner.serialize(value.key), window)


class TimeWindowedSerde(_OfOneSize):
    """The inner key's bytes, then the window's start (8 bytes, big endian); the end follows from the size.

    Parameters
    ----------
    inner : Serde
        Serde of the key inside.
    size_ms : int
        Length of the windows in milliseconds.
    """

    def deserialize(self, data: bytes) -> Windowed[Any]:
        if len(data) < _START.size:
            raise decode_error("a windowed key", data, "its window start is missing")
        start_ms = _START.unpack(data[-8:])[0]
        return Windowed(self.inner.deserialize(data[:-8]), Window(start_ms, start_ms + self.size_ms))


class SessionWindowedSerde(WindowedSerde):
    """The inner key's bytes, then the session's end and start (8 bytes each, big endian)."""

    def serialize(self, value: Windowed[Any]) -> bytes:
        return session_key(self.inner.serialize(value.key), value.window)

    def deserialize(self, data: bytes) -> Windowed[Any]:
        if len(data) < _END_START.size:
            raise decode_error("a session key", data, "its end and start are missing")
        end_ms, start_ms = _END_START.unpack(data[-16:])
        return Windowed(self.inner.deserialize(data[:-16]), Window(start_ms, end_ms))


class WindowRowSerde(_OfOneSize):
    """The keys of a window store's changelog: the inner key's bytes, the window's start, a sequence number (4 bytes).

    Parameters
    ----------
    inner : Serde
        Serde of the key inside.
    size_ms : int
        Length of the windows in milliseconds.
    """

    def serialize(self, value: Windowed[Any]) -> bytes:
        return super().serialize(value) + bytes(4)

    def deserialize(self, data: bytes) -> Windowed[Any]:
        if len(data) < _START.size + 4:
            raise decode_error("a key of a window store", data, "its window start or number is missing")
        start_ms = _START.unpack(data[-12:-4])[0]
        return Windowed(self.inner.deserialize(data[:-12]), Window(start_ms, start_ms + self.size_ms))
