"""Typed MessagePack, written and checked by msgspec: compact, and exact where JSON is not (NaN and infinity)."""

from __future__ import annotations

from typing import Any

import msgspec

from kstreams.errors import SerdeError
from kstreams.serdes.base import Serde, decode_error

_encode = msgspec.msgpack.Encoder().encode


class MsgpackSerde(Serde[Any]):
    """Values of one type as MessagePack: what stores of aggregations by expression hold.

    Parameters
    ----------
    kind : type
        Anything that msgspec reads and writes.

    Examples
    --------
    >>> MsgpackSerde(tuple[int, float]).deserialize(MsgpackSerde(tuple[int, float]).serialize((1, float("inf"))))
    (1, inf)
    """

    def __init__(self, kind: Any) -> None:
        try:
            self._decode = msgspec.msgpack.Decoder(kind).decode
        except (TypeError, NameError) as error:
            raise SerdeError(f"{kind!r} has no serde; declare a supported type or pass a Serde: {error}") from error
        self.type = kind

    def serialize(self, value: Any) -> bytes:
        try:
            return _encode(value)
        except (TypeError, ValueError, OverflowError, msgspec.MsgspecError) as error:
            raise SerdeError(f"{value!r} cannot be written as MessagePack: {error}") from error

    def deserialize(self, data: bytes) -> Any:
        try:
            return self._decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise decode_error(f"MessagePack of {self.type}", data, error) from error

    def __reduce__(self) -> Any:
        return MsgpackSerde, (self.type,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MsgpackSerde) and self.type == other.type

    def __hash__(self) -> int:
        return hash(str(self.type))

    def __repr__(self) -> str:
        return f"MsgpackSerde({self.type})"
