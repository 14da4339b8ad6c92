"""Texts and numbers of JSON that stand for moments, decimals, bytes and the like."""

from __future__ import annotations

import decimal
from typing import Any

import msgspec

from kstreams.errors import SerdeError
from kstreams.kernel.decoders import convert


def of_class(value: object, cls: type, place: str) -> Any:
    """The value of a class that a piece of JSON stands for: ISO 8601 for times, base64 for bytes.

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
        value = str(value)  # 12.5 means these digits, not the nearest binary fraction
    if cls is bytes and isinstance(value, dict) and value.keys() == {"base64"}:
        value = value["base64"]
    try:
        return convert(value, cls)
    except msgspec.ValidationError as error:
        raise misfit(value, cls.__name__, place, str(error)) from None


def misfit(value: object, type_name: str, place: str, why: str = "") -> SerdeError:
    """The error for a piece of JSON that stands for no value of a field."""
    named = f"field {place}: " if place else ""
    return SerdeError(f"{named}{value!r} is no {type_name}{f': {why}' if why else ''}")


def within(place: str, name: str) -> str:
    """The name of a field in a field."""
    return f"{place}.{name}" if place else name
