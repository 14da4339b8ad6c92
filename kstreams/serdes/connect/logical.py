"""`ConnectLogicalType`: decimals, dates, times and durations of Kafka Connect and Debezium, and their conversions.

A database has times that Python does not have. The infinities of a date or a timestamp become the last and the first
one that Python has (`date.max`, `datetime.min`). Any other year after 9999 or before 1 is an error.
"""

from __future__ import annotations

import datetime as dt
import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import MAX_EMAX, MAX_PREC, MIN_EMIN, Context, Decimal, InvalidOperation
from functools import partial
from typing import Any, Final

import msgspec

from kstreams.kernel.decoders import json_decoder
from kstreams.serdes.connect.schema import ConnectSchema

EPOCH: Final = dt.datetime(1970, 1, 1)
_FIRST_DAY = EPOCH.toordinal()
_DAY_NS = 86_400_000_000_000
UNITS: Final = {"ms": 1_000_000, "us": 1_000, "ns": 1}
"""Nanoseconds of each unit of time."""
_SIGNED_TEXT = ("+", "-")
_AFTER_ALL_TIMES = frozenset({2**63 - 1, 9_223_372_036_825_200_000})
_BEFORE_ALL_TIMES = frozenset({-(2**63), -9_223_372_036_832_400_000})
_INFINITIES = {
    dt.datetime.max: (9_223_372_036_825_200_000, 2**63 - 1),
    dt.datetime.min: (-9_223_372_036_832_400_000, -(2**63)),
}
"""The infinities in milliseconds, and in finer units."""
_AFTER_ALL_DAYS = frozenset({2_146_033_979, -622_191_234})
_BEFORE_ALL_DAYS = frozenset({-2_147_472_691, -625_821_272})
"""The infinities of PostgreSQL as Debezium 3.7 writes them: in a change, and in a snapshot (an overflow)."""
_AFTER_ALL_TEXTS = ("infinity", "+292278994-", "+5877611-")
_BEFORE_ALL_TEXTS = ("-infinity", "-292275055-", "-5877611-", "+292269055-")
_EXACT = Context(prec=MAX_PREC, Emax=MAX_EMAX, Emin=MIN_EMIN)
_DURATION = re.compile(
    r"(?P<sign>-?)P(?:(?P<years>-?\d+)Y)?(?:(?P<months>-?\d+)M)?(?:(?P<days>-?\d+)D)?"
    r"(?:T(?:(?P<hours>-?\d+)H)?(?:(?P<minutes>-?\d+)M)?(?:(?P<seconds>-?\d+(?:\.\d+)?)S)?)?"
)


@dataclass(frozen=True, slots=True)
class ConnectLogicalType:
    """A logical type.

    Parameters
    ----------
    cls : type
        The class of values.
    wire : object
        The type of values in JSON.
    read : callable
        `JSON value -> value`. Raises ValueError for a value that the class does not have.
    write : callable
        `value -> JSON value`. Raises ValueError for a value that would not be read back.
    schema : ConnectSchema
        The schema that is written for the type.
    """

    cls: type
    wire: Any
    read: Callable[[Any], Any]
    write: Callable[[Any], Any]
    schema: ConnectSchema


def _is_infinite(raw: object, numbers: frozenset[int], texts: tuple[str, ...]) -> bool:
    return raw in numbers or (isinstance(raw, str) and raw.startswith(texts))


def _date(raw: int | str) -> dt.date:
    if _is_infinite(raw, _AFTER_ALL_DAYS, _AFTER_ALL_TEXTS):
        return dt.date.max
    if _is_infinite(raw, _BEFORE_ALL_DAYS, _BEFORE_ALL_TEXTS):
        return dt.date.min
    try:
        return dt.date.fromisoformat(raw.rstrip("Z")) if isinstance(raw, str) else dt.date.fromordinal(_FIRST_DAY + raw)
    except (ValueError, OverflowError) as error:
        raise _out_of_range(raw, "date") from error


def _out_of_range(raw: object, kind: str) -> ValueError:
    return ValueError(f"{raw!r} is no {kind} of Python (years 1 to 9999): declare the field as int or str to have it")


def _days(value: dt.date) -> int:
    if type(value) is not dt.date:
        raise ValueError(f"{value!r} is no date")
    return value.toordinal() - _FIRST_DAY


def _read_datetime(unit: int, zone: dt.tzinfo | None, drops_zone: bool, raw: int | str) -> dt.datetime:
    """Read a timestamp. A number is in `zone`; a text is in the zone that it names, unless `drops_zone`."""
    zone_of_infinity = zone if isinstance(raw, int) else (None if drops_zone else dt.UTC)
    if _is_infinite(raw, _AFTER_ALL_TIMES, _AFTER_ALL_TEXTS):
        return dt.datetime.max.replace(tzinfo=zone_of_infinity)
    if _is_infinite(raw, _BEFORE_ALL_TIMES, _BEFORE_ALL_TEXTS):
        return dt.datetime.min.replace(tzinfo=zone_of_infinity)
    try:
        if isinstance(raw, int):
            return (EPOCH + dt.timedelta(microseconds=raw * unit // 1000)).replace(tzinfo=zone)
        instant = dt.datetime.fromisoformat(raw)
    except (ValueError, OverflowError) as error:
        raise _out_of_range(raw, "datetime") from error
    if drops_zone:
        return instant.replace(tzinfo=None)
    return instant if instant.tzinfo else instant.replace(tzinfo=zone)


def _write_datetime(unit: int, zone: dt.tzinfo | None, value: dt.datetime) -> int:
    if not isinstance(value, dt.datetime) or (value.utcoffset() is None) is not (zone is None):
        raise ValueError(f"{value!r} is no datetime with{'out' if zone is None else ''} a time zone")
    naive = value if zone is None else value.astimezone(dt.UTC).replace(tzinfo=None)
    if naive in _INFINITIES:
        return _INFINITIES[naive][0 if unit == UNITS["ms"] else 1]
    return _in_unit((naive - EPOCH) // dt.timedelta(microseconds=1), unit, value)


def _in_unit(microseconds: int, unit: int, value: object) -> int:
    number, remainder = divmod(microseconds * 1000, unit)
    if remainder:
        raise ValueError(
            f"{value!r} has microseconds, which milliseconds do not hold: declare the unit, as in "
            'Annotated[datetime, msgspec.Meta(extra={"unit": "us"})]'
        )
    return number


def _write_zoned(value: dt.datetime) -> str:
    if not isinstance(value, dt.datetime) or value.utcoffset() is None:
        raise ValueError(f"{value!r} is no datetime with a time zone")
    return value.astimezone(dt.UTC).isoformat().replace("+00:00", "Z")


def _write_by_zone(unit: int, value: dt.datetime) -> int | str:
    """Write a timestamp as Debezium does: as text if it has a zone, otherwise as a number."""
    has_zone = isinstance(value, dt.datetime) and value.utcoffset() is not None
    return _write_zoned(value) if has_zone else _write_datetime(unit, None, value)


def _read_time(unit: int, drops_zone: bool, raw: int | str) -> dt.time:
    if isinstance(raw, str):
        time = dt.time.fromisoformat(raw)
        return time.replace(tzinfo=None) if drops_zone else time
    if not 0 <= raw * unit < _DAY_NS:
        raise ValueError(f"{raw!r} is no time of Python: it is not within a day")
    return (EPOCH + dt.timedelta(microseconds=raw * unit // 1000)).time()


def _write_time(unit: int, value: dt.time) -> int | str:
    if not isinstance(value, dt.time):
        raise ValueError(f"{value!r} is no time of day")
    if value.tzinfo is not None:
        return value.isoformat().replace("+00:00", "Z")
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return _in_unit(seconds * 1_000_000 + value.microsecond, unit, value)


def _read_duration(unit: int, raw: int | str) -> dt.timedelta:
    return _duration_of_text(raw) if isinstance(raw, str) else dt.timedelta(microseconds=raw * unit // 1000)


def _duration_of_text(text: str) -> dt.timedelta:
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no duration of ISO 8601")
    parts = match.groupdict(default="0")
    if int(parts["years"]) or int(parts["months"]):
        raise ValueError(f"{text!r} has years or months, which no timedelta holds: declare the field as str to have it")
    length = dt.timedelta(
        days=int(parts["days"]),
        hours=int(parts["hours"]),
        minutes=int(parts["minutes"]),
        microseconds=int(Decimal(parts["seconds"]) * 1_000_000),
    )
    return -length if parts["sign"] == "-" else length


def _write_duration(unit: int, value: dt.timedelta) -> int:
    if not isinstance(value, dt.timedelta):
        raise ValueError(f"{value!r} is no timedelta")
    return _in_unit(value // dt.timedelta(microseconds=1), unit, value)


_TIME = int | str
"""Dates and times are numbers, or text of ISO 8601."""


def _named(kind: str, name: str, **parameters: str) -> ConnectSchema:
    return ConnectSchema(type=kind, name=name, parameters=parameters)


_CONNECT = "org.apache.kafka.connect.data."
_DEBEZIUM = "io.debezium.time."


def date_type(name: str = f"{_CONNECT}Date") -> ConnectLogicalType:
    """Return the type of dates: days since 1970."""
    return ConnectLogicalType(dt.date, _TIME, _date, _days, _named("int32", name))


_TIME_NAMES = {"ms": f"{_CONNECT}Time", "us": f"{_DEBEZIUM}MicroTime", "ns": f"{_DEBEZIUM}NanoTime"}
_NAIVE_NAMES = {
    "ms": f"{_DEBEZIUM}Timestamp",
    "us": f"{_DEBEZIUM}MicroTimestamp",
    "ns": f"{_DEBEZIUM}NanoTimestamp",
}
_DURATION_NAMES = {"us": f"{_DEBEZIUM}MicroDuration", "ns": f"{_DEBEZIUM}NanoDuration"}


def time_type(unit: str, *, drops_zone: bool = False) -> ConnectLogicalType:
    """Return the type of times of day in a unit. A time with a zone is a text."""
    schema = _named("int32" if unit == "ms" else "int64", _TIME_NAMES[unit])
    read = partial(_read_time, UNITS[unit], drops_zone)
    return ConnectLogicalType(dt.time, _TIME, read, partial(_write_time, UNITS[unit]), schema)


def naive_datetime_type(unit: str) -> ConnectLogicalType:
    """Return the type of timestamps without a zone, as numbers in a unit."""
    read = partial(_read_datetime, UNITS[unit], None, True)
    write = partial(_write_datetime, UNITS[unit], None)
    return ConnectLogicalType(dt.datetime, _TIME, read, write, _named("int64", _NAIVE_NAMES[unit]))


def aware_datetime_type(unit: str) -> ConnectLogicalType:
    """Return the type of timestamps with a zone: numbers in milliseconds, or text, which has finer units."""
    read = partial(_read_datetime, UNITS[unit], dt.UTC, False)
    if unit != "ms":
        return ConnectLogicalType(
            dt.datetime, _TIME, read, _write_zoned, _named("string", f"{_DEBEZIUM}ZonedTimestamp")
        )
    write = partial(_write_datetime, UNITS[unit], dt.UTC)
    return ConnectLogicalType(dt.datetime, _TIME, read, write, _named("int64", f"{_CONNECT}Timestamp"))


def column_datetime_type(unit: str) -> ConnectLogicalType:
    """Return the type of timestamps as Debezium writes them: with a zone as text, without one as numbers."""
    read = partial(_read_datetime, UNITS[unit], None, False)
    schema = _named("int64", _NAIVE_NAMES[unit])
    return ConnectLogicalType(dt.datetime, _TIME, read, partial(_write_by_zone, UNITS[unit]), schema)


def duration_type(unit: str) -> ConnectLogicalType:
    """Return the type of durations in a unit. Kafka Connect itself has no durations."""
    unit = "us" if unit == "ms" else unit
    read = partial(_read_duration, UNITS[unit])
    write = partial(_write_duration, UNITS[unit])
    return ConnectLogicalType(dt.timedelta, _TIME, read, write, _named("int64", _DURATION_NAMES[unit]))


def decimal_type(scale: int | None, form: str) -> ConnectLogicalType:
    """Return the type of decimals.

    Parameters
    ----------
    scale : int or None
        The digits after the point. None if it is unknown: numbers in Base64 cannot be read then.
    form : {"base64", "numeric", "text"}
        How decimals are written, and whether a text holds Base64 or digits. Numbers are always read.
    """
    read = partial(_read_decimal, scale, form == "text")
    write = partial(_DECIMAL_WRITERS[form], scale)
    if form == "text":
        schema = ConnectSchema(type="string")
    elif scale is None:
        schema = _VARIABLE_SCALE
    else:
        schema = _named("bytes", f"{_CONNECT}Decimal", scale=str(scale))
    return ConnectLogicalType(Decimal, msgspec.Raw, read, write, schema)


_VARIABLE_SCALE = ConnectSchema(
    type="struct",
    name="io.debezium.data.VariableScaleDecimal",
    fields={"scale": ConnectSchema(type="int32"), "value": ConnectSchema(type="bytes")},
)


class _VariableScaleDecimal(msgspec.Struct):
    scale: int
    value: str


_TEXT_DECODER = json_decoder(str)
_VARIABLE_SCALE_DECODER = json_decoder(_VariableScaleDecimal)


def _read_decimal(scale: int | None, is_text: bool, raw: msgspec.Raw) -> Decimal:
    data = bytes(raw)
    if data.startswith(b"{"):
        decimal = _VARIABLE_SCALE_DECODER.decode(data)
        return _unscaled(decimal.value, decimal.scale)
    if data == b"null":
        raise ValueError("null is no decimal")
    if not data.startswith(b'"'):
        return _number(data.decode())
    text = _TEXT_DECODER.decode(data)
    return _number(text) if is_text or text in _NOT_FINITE else _unscaled(text, _known_scale(scale, text))


def _known_scale(scale: int | None, text: str) -> int:
    if scale is not None:
        return scale
    raise ValueError(
        f"{text!r} is a decimal in Base64 without its scale: declare the scale, as in Annotated[Decimal, "
        'msgspec.Meta(extra={"scale": 2})], let the converter write schemas (schemas.enable=true), or let it write '
        "digits (decimal.format=NUMERIC; for Debezium decimal.handling.mode=string)"
    )


_NOT_FINITE = frozenset({"NaN", "NAN", "Infinity", "-Infinity", "POSITIVE_INFINITY", "NEGATIVE_INFINITY"})


def _number(text: str) -> Decimal:
    try:
        return Decimal(text.replace("POSITIVE_", "").replace("NEGATIVE_", "-"))
    except InvalidOperation as error:
        raise ValueError(f"{text!r} is no decimal: if it is Base64, do not declare that decimals are text") from error


def _unscaled(text: str, scale: int) -> Decimal:
    try:
        number = int.from_bytes(b64decode(text, validate=True), "big", signed=True)
    except Base64Error as error:
        raise ValueError(f"{text!r} is no decimal in Base64: declare that decimals are text") from error
    return Decimal(number).scaleb(-scale, _EXACT)


def _write_base64(scale: int | None, value: Decimal) -> object:
    exponent = int(_finite(value).as_tuple().exponent)
    if scale is None:
        return {"scale": -exponent, "value": _base64(int(value.scaleb(-exponent, _EXACT)))}
    unscaled = value.scaleb(scale, _EXACT)
    if unscaled != int(unscaled):
        raise ValueError(f"{value} has more than {scale} digits after the point")
    return _base64(int(unscaled))


def _base64(number: int) -> str:
    size = (number + (number < 0)).bit_length() // 8 + 1
    return b64encode(number.to_bytes(size, "big", signed=True)).decode()


def _finite(value: Decimal) -> Decimal:
    if not isinstance(value, Decimal) or not value.is_finite():
        raise ValueError(f"{value!r} is no finite Decimal")
    return value


def _write_numeric(scale: int | None, value: Decimal) -> msgspec.Raw | str:
    text = _write_text(scale, value)
    return msgspec.Raw(text.encode()) if value.is_finite() else text


def _write_text(scale: int | None, value: Decimal) -> str:
    if not isinstance(value, Decimal):
        raise ValueError(f"{value!r} is no Decimal")
    return f"{value:f}"


_DECIMAL_WRITERS: dict[str, Callable[[int | None, Decimal], object]] = {
    "base64": _write_base64,
    "numeric": _write_numeric,
    "text": _write_text,
}


@dataclass(frozen=True, slots=True)
class Conventions:
    """How values are written that carry no schema, or whose schema leaves it open.

    Parameters
    ----------
    unit : {"ms", "us", "ns"}
        The unit of times that are numbers.
    is_naive : bool
        True if timestamps that are numbers have no time zone.
    decimals : {"base64", "numeric", "text"}
    """

    unit: str = "ms"
    is_naive: bool = False
    decimals: str = "base64"


@dataclass(frozen=True, slots=True)
class FieldSettings:
    """What the annotation of a field says about its type.

    Parameters
    ----------
    extra : mapping
        The `extra` of `msgspec.Meta`: `unit` of times, `scale` of decimals.
    is_naive : bool
        True for `msgspec.Meta(tz=False)`.
    """

    extra: Mapping[str, Any]
    is_naive: bool


def logical_of_class(cls: object, settings: FieldSettings, conventions: Conventions) -> ConnectLogicalType | None:
    """Return the logical type of a class by the conventions, or None if the class has none."""
    unit = settings.extra.get("unit", conventions.unit)
    if cls is dt.date:
        return date_type()
    if cls is dt.time:
        return time_type(unit, drops_zone=settings.is_naive)
    if cls is dt.datetime:
        return _datetime_of_class(unit, settings, conventions)
    if cls is dt.timedelta:
        return duration_type(unit)
    return decimal_type(settings.extra.get("scale"), conventions.decimals) if cls is Decimal else None


def _datetime_of_class(unit: str, settings: FieldSettings, conventions: Conventions) -> ConnectLogicalType:
    if settings.is_naive:
        return naive_datetime_type(unit)
    return column_datetime_type(unit) if conventions.is_naive else aware_datetime_type(unit)


def logical_of_schema(
    schema: ConnectSchema, settings: FieldSettings, conventions: Conventions
) -> ConnectLogicalType | None:
    """Return the logical type that a schema names, or None if it names none that is known."""
    kind = schema.name.rpartition(".")[2]
    if kind not in _TYPE_OF_NAME or not schema.name.startswith((_CONNECT, "io.debezium.")):
        return None
    return _TYPE_OF_NAME[kind](schema, settings, conventions)


def _named_decimal(schema: ConnectSchema, settings: object, conventions: Conventions) -> ConnectLogicalType:
    form = "numeric" if conventions.decimals == "numeric" else "base64"
    return decimal_type(int(schema.parameters.get("scale", 0)), form)


def _named_time(unit: str, schema: object, settings: object, conventions: object) -> ConnectLogicalType:
    return time_type(unit, drops_zone=True)


def _named_datetime(
    unit: str, schema: ConnectSchema, settings: FieldSettings, conventions: Conventions
) -> ConnectLogicalType:
    is_of_column = not schema.name.startswith(_CONNECT) or conventions.is_naive
    return naive_datetime_type(unit) if is_of_column or settings.is_naive else aware_datetime_type(unit)


def _zoned_datetime(schema: object, settings: FieldSettings, conventions: object) -> ConnectLogicalType:
    return naive_datetime_type("us") if settings.is_naive else aware_datetime_type("us")


_ByName = Callable[[ConnectSchema, FieldSettings, Conventions], ConnectLogicalType]
_TYPE_OF_NAME: dict[str, _ByName] = {
    "Decimal": _named_decimal,
    "VariableScaleDecimal": lambda schema, settings, conventions: decimal_type(None, "base64"),
    **dict.fromkeys(("Date", "IsoDate"), lambda schema, settings, conventions: date_type(schema.name)),
    "Time": partial(_named_time, "ms"),
    "MicroTime": partial(_named_time, "us"),
    "NanoTime": partial(_named_time, "ns"),
    "IsoTime": partial(_named_time, "us"),
    "ZonedTime": lambda schema, settings, conventions: time_type("us", drops_zone=settings.is_naive),
    "Timestamp": partial(_named_datetime, "ms"),
    "MicroTimestamp": partial(_named_datetime, "us"),
    "NanoTimestamp": partial(_named_datetime, "ns"),
    "IsoTimestamp": partial(_named_datetime, "us"),
    "ZonedTimestamp": _zoned_datetime,
    "MicroDuration": lambda schema, settings, conventions: duration_type("us"),
    "NanoDuration": lambda schema, settings, conventions: duration_type("ns"),
    "Interval": lambda schema, settings, conventions: duration_type("us"),
}
