"""`PositionedRow`: a row of a database with the position of its last change, as tables of changes store it."""

from __future__ import annotations

import struct
from typing import Any

import msgspec

from kstreams.serdes.base import Serde, SerdeUse, decode_error, of_topic_within

_POSITION = struct.Struct(">qB")


class PositionedRow(msgspec.Struct, frozen=True):
    """A row and the position of its last change.

    Parameters
    ----------
    row : object
    position : int
        See `kstreams.dsl.sugar.changed_rows`. Negative if the change had no position.
    awaits_tombstone : bool
        True after the copy of an earlier delete: the tombstone that follows it does not delete this row.
    """

    row: Any
    position: int
    awaits_tombstone: bool = False


class PositionedRowSerde(Serde[PositionedRow]):
    """Position (8 bytes), flag (1 byte) and row.

    Parameters
    ----------
    inner : Serde
        Serde of the rows.

    Examples
    --------
    >>> from kstreams.serdes import StringSerde
    >>> PositionedRowSerde(StringSerde()).serialize(PositionedRow("a", 7))
    b'\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x07\\x00a'
    """

    def __init__(self, inner: Serde) -> None:
        self.inner = inner
        self.type = PositionedRow

    def of_topic(self, use: SerdeUse) -> Serde[PositionedRow]:
        return of_topic_within(self, "inner", use)

    @property
    def asks_registry(self) -> bool:
        return self.inner.asks_registry

    def serialize(self, value: PositionedRow) -> bytes:
        return _POSITION.pack(value.position, value.awaits_tombstone) + self.inner.serialize(value.row)

    def deserialize(self, data: bytes) -> PositionedRow:
        if len(data) < _POSITION.size:
            raise decode_error("a row with its position", data, "it is too short")
        position, awaits_tombstone = _POSITION.unpack_from(data)
        return PositionedRow(self.inner.deserialize(data[_POSITION.size :]), position, bool(awaits_tombstone))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PositionedRowSerde) and self.inner == other.inner

    def __hash__(self) -> int:
        return hash((PositionedRowSerde, self.inner))

    def __repr__(self) -> str:
        return f"PositionedRowSerde({self.inner!r})"
