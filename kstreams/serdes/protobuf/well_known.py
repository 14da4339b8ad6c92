"""Conversions of Protobuf's well-known messages: timestamps, durations, dates, times of day, decimals and JSON."""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Callable
from typing import Any

from google.protobuf.message import Message

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICROSECOND = datetime.timedelta(microseconds=1)
_MICROS_PER_SECOND = 1_000_000
_NANOS_PER_SECOND = 1_000_000_000
_MAX_DURATION_S = 315_576_000_000
"""The limit of google/protobuf/duration.proto: 10,000 years."""
_EXACT = decimal.Context(prec=decimal.MAX_PREC, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
_MAX_SCALE = 2**31 - 1


def read_timestamp(message: Message) -> datetime.datetime:
    """Return a `google.protobuf.Timestamp` in UTC. Nanoseconds are truncated to microseconds."""
    if not 0 <= message.nanos < _NANOS_PER_SECOND:
        raise ValueError(f"a Timestamp has 0 to 999,999,999 nanoseconds, not {message.nanos}")
    return _EPOCH + datetime.timedelta(seconds=message.seconds, microseconds=message.nanos // 1000)


def write_timestamp(value: datetime.datetime, message: Message) -> None:
    if value.utcoffset() is None:
        raise ValueError(f"{value!r} has no time zone, and a Timestamp is an instant: add a time zone, such as UTC")
    since_epoch = value - _EPOCH
    message.seconds = since_epoch.days * 86_400 + since_epoch.seconds
    message.nanos = since_epoch.microseconds * 1000


def read_duration(message: Message) -> datetime.timedelta:
    """Return a `google.protobuf.Duration`. Nanoseconds are truncated to microseconds."""
    seconds = message.seconds
    nanos = message.nanos
    if abs(nanos) >= _NANOS_PER_SECOND or seconds * nanos < 0:
        raise ValueError(f"a Duration of {seconds} seconds and {nanos} nanoseconds does not exist")
    micros = nanos // 1000 if nanos >= 0 else -(-nanos // 1000)
    return datetime.timedelta(seconds=seconds, microseconds=micros)


def write_duration(value: datetime.timedelta, message: Message) -> None:
    micros = value // _MICROSECOND
    sign = -1 if micros < 0 else 1
    seconds, remainder = divmod(abs(micros), _MICROS_PER_SECOND)
    if seconds > _MAX_DURATION_S:
        raise ValueError(f"{value!r} is longer than the 10,000 years of a Duration")
    message.seconds = sign * seconds
    message.nanos = sign * remainder * 1000


def read_date(message: Message) -> datetime.date:
    return datetime.date(message.year, message.month, message.day)


def write_date(value: datetime.date, message: Message) -> None:
    if isinstance(value, datetime.datetime):
        raise ValueError(f"{value!r} is a datetime, and its field holds a date: call its date()")
    message.year = value.year
    message.month = value.month
    message.day = value.day


def read_time(message: Message) -> datetime.time:
    """Return a `google.type.TimeOfDay`. Nanoseconds are truncated to microseconds."""
    return datetime.time(message.hours, message.minutes, message.seconds, message.nanos // 1000)


def write_time(value: datetime.time, message: Message) -> None:
    if value.tzinfo is not None:
        raise ValueError(f"{value!r} has a time zone, and a TimeOfDay has none: remove the time zone")
    message.hours = value.hour
    message.minutes = value.minute
    message.seconds = value.second
    message.nanos = value.microsecond * 1000


def read_decimal(message: Message) -> decimal.Decimal:
    """Return a `confluent.type.Decimal`: an unscaled integer, big endian, and a scale."""
    unscaled = decimal.Decimal(int.from_bytes(message.value, "big", signed=True))
    return unscaled.scaleb(-message.scale, _EXACT)


def write_decimal(value: decimal.Decimal, message: Message) -> None:
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or abs(exponent) > _MAX_SCALE:
        raise ValueError(f"{value!r} is no number that a confluent.type.Decimal holds")
    unscaled = int(value.scaleb(-exponent, _EXACT))
    if sign and not unscaled:
        raise ValueError(f"{value!r} would be read back without its sign")
    length = (unscaled if unscaled >= 0 else ~unscaled).bit_length() // 8 + 1
    message.value = unscaled.to_bytes(length, "big", signed=True)
    message.precision = len(digits)
    message.scale = -exponent


def read_json(message: Message) -> object:
    """Return the value of a `google.protobuf.Value`, whose numbers are floats."""
    kind = message.WhichOneof("kind")
    return None if kind is None else _READ_JSON[kind](getattr(message, kind))


def read_json_object(message: Message) -> dict[str, object]:
    """Return a `google.protobuf.Struct` as a dict."""
    return {name: read_json(value) for name, value in message.fields.items()}


def read_json_list(message: Message) -> list[object]:
    """Return a `google.protobuf.ListValue` as a list."""
    return list(map(read_json, message.values))


def _unchanged(value: object) -> Any:
    return value


_READ_JSON: dict[str, Callable[[object], object]] = {
    "null_value": lambda value: None,
    "number_value": _unchanged,
    "string_value": _unchanged,
    "bool_value": _unchanged,
    "struct_value": read_json_object,
    "list_value": read_json_list,
}


def write_json(value: object, message: object) -> None:
    write = _WRITE_JSON.get(type(value))
    if write is None:
        raise ValueError(
            f"{value!r} is no JSON value, as a google.protobuf.Value is: use dict, list, str, float, bool or None"
        )
    write(value, message)


def write_json_object(value: dict[str, Any], message: Message) -> None:
    message.SetInParent()
    for name, part in value.items():
        write_json(part, message.fields[name])


def write_json_list(value: list[Any], message: Message) -> None:
    message.SetInParent()
    for part in value:
        write_json(part, message.values.add())


def _write_null(value: None, message: Message) -> None:
    message.null_value = 0


def _write_number(value: float, message: Message) -> None:
    if value != float(value) and not math.isnan(value):
        raise ValueError(f"{value} is no 64-bit float, and a google.protobuf.Value holds no other numbers")
    message.number_value = value


def _write_text(value: str, message: Message) -> None:
    message.string_value = value


def _write_bool(value: bool, message: Message) -> None:
    message.bool_value = value


_WRITE_JSON: dict[type, Callable[[Any, Message], None]] = {
    type(None): _write_null,
    bool: _write_bool,
    int: _write_number,
    float: _write_number,
    str: _write_text,
    dict: lambda value, message: write_json_object(value, message.struct_value),
    list: lambda value, message: write_json_list(value, message.list_value),
}
