"""NaN and the infinities in JSON, which has no numbers for these values.

They are written as Jackson writes them: as the strings "NaN", "Infinity" and "-Infinity". Every JSON parser reads these
strings, and typed readers (Jackson, Gson, pydantic, Spark) convert them to numbers. If the type allows both strings and
numbers (`Any`, `float | str`), they are written as bare tokens, as Python's `json` does. Both forms can be read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, singledispatch
from typing import Any

import msgspec
from msgspec import inspect

from kstreams.kernel.decoders import convert, type_info

_TEXT_OF_INFINITY = {math.inf: "Infinity", -math.inf: "-Infinity"}
_NUMBER_OF_TEXT = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_TOKENS = (b"NaN", b"Infinity")


def json_forms(builtins: object) -> Iterator[bytes]:
    """Yield the JSON forms of a value with NaN or infinities, the preferred form first. Yield nothing for other values.

    Parameters
    ----------
    builtins : object
        A value of dicts, lists, strings, numbers and None.

    Examples
    --------
    >>> list(json_forms({"a": float("nan")})), list(json_forms({"a": 1.5}))
    ([b'{"a":"NaN"}', b'{"a":NaN}'], [])
    """
    if _holds_non_finite(builtins):
        yield msgspec.json.encode(_with_strings(builtins))
        yield json.dumps(builtins, separators=(",", ":"), ensure_ascii=False).encode()


def with_texts(value: object) -> object:
    """Replace NaN and infinities by strings. A value that holds none is returned unchanged.

    Examples
    --------
    >>> with_texts({"a": float("inf")}), with_texts(2.5)
    ({'a': 'Infinity'}, 2.5)
    """
    if b"null" not in msgspec.json.encode(value, enc_hook=str):
        return value
    builtins = msgspec.to_builtins(value, str_keys=True, enc_hook=str)
    return _with_strings(builtins) if _holds_non_finite(builtins) else value


def _holds_non_finite(value: object) -> bool:
    if isinstance(value, dict):
        return _holds_non_finite([*value, *value.values()])
    if isinstance(value, list | tuple):
        return any(map(_holds_non_finite, value))
    return isinstance(value, float) and not math.isfinite(value)


def _with_strings(value: object) -> object:
    """Replace NaN and infinities in a value by strings."""
    if isinstance(value, float) and not math.isfinite(value):
        return _TEXT_OF_INFINITY.get(value, "NaN")
    if isinstance(value, dict):
        return {_with_strings(key): _with_strings(part) for key, part in value.items()}
    return [_with_strings(part) for part in value] if isinstance(value, list | tuple) else value


def read_non_finite(data: bytes, kind: object) -> object:
    """Read JSON with NaN or infinities. They are bare tokens, or strings where the type is `float`.

    Raises
    ------
    ValueError
        If the JSON holds neither NaN nor infinities, or does not fit the type.

    Examples
    --------
    >>> read_non_finite(b'["NaN",Infinity,1]', list[float])
    [nan, inf, 1.0]
    """
    if not any(word in data for word in _TOKENS):
        raise ValueError("it holds neither NaN nor infinities")
    builtins = json.loads(data)
    return convert(_from_strings(type_info(kind), builtins), kind, str_keys=True)


def with_numbers(kind: object) -> Callable[[object], object]:
    """Return the function that reverts `with_texts` for a type. For an unknown type, it changes nothing.

    Examples
    --------
    >>> with_numbers(dict[str, float])({"a": "Infinity"})
    {'a': inf}
    """
    try:
        return partial(_from_strings, type_info(kind))
    except (TypeError, NameError):
        return partial(_from_strings, None)


@singledispatch
def _from_strings(info: object, value: object) -> object:
    """Replace strings by NaN and infinities where the type is `float`."""
    return value


@_from_strings.register
def _(info: inspect.FloatType, value: object) -> object:
    return _NUMBER_OF_TEXT.get(value, value) if isinstance(value, str) else value


@_from_strings.register
def _(info: inspect.UnionType, value: object) -> object:
    """Keep a string if the union has `str` as a member."""
    if isinstance(value, str) and any(isinstance(member, inspect.StrType) for member in info.types):
        return value
    for member in info.types:
        value = _from_strings(member, value)
    return value


def _items_from_strings(info: Any, value: object) -> object:
    return [_from_strings(info.item_type, part) for part in value] if isinstance(value, list) else value


for _info in (inspect.ListType, inspect.SetType, inspect.FrozenSetType, inspect.VarTupleType):
    _from_strings.register(_info, _items_from_strings)


@_from_strings.register
def _(info: inspect.TupleType, value: object) -> object:
    return _members_from_strings(info.item_types, value)


@_from_strings.register
def _(info: inspect.NamedTupleType, value: object) -> object:
    return _members_from_strings([field.type for field in info.fields], value)


def _members_from_strings(kinds: Sequence[object], value: object) -> object:
    if not isinstance(value, list) or len(value) > len(kinds):
        return value
    return list(map(_from_strings, kinds, value))


@_from_strings.register
def _(info: inspect.DictType, value: object) -> object:
    if not isinstance(value, dict):
        return value
    return {key: _from_strings(info.value_type, part) for key, part in value.items()}


@_from_strings.register
def _(info: inspect.StructType, value: object) -> object:
    if info.array_like:
        return _members_from_strings([field.type for field in info.fields], value)
    if info.tag_field is not None and isinstance(value, dict) and value.get(info.tag_field) != info.tag:
        return value
    return _fields_from_strings({field.encode_name: field.type for field in info.fields}, value)


@_from_strings.register
def _(info: inspect.DataclassType, value: object) -> object:
    return _fields_from_strings({field.encode_name: field.type for field in info.fields}, value)


@_from_strings.register
def _(info: inspect.TypedDictType, value: object) -> object:
    return _fields_from_strings({field.encode_name: field.type for field in info.fields}, value)


def _fields_from_strings(kinds: Mapping[str, object], value: object) -> object:
    if not isinstance(value, dict):
        return value
    return {name: _from_strings(kinds[name], part) if name in kinds else part for name, part in value.items()}
