"""Typed JSON, written and checked by msgspec."""

from __future__ import annotations

from typing import Any

import msgspec

from kstreams.errors import SerdeError
from kstreams.serdes.base import Serde, decode_error

_encode = msgspec.json.Encoder().encode


class JsonSerde(Serde[Any]):
    """Values of one type as JSON; what is read is checked against the type.

    Parameters
    ----------
    kind : type
        A msgspec Struct, dataclass, TypedDict, list, dict, union or `typing.Any`.

    Examples
    --------
    >>> JsonSerde(dict[str, int]).serialize({"a": 1})
    b'{"a":1}'
    """

    def __init__(self, kind: Any) -> None:
        try:
            self._decode = msgspec.json.Decoder(kind).decode
        except (TypeError, NameError) as error:
            raise SerdeError(f"{kind!r} has no serde; declare a supported type or pass a Serde: {error}") from error
        self.type = kind

    def serialize(self, value: Any) -> bytes:
        try:
            return _encode(value)
        except (TypeError, ValueError, msgspec.MsgspecError) as error:
            raise SerdeError(f"{value!r} cannot be written as JSON: {error}") from error

    def deserialize(self, data: bytes) -> Any:
        try:
            return self._decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise decode_error(f"JSON of {self.type}", data, error) from error

    def __reduce__(self) -> Any:
        return JsonSerde, (self.type,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, JsonSerde) and self.type == other.type

    def __hash__(self) -> int:
        return hash(str(self.type))

    def __repr__(self) -> str:
        return f"JsonSerde({getattr(self.type, '__name__', self.type)})"
