"""`same_value`: whether a value that was read back is the one that was written, where NaN counts as equal to NaN."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec

from kstreams.decoders import decode_json

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def same_value(written: Any, read: Any) -> bool:
    """Whether two values are equal; of objects with fields the fields decide, whatever their `==` says.

    Examples
    --------
    >>> same_value([float("nan"), 1], [float("nan"), 1.0]), same_value((1, 2), [1, 2])
    (True, False)
    """
    if isinstance(written, msgspec.Raw):
        return same_value(decode_json(written), read)
    if type(written) is not type(read):
        return bool(written == read)
    return _comparison(type(written))(written, read)


def _comparison(kind: type) -> Callable[[Any, Any], bool]:
    for base, compare in _BY_BASE.items():
        if issubclass(kind, base):
            return compare
    fields = _fields(kind)
    return _plain if fields is None else lambda written, read: _attributes(fields, written, read)


def _fields(kind: Any) -> tuple[str, ...] | None:
    """The names of the fields of a class; None for a class without."""
    if issubclass(kind, msgspec.Struct):
        return tuple(kind.__struct_fields__)
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    return tuple(kind.model_fields) if hasattr(kind, "model_fields") else None


def _attributes(fields: tuple[str, ...], written: Any, read: Any) -> bool:
    return all(same_value(getattr(written, name), getattr(read, name)) for name in fields)


def _plain(written: Any, read: Any) -> bool:
    return bool(written == read) or repr(written) == repr(read) == "nan"


def _sequences(written: Any, read: Any) -> bool:
    return len(written) == len(read) and all(map(same_value, written, read))


def _dicts(written: Any, read: Any) -> bool:
    return len(written) == len(read) and all(
        name in read and same_value(part, read[name]) for name, part in written.items()
    )


def _datetimes(written: Any, read: Any) -> bool:
    """The same moment: a time that occurs twice in its zone is equal to none in another, not even to itself."""
    if written.utcoffset() is None or read.utcoffset() is None:
        return bool(written == read)
    return bool(written - _EPOCH == read - _EPOCH)


def _sets(written: Any, read: Any) -> bool:
    """NaN is in no set by its value, but it has one text."""
    return bool(written == read) or sorted(map(repr, written)) == sorted(map(repr, read))


_BY_BASE: dict[type, Callable[[Any, Any], bool]] = {
    list: _sequences,
    tuple: _sequences,
    dict: _dicts,
    set: _sets,
    frozenset: _sets,
    datetime: _datetimes,
    Decimal: lambda written, read: str(written) == str(read),  # a signaling NaN cannot be compared
}
