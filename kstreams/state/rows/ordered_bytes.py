"""Values as bytes in the order of the values: equal values have equal bytes, and lesser values lesser bytes.

Numbers of all types are in one order, as in Python: 1, 1.0 and True have the same bytes. The bytes of a value are never
a prefix of those of another, so that they may be followed by other bytes.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec

from kstreams.errors import SerdeError

_FLOAT = struct.Struct(">d")
_BITS = struct.Struct(">Q")
_NUMBER = struct.Struct(">BQB")
_SIGN = 1 << 63
_ALL_BITS = (1 << 64) - 1
_MIDDLE = 1 << 71  # of the integers of 9 bytes, which the longest durations need
_EXACT = 2**53  # floats hold all integers up to this one
_FRACTION = 255  # the length of the rest of a number that is no integer
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

# The first byte; 0 ends a sequence.
_OF_NONE, _OF_NUMBER, _OF_TEXT, _OF_BYTES, _OF_DATE, _OF_TIME, _OF_DURATION, _OF_SEQUENCE, _OF_OTHER = range(1, 10)
_encoder = msgspec.msgpack.Encoder(order="deterministic")


def ordered_bytes(value: Any) -> bytes:
    """Return the bytes of a value.

    Parameters
    ----------
    value : number, str, bytes, datetime, date, timedelta, sequence of these
        Or a value that msgpack can encode: then equal values have equal bytes, in any order.

    Examples
    --------
    >>> values = [3, -2.5, 10**20, 10**20 + 1, 0]
    >>> sorted(values, key=ordered_bytes)
    [-2.5, 0, 3, 100000000000000000000, 100000000000000000001]
    >>> ordered_bytes(1) == ordered_bytes(1.0), ordered_bytes("a") < ordered_bytes("ab")
    (True, True)
    """
    write = _WRITERS.get(type(value))
    return _of_subtype(value) if write is None else write(value)


def has_order(value: object) -> bool:
    """Return whether the bytes of a value are in the order of values of its type: not for values that msgpack encodes.

    Examples
    --------
    >>> has_order((1, "a")), has_order({"a": 1})
    (True, False)
    """
    if not isinstance(value, _ORDERED_TYPES):
        return False
    return all(map(has_order, value)) if isinstance(value, tuple | list) else True


def _of_subtype(value: object) -> bytes:
    for kind, write in _WRITERS.items():
        if isinstance(value, kind):
            return write(value)
    try:
        return bytes([_OF_OTHER]) + _terminated(_encoder.encode(value))
    except TypeError as error:
        raise SerdeError(f"{value!r} cannot be a member of a group: {error}") from error


def _of_int(value: int) -> bytes:
    if -_EXACT <= value <= _EXACT:
        return _NUMBER.pack(_OF_NUMBER, _ordered_bits(float(value)), 0)
    try:
        floor = float(value)
    except OverflowError as error:
        raise SerdeError("an integer of more than 308 digits cannot be a member of a group") from error
    if int(floor) > value:
        floor = math.nextafter(floor, -math.inf)
    rest = value - int(floor)
    digits = rest.to_bytes((rest.bit_length() + 7) // 8, "big")
    return _NUMBER.pack(_OF_NUMBER, _ordered_bits(floor), len(digits)) + digits


def _of_float(value: float) -> bytes:
    return _NUMBER.pack(_OF_NUMBER, _ordered_bits(value), 0)


def _ordered_bits(number: float) -> int:
    bits: int = _BITS.unpack(_FLOAT.pack(number + 0.0))[0]  # the sum turns -0.0 into 0.0
    return bits ^ (_ALL_BITS if bits & _SIGN else _SIGN)


def _of_decimal(value: Decimal) -> bytes:
    if not value.is_finite():
        return _of_float(float(value))
    if value == value.to_integral_value():
        return _of_int(int(value))
    numerator, denominator = value.as_integer_ratio()
    floor = numerator / denominator
    below, unit = floor.as_integer_ratio()
    if below * denominator > numerator * unit:
        floor = math.nextafter(floor, -math.inf)
        below, unit = floor.as_integer_ratio()
    rest = numerator * unit - below * denominator  # divided by unit * denominator
    if not rest:
        return _of_float(floor)
    # The rest is less than one place of the float: as a share of the place, in decimal digits.
    place, place_unit = (math.nextafter(floor, math.inf) - floor).as_integer_ratio()
    share = _digits(rest * place_unit, unit * denominator * place)
    return _NUMBER.pack(_OF_NUMBER, _ordered_bits(floor), _FRACTION) + share + b"\0"


def _digits(numerator: int, denominator: int) -> bytes:
    """Return the decimal digits of a fraction below 1 whose denominator divides a power of ten."""
    digits = []
    while numerator:
        digit, numerator = divmod(numerator * 10, denominator)
        digits.append(digit)
    return bytes(digit + 1 for digit in digits)


def _of_text(value: str) -> bytes:
    return b"\x03" + _terminated(value.encode("utf-8", "surrogatepass"))


def _of_bytes(value: bytes) -> bytes:
    return b"\x04" + _terminated(bytes(value))


def _terminated(data: bytes) -> bytes:
    return data.replace(b"\0", b"\0\xff") + b"\0\0"


def _of_date(value: date) -> bytes:
    return _whole(_OF_DATE, value.toordinal())


def _of_time(value: datetime) -> bytes:
    since = (value.replace(tzinfo=UTC) if value.tzinfo is None else value) - _EPOCH
    return _whole(_OF_TIME, since // _MICROSECOND)


def _of_duration(value: timedelta) -> bytes:
    return _whole(_OF_DURATION, value // _MICROSECOND)


def _whole(tag: int, number: int) -> bytes:
    return bytes([tag]) + (number + _MIDDLE).to_bytes(9, "big")


def _of_sequence(value: Any) -> bytes:
    return bytes([_OF_SEQUENCE]) + b"".join(map(ordered_bytes, value)) + b"\0"


def _of_none(value: None) -> bytes:
    return bytes([_OF_NONE])


_WRITERS: dict[type, Callable[[Any], bytes]] = {
    bool: _of_int,
    int: _of_int,
    float: _of_float,
    str: _of_text,
    Decimal: _of_decimal,
    bytes: _of_bytes,
    datetime: _of_time,
    date: _of_date,
    timedelta: _of_duration,
    tuple: _of_sequence,
    list: _of_sequence,
    type(None): _of_none,
}
"""The functions by type. A subtype stands before its base."""
_ORDERED_TYPES = tuple(_WRITERS)
