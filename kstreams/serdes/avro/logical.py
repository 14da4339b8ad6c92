"""`LogicalType`: Avro's logical types, with the Python class of their values and the conversions in both directions."""

from __future__ import annotations

import datetime as dt
import decimal
import struct
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from kstreams.serdes.avro.field_errors import FieldError
from kstreams.serdes.avro.schema import SchemaNode

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_NAIVE_EPOCH = dt.datetime(1970, 1, 1)
_FIRST_DAY = dt.date(1970, 1, 1).toordinal()
_MICROSECOND = dt.timedelta(microseconds=1)
_DAY = 86_400_000_000
_DURATION = struct.Struct("<III")


class AvroDuration(NamedTuple):
    """A duration in Avro. Months and days have no fixed length.

    Parameters
    ----------
    months, days, milliseconds : int
    """

    months: int
    days: int
    milliseconds: int


@dataclass(frozen=True, slots=True)
class LogicalType:
    """A logical type.

    Parameters
    ----------
    cls : type
        The class of values.
    raw : type
        The class of values without the logical type.
    read : callable
        `raw value -> value`. Raises ValueError or OverflowError for a raw value without a counterpart.
    write : callable
        `value -> raw value`. Raises FieldError for a value that would not be read back.
    """

    cls: type
    raw: type
    read: Callable[[Any], Any]
    write: Callable[[Any], Any]


def logical_of(node: SchemaNode) -> LogicalType | None:
    """Return the logical type of a schema. None if the schema has none, or has one that is unknown or does not fit."""
    logical_type_of = _LOGICAL_TYPES.get((node["type"], node.get("logicalType")))
    return None if logical_type_of is None else logical_type_of(node)


def _date(node: object) -> LogicalType:
    return LogicalType(dt.date, int, lambda days: dt.date.fromordinal(_FIRST_DAY + days), _days)


def _days(value: object) -> int:
    if type(value) is not dt.date:
        raise FieldError(f"{value!r} is no date")
    return value.toordinal() - _FIRST_DAY


def _time(unit: int) -> Callable[[SchemaNode], LogicalType]:
    """Return the factory of the logical type for times of day in units of `unit` microseconds."""

    def read(number: int) -> dt.time:
        if not 0 <= number * unit < _DAY:
            raise FieldError(f"{number} is beyond the end of a day")
        return (_NAIVE_EPOCH + dt.timedelta(0, 0, number * unit)).time()

    def write(value: Any) -> int:
        if not isinstance(value, dt.time) or value.tzinfo is not None:
            raise FieldError(f"{value!r} is no time of day without a time zone")
        seconds = (value.hour * 60 + value.minute) * 60 + value.second
        return _whole(seconds * 1_000_000 + value.microsecond, unit, value)

    return lambda node: LogicalType(dt.time, int, read, write)


def _timestamp(unit: int, epoch: dt.datetime) -> Callable[[SchemaNode], LogicalType]:
    """Return the factory of the logical type for timestamps in units of `unit` microseconds.

    The timestamps have a time zone if the epoch has one.
    """
    is_naive = epoch.tzinfo is None
    timedelta = dt.timedelta

    def read(number: int) -> dt.datetime:
        return epoch + timedelta(0, 0, number * unit)

    def write(value: Any) -> int:
        if not isinstance(value, dt.datetime) or (value.utcoffset() is None) is not is_naive:
            raise FieldError(f"{value!r} is no datetime with{'out' if is_naive else ''} a time zone")
        since_epoch = value - epoch
        seconds = since_epoch.days * 86_400 + since_epoch.seconds
        return _whole(seconds * 1_000_000 + since_epoch.microseconds, unit, value)

    return lambda node: LogicalType(dt.datetime, int, read, write)


def _whole(microseconds: int, unit: int, value: object) -> int:
    """Convert microseconds to a unit. Raises FieldError if microseconds would be lost."""
    number, remainder = divmod(microseconds, unit)
    if remainder:
        raise FieldError(f"{value!r} has microseconds, which the schema does not keep")
    return number


def _decimal(node: SchemaNode) -> LogicalType:
    precision = node["precision"]
    scale = node.get("scale", 0)
    size = node.get("size") or (10**precision).bit_length() // 8 + 1
    context = decimal.Context(prec=precision + scale + 1, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
    limit = 10**precision
    is_fixed = node["type"] == "fixed"

    def read(data: bytes) -> decimal.Decimal:
        number = int.from_bytes(data, "big", signed=True) if len(data) <= size else limit
        if not -limit < number < limit:
            raise FieldError(f"{len(data)} bytes hold more than {precision} digits")
        return decimal.Decimal(number).scaleb(-scale, context)

    def write(value: Any) -> bytes:
        if not isinstance(value, decimal.Decimal) or not value.is_finite():
            raise FieldError(f"{value!r} is no finite Decimal")
        number = _unscaled(value, scale)
        if number is None or abs(number) >= limit:
            raise FieldError(f"{value} does not fit {precision} digits, {scale} of them after the decimal point")
        shortest = (number + (number < 0)).bit_length() // 8 + 1
        return number.to_bytes(size if is_fixed else shortest, "big", signed=True)

    return LogicalType(decimal.Decimal, bytes, read, write)


def _unscaled(value: decimal.Decimal, scale: int) -> int | None:
    """Return a decimal times 10 ** scale. None if the result is not a whole number, or is far too large."""
    sign, digits, exponent = value.as_tuple()
    shift = int(exponent) + scale
    number = int("".join(map(str, digits)) or "0")
    if shift > 1_000_000 and number:
        return None
    remainder = 0
    if shift >= 0:
        number *= int(10**shift)
    else:
        number, remainder = divmod(number, 10 ** min(-shift, len(digits) + 1))
    if remainder:
        return None
    return -number if sign else number


def _uuid_text(node: object) -> LogicalType:
    return LogicalType(uuid.UUID, str, uuid.UUID, lambda value: str(_require_uuid(value)))


def _uuid_bytes(node: SchemaNode) -> LogicalType | None:
    if node["size"] != 16:
        return None
    return LogicalType(uuid.UUID, bytes, lambda data: uuid.UUID(bytes=data), lambda value: _require_uuid(value).bytes)


def _require_uuid(value: object) -> uuid.UUID:
    if isinstance(value, uuid.UUID):
        return value
    raise FieldError(f"{value!r} is no UUID")


def _duration(node: SchemaNode) -> LogicalType | None:
    if node["size"] != _DURATION.size:
        return None
    return LogicalType(AvroDuration, bytes, lambda data: AvroDuration(*_DURATION.unpack(data)), _duration_bytes)


def _duration_bytes(value: object) -> bytes:
    duration = duration_of(value) if isinstance(value, dt.timedelta) else value
    if not isinstance(duration, AvroDuration):
        raise FieldError(f"{value!r} is no AvroDuration or timedelta")
    try:
        return _DURATION.pack(*duration)
    except struct.error as error:
        raise FieldError(f"{value!r} does not fit: {error}") from error


def duration_of(value: dt.timedelta) -> AvroDuration:
    """Convert a timedelta to a duration of days and milliseconds."""
    milliseconds = _whole(value.seconds * 1_000_000 + value.microseconds, 1000, value)
    if value.days < 0:
        raise FieldError(f"{value!r} is negative, and Avro has no negative durations")
    return AvroDuration(0, value.days, milliseconds)


def to_timedelta(value: AvroDuration) -> dt.timedelta:
    """Convert a duration to a timedelta. Raises FieldError if it has months, which have no fixed length."""
    if value.months:
        raise FieldError(f"{value} has months, which no timedelta holds")
    return dt.timedelta(days=value.days, milliseconds=value.milliseconds)


_LOGICAL_TYPES: Final[dict[tuple[str, Any], Callable[[SchemaNode], LogicalType | None]]] = {
    ("int", "date"): _date,
    ("int", "time-millis"): _time(1000),
    ("long", "time-micros"): _time(1),
    ("long", "timestamp-millis"): _timestamp(1000, _EPOCH),
    ("long", "timestamp-micros"): _timestamp(1, _EPOCH),
    ("long", "local-timestamp-millis"): _timestamp(1000, _NAIVE_EPOCH),
    ("long", "local-timestamp-micros"): _timestamp(1, _NAIVE_EPOCH),
    ("bytes", "decimal"): _decimal,
    ("fixed", "decimal"): _decimal,
    ("string", "uuid"): _uuid_text,
    ("fixed", "uuid"): _uuid_bytes,
    ("fixed", "duration"): _duration,
}
