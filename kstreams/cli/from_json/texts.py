"""Conversion of JSON texts and numbers into times, decimals, bytes and other plain values."""

from __future__ import annotations

import decimal
from typing import Any

import msgspec

from kstreams.errors import SerdeError
from kstreams.kernel.decoders import convert


def of_class(value: object, cls: type, path: str) -> Any:
    """Convert JSON into a value of a class: times from ISO 8601, bytes from base64.

    Parameters
    ----------
    value : object
    cls : type
    path : str
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
        raise misfit(value, cls.__name__, path, str(error)) from None


def misfit(value: object, type_name: str, path: str, why: str = "") -> SerdeError:
    """Return the error for JSON that is no value of a field's type."""
    prefix = f"field {path}: " if path else ""
    return SerdeError(f"{prefix}{value!r} is no {type_name}{f': {why}' if why else ''}")


def child_path(path: str, name: str) -> str:
    """Return the path of a field in another field."""
    return f"{path}.{name}" if path else name
