"""NaN and the infinities in JSON, which has no numbers for them.

They are written as Jackson does: as the strings "NaN", "Infinity" and "-Infinity". Every JSON parser reads these, and
typed readers (Jackson, Gson, pydantic, Spark) convert them to numbers. If the type does not tell a string from a number
(`Any`, `float | str`), they are written as bare tokens, as Python's `json` does. Both forms are read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from functools import partial, singledispatch
from typing import Any

import msgspec
from msgspec import inspect

from kstreams.kernel.decoders import convert, type_info

_TEXTS = {math.inf: "Infinity", -math.inf: "-Infinity"}
_NUMBERS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_WORDS = (b"NaN", b"Infinity")


def json_forms(builtins: object) -> Iterator[bytes]:
    """Yield the JSON forms of a value with NaN or infinities, the preferred one first. Other values have none.

    Parameters
    ----------
    builtins : object
        Consists of dicts, lists, strings, numbers and None.

    Examples
    --------
    >>> list(json_forms({"a": float("nan")})), list(json_forms({"a": 1.5}))
    ([b'{"a":"NaN"}', b'{"a":NaN}'], [])
    """
    if _holds_non_finite(builtins):
        yield msgspec.json.encode(_quoted(builtins))
        yield json.dumps(builtins, separators=(",", ":"), ensure_ascii=False).encode()


def with_texts(value: object) -> object:
    """Return a value with strings in place of NaN and infinities, or the value itself if it holds none.

    Examples
    --------
    >>> with_texts({"a": float("inf")}), with_texts(2.5)
    ({'a': 'Infinity'}, 2.5)
    """
    if b"null" not in msgspec.json.encode(value, enc_hook=str):
        return value
    builtins = msgspec.to_builtins(value, str_keys=True, enc_hook=str)
    return _quoted(builtins) if _holds_non_finite(builtins) else value


def _holds_non_finite(value: object) -> bool:
    if isinstance(value, dict):
        return _holds_non_finite([*value, *value.values()])
    return any(map(_holds_non_finite, value)) if isinstance(value, list | tuple) else _is_non_finite(value)


def _is_non_finite(value: object) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _quoted(value: Any) -> Any:
    """Return a value with strings in place of NaN and infinities."""
    if _is_non_finite(value):
        return _TEXTS.get(value, "NaN")
    if isinstance(value, dict):
        return {_quoted(key): _quoted(part) for key, part in value.items()}
    return [_quoted(part) for part in value] if isinstance(value, list | tuple) else value


def read_non_finite(data: bytes, kind: object) -> object:
    """Read JSON with NaN or infinities, as bare tokens, or as strings where the type is `float`.

    Raises
    ------
    ValueError
        If it holds neither, or is not of the type.

    Examples
    --------
    >>> read_non_finite(b'["NaN",Infinity,1]', list[float])
    [nan, inf, 1.0]
    """
    if not any(word in data for word in _WORDS):
        raise ValueError("it holds neither NaN nor infinities")
    builtins = json.loads(data)
    return convert(_revived(type_info(kind), builtins), kind, str_keys=True)


def with_numbers(kind: object) -> Callable[[object], object]:
    """Return the function that undoes `with_texts` for a type. For an unknown type, it changes nothing.

    Examples
    --------
    >>> with_numbers(dict[str, float])({"a": "Infinity"})
    {'a': inf}
    """
    try:
        return partial(_revived, type_info(kind))
    except (TypeError, NameError):
        return partial(_revived, None)


@singledispatch
def _revived(info: object, value: object) -> object:
    """Return a piece of JSON with numbers in place of strings where the type is `float`."""
    return value


@_revived.register
def _(info: inspect.FloatType, value: object) -> object:
    return _NUMBERS.get(value, value) if isinstance(value, str) else value


@_revived.register
def _(info: inspect.UnionType, value: object) -> object:
    """Keep a string if the union has `str` as a member."""
    if isinstance(value, str) and any(isinstance(member, inspect.StrType) for member in info.types):
        return value
    for member in info.types:
        value = _revived(member, value)
    return value


def _items(info: Any, value: Any) -> Any:
    return [_revived(info.item_type, part) for part in value] if isinstance(value, list) else value


for _info in (inspect.ListType, inspect.SetType, inspect.FrozenSetType, inspect.VarTupleType):
    _revived.register(_info, _items)


@_revived.register
def _(info: inspect.TupleType, value: object) -> object:
    return _in_order(info.item_types, value)


@_revived.register
def _(info: inspect.NamedTupleType, value: object) -> object:
    return _in_order([field.type for field in info.fields], value)


def _in_order(kinds: Any, value: Any) -> object:
    if not isinstance(value, list) or len(value) > len(kinds):
        return value
    return list(map(_revived, kinds, value))


@_revived.register
def _(info: inspect.DictType, value: object) -> object:
    if not isinstance(value, dict):
        return value
    return {key: _revived(info.value_type, part) for key, part in value.items()}


@_revived.register
def _(info: inspect.StructType, value: object) -> object:
    if info.array_like:
        return _in_order([field.type for field in info.fields], value)
    if info.tag_field is not None and isinstance(value, dict) and value.get(info.tag_field) != info.tag:
        return value
    return _named({field.encode_name: field.type for field in info.fields}, value)


@_revived.register
def _(info: inspect.DataclassType, value: object) -> object:
    return _named({field.encode_name: field.type for field in info.fields}, value)


@_revived.register
def _(info: inspect.TypedDictType, value: object) -> object:
    return _named({field.encode_name: field.type for field in info.fields}, value)


def _named(kinds: dict[str, Any], value: object) -> object:
    if not isinstance(value, dict):
        return value
    return {name: _revived(kinds[name], part) if name in kinds else part for name, part in value.items()}
