"""`ChangeSerde`: changes of a table in a repartition topic, in the format of Kafka Streams (KIP-904)."""

from __future__ import annotations

import struct

from kstreams.record import Change
from kstreams.serdes.base import Serde, SerdeUse, decode_error, of_topic_within

_LENGTH = struct.Struct(">I")
_OLD = 0
_NEW = 1
_BOTH = 2
_NOT_LATEST = 3  # added to the flag if a byte before the flag says whether the change is the latest of its key


class ChangeSerde(Serde[Change]):
    """Changes as the new value, the old value or both, and a flag. Both are preceded by the length of the new value.

    Parameters
    ----------
    inner : Serde
        Serde of the values.

    Examples
    --------
    >>> from kstreams.serdes import StringSerde
    >>> ChangeSerde(StringSerde()).serialize(Change("b", "a"))
    b'\\x00\\x00\\x00\\x01ba\\x02'
    """

    def __init__(self, inner: Serde) -> None:
        self.inner = inner
        self.type = Change

    def of_topic(self, use: SerdeUse) -> Serde[Change]:
        return of_topic_within(self, "inner", use)

    @property
    def asks_registry(self) -> bool:
        return self.inner.asks_registry

    def serialize(self, value: Change) -> bytes:
        new = self._bytes(value.new)
        old = self._bytes(value.old)
        flag = _OLD if new is None else _NEW if old is None else _BOTH
        length = _LENGTH.pack(len(new)) if new is not None and old is not None else b""
        end = bytes([flag]) if value.is_latest else bytes([0, flag + _NOT_LATEST])
        return length + (new or b"") + (old or b"") + end

    def _bytes(self, value: object) -> bytes | None:
        return None if value is None else self.inner.serialize(value)

    def deserialize(self, data: bytes) -> Change:
        if not data or data[-1] > _BOTH + _NOT_LATEST:
            raise decode_error("a change", data, "its last byte is no known flag")
        with_latest = data[-1] >= _NOT_LATEST
        is_latest = not with_latest or data[-2:-1] == b"\x01"
        new, old = _split(data[: -2 if with_latest else -1], data[-1] % _NOT_LATEST)
        read = self.inner.deserialize
        return Change(None if new is None else read(new), None if old is None else read(old), is_latest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ChangeSerde) and self.inner == other.inner

    def __hash__(self) -> int:
        return hash((ChangeSerde, self.inner))


def _split(body: bytes, flag: int) -> tuple[bytes | None, bytes | None]:
    """Return the bytes of the new and of the old value."""
    if flag != _BOTH:
        return (body, None) if flag == _NEW else (None, body)
    if len(body) < _LENGTH.size:
        raise decode_error("a change", body, "the length of its new value is missing")
    end = _LENGTH.size + _LENGTH.unpack_from(body)[0]
    if end > len(body):
        raise decode_error("a change", body, "its new value is cut off")
    return body[_LENGTH.size : end], body[end:]
