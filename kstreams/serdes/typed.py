"""Serdes of one declared type, written and checked by msgspec in one of its formats."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from kstreams.errors import SerdeError
from kstreams.serdes.base import Serde, decode_error
from kstreams.serdes.plain_classes import plain_classes


class TypedSerde(Serde[Any]):
    """Values of one type; what is read is checked against it. A subclass names the format."""

    format: ClassVar[str]
    encoder: ClassVar[Any]
    decoder: ClassVar[Any]

    def __init__(self, kind: Any) -> None:
        try:
            self._decoder, unknown = self.decoder(kind), plain_classes(kind)
        except (TypeError, NameError) as error:
            raise SerdeError(f"{kind!r} has no serde; declare a supported type or pass a Serde: {error}") from error
        if unknown:
            names = " and ".join(sorted(found.__name__ for found in unknown))
            raise SerdeError(
                f"no serde can write {names}: make it a dataclass, a msgspec.Struct or a pydantic model, or pass a "
                "Serde of your own"
            )
        self.type, self._decode = kind, self._decoder.decode

    def serialize(self, value: Any) -> bytes:
        try:
            data: bytes = self.encoder.encode(value)
        except (TypeError, ValueError, OverflowError, msgspec.MsgspecError) as error:
            raise SerdeError(f"{value!r} cannot be written as {self.format}: {error}") from error
        return data

    def deserialize(self, data: bytes) -> Any:
        try:
            return self._decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise decode_error(f"{self.format} of {self.type}", data, error) from error

    def __reduce__(self) -> Any:
        return type(self), (self.type,)  # a decoder does not travel: it is made anew from the type

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TypedSerde) and type(other) is type(self) and self.type == other.type

    def __hash__(self) -> int:
        return hash(str(self.type))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({getattr(self.type, '__name__', self.type)})"
