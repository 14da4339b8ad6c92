"""Conversion of JSON texts and numbers into times, decimals, bytes and other plain values."""

from __future__ import annotations

import decimal
from typing import Any

import msgspec

from kstreams.errors import SerdeError
from kstreams.kernel.decoders import convert


def of_class(value: object, cls: type, place: str) -> Any:
    """Convert JSON into a value of a class: times from ISO 8601, bytes from base64.

    Parameters
    ----------
    value : object
    cls : type
    place : str
        The field, for errors.

    Examples
    --------
    >>> import datetime
    >>> of_class("2026-01-31", datetime.date, "due")
    datetime.date(2026, 1, 31)
    >>> of_class(12.5, decimal.Decimal, "price")
    Decimal('12.5')
    """
    if cls is decimal.Decimal and isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)  # the decimal digits of 12.5, not the nearest binary fraction
    if cls is bytes and isinstance(value, dict) and value.keys() == {"base64"}:
        value = value["base64"]
    try:
        return convert(value, cls)
    except msgspec.ValidationError as error:
        raise misfit(value, cls.__name__, place, str(error)) from None


def misfit(value: object, type_name: str, place: str, why: str = "") -> SerdeError:
    """Return the error for JSON that is no value of a field's type."""
    prefix = f"field {place}: " if place else ""
    return SerdeError(f"{prefix}{value!r} is no {type_name}{f': {why}' if why else ''}")


def within(place: str, name: str) -> str:
    """Return the path of a field within a field."""
    return f"{place}.{name}" if place else name
