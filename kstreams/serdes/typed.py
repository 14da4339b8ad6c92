"""Serdes of one declared type, written and checked by msgspec in one of its formats."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, ClassVar

import msgspec

from kstreams.errors import SerdeError
from kstreams.serdes.base import Serde, decode_error
from kstreams.serdes.plain_check import plain_check
from kstreams.serdes.plain_classes import plain_classes
from kstreams.serdes.same_value import same_value

UNWRITABLE = (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError)
"""What msgspec raises for a value that it cannot write."""


class TypedSerde(Serde[Any]):
    """Values of one type; what is read is checked against it, and what is written can be read.

    A value that is plainly of the type is written as it is. Any other is read back: if it is not the same then, it is
    refused. A subclass names the format.
    """

    format: ClassVar[str]
    encoder: ClassVar[Any]
    decoder: ClassVar[Any]

    def __init__(self, kind: Any) -> None:
        try:
            self._decoder = self.decoder(kind)
            unknown = plain_classes(kind)
        except (TypeError, NameError) as error:
            raise SerdeError(f"{kind!r} has no serde; declare a supported type or pass a Serde: {error}") from error
        if unknown:
            names = " and ".join(sorted(found.__name__ for found in unknown))
            raise SerdeError(
                f"no serde can write {names}: make it a dataclass, a msgspec.Struct or a pydantic model, or pass a "
                "Serde of your own"
            )
        self.type = kind
        self._decode = self._decoder.decode
        self._is_plain, self._are_plain = plain_check(kind)

    def serialize(self, value: Any) -> bytes:
        try:
            data: bytes = self.encoder.encode(value)
        except UNWRITABLE as error:
            raise SerdeError(f"{value!r} cannot be written as {self.format}: {error}") from error
        return data if self._is_plain(value) else self._readable(value, data)

    def _readable(self, value: Any, data: bytes) -> bytes:
        """The bytes of a value that reads back as it is; `data` is what was written of it at first.

        Raises
        ------
        SerdeError
            When it does not fit the type.
        """
        for form in chain((data,), self.other_forms(value)):
            try:
                read = self.deserialize(form)
            except SerdeError as error:
                reason = f"{error.__cause__ or error}"
            else:
                if same_value(value, read):
                    return form
                reason = f"it would be read back as {read!r}"
        kind = self.type.__name__ if isinstance(self.type, type) else self.type
        raise SerdeError(f"{value!r} does not fit {kind}: {reason}")

    def other_forms(self, value: Any) -> Iterator[bytes]:
        """Other bytes that may stand for a value, where the usual ones do not."""
        return iter(())

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
