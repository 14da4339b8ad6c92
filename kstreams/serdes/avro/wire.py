"""Numbers and lengths in Avro's binary encoding, as the generated functions call them."""

from __future__ import annotations

import struct
from typing import Any, Final

MOST_EMPTY_ITEMS: Final = 1 << 20
"""How many items an array may have that take no bytes: a few bytes could claim any number of them."""

_LONG_BITS, _INT_BITS = 64, 32
_LOW = {bits: -(1 << bits - 1) for bits in (_INT_BITS, _LONG_BITS)}
_HIGH = {bits: (1 << bits - 1) - 1 for bits in (_INT_BITS, _LONG_BITS)}


class DamagedError(ValueError):
    """Bytes that no writer of the schema has written."""


class UnresolvedError(ValueError):
    """A value of the writer's schema that the reader's schema has no place for."""


class MisfitError(ValueError):
    """A value that the schema has no place for."""


def more(data: bytes, place: int, first: int) -> tuple[int, int]:
    """The rest of a number of more than one byte, not yet unfolded, and where it ends."""
    number, shift = first & 0x7F, 7
    while True:
        byte = data[place]
        place += 1
        number |= (byte & 0x7F) << shift
        if byte < 128:
            break
        shift += 7
        if shift > 63:
            raise DamagedError("a number has more than ten bytes")
    if number >> _LONG_BITS:
        raise DamagedError("a number has more than 64 bits")
    return number, place


def more_of_int(data: bytes, place: int, first: int) -> tuple[int, int]:
    """The same of a number of 32 bits."""
    number, place = more(data, place, first)
    if number >> _INT_BITS:
        raise DamagedError("a number has more than 32 bits")
    return number, place


def more_of_length(data: bytes, place: int, first: int) -> tuple[int, int]:
    """A length of more than one byte, unfolded, and where its number ends."""
    number, place = more(data, place, first)
    if number & 1 or number >> 1 > len(data) - place:
        raise DamagedError("a length goes beyond the end")
    return number >> 1, place


def encoded_number(number: int) -> bytes:
    """A number of up to 64 bits.

    Examples
    --------
    >>> encoded_number(-3), encoded_number(64)
    (b'\\x05', b'\\x80\\x01')
    """
    left = (number << 1) ^ (number >> 63)
    parts = []
    while left >= 1 << 14:
        parts.append(_WITH_MORE[left & 0x3FFF])
        left >>= 14
    parts.append(_LAST[left])
    return b"".join(parts)


def _last(number: int) -> bytes:
    return bytes((number,)) if number < 128 else bytes((number & 0x7F | 0x80, number >> 7))


_LAST: Final = tuple(_last(number) for number in range(1 << 14))
_WITH_MORE: Final = tuple(bytes((number & 0x7F | 0x80, number >> 7 | 0x80)) for number in range(1 << 14))


class Numbers(dict[int, bytes]):
    """The bytes of numbers by the number: small ones are known, others are made."""

    def __init__(self, bits: int) -> None:
        super().__init__((number, encoded_number(number)) for number in range(-256, 4096))
        self._low, self._high = _LOW[bits], _HIGH[bits]

    def __missing__(self, number: int) -> bytes:
        if not self._low <= number <= self._high:
            raise MisfitError(f"{number} has too many bits")
        return encoded_number(number)


LONGS, INTS = Numbers(_LONG_BITS), Numbers(_INT_BITS)

FLOAT, DOUBLE = struct.Struct("<f"), struct.Struct("<d")


def as_int(value: Any) -> int:
    """An integer of a class that inherits from `int`, as `IntEnum`s and booleans do."""
    if isinstance(value, int):
        return int(value)
    raise MisfitError(f"{value!r} is no int")


def as_float(value: Any) -> float:
    """A float, or an integer that is one too."""
    if isinstance(value, float) or (isinstance(value, int) and float(value) == value):
        return float(value)
    raise MisfitError(f"{value!r} is no float")


def as_text(value: Any) -> str:
    """A text of a class that inherits from `str`."""
    if isinstance(value, str):
        return str.__str__(value)
    raise MisfitError(f"{value!r} is no str")


def as_bytes(value: Any) -> bytes:
    """Bytes, or what equals them."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise MisfitError(f"{value!r} is no bytes")


def of_size(value: bytes, size: int) -> bytes:
    """Bytes of a fixed size."""
    if len(value) != size:
        raise MisfitError(f"{len(value)} bytes are not {size}")
    return value


def misfit(value: Any, what: str) -> Any:
    """Raise the error for a value of another type."""
    raise MisfitError(f"{value!r} is no {what}")
