"""Decoders of msgspec. One thread at a time analyses types.

msgspec analyses a type at its first use, and caches an incomplete result meanwhile (0.22). A second thread that uses
the type at that moment follows a null pointer, which ends the process.
"""

from __future__ import annotations

import threading
from typing import Any, TypeVar, overload

import msgspec
import msgspec.inspect

from kstreams.os.forks import reset_in_child

T = TypeVar("T")
Data = bytes | str | memoryview | msgspec.Raw

_analysis = reset_in_child(threading.Lock())


@overload
def json_decoder(kind: type[T]) -> msgspec.json.Decoder[T]: ...
@overload
def json_decoder(kind: object) -> msgspec.json.Decoder[object]: ...
def json_decoder(kind: object) -> msgspec.json.Decoder[Any]:
    """Return a decoder of JSON for values of a type. Threads may share it.

    Examples
    --------
    >>> json_decoder(list[int]).decode(b"[1,2]")
    [1, 2]
    """
    with _analysis:
        return msgspec.json.Decoder(kind)


@overload
def msgpack_decoder(kind: type[T]) -> msgspec.msgpack.Decoder[T]: ...
@overload
def msgpack_decoder(kind: object) -> msgspec.msgpack.Decoder[object]: ...
def msgpack_decoder(kind: object) -> msgspec.msgpack.Decoder[Any]:
    """Return a decoder of MessagePack for values of a type. Threads may share it."""
    with _analysis:
        return msgspec.msgpack.Decoder(kind)


@overload
def decode_json(data: Data, kind: type[T]) -> T: ...
@overload
def decode_json(data: Data, kind: object = Any) -> Any: ...
def decode_json(data: Data, kind: object = Any) -> Any:
    """Decode JSON as a value of a type.

    Raises
    ------
    msgspec.DecodeError
        If the data is no JSON, or no value of the type.

    Examples
    --------
    >>> decode_json('{"a": 1}', dict[str, int])
    {'a': 1}
    """
    return json_decoder(kind).decode(data)


@overload
def convert(value: object, kind: type[T], *, strict: bool = True, str_keys: bool = False) -> T: ...
@overload
def convert(value: object, kind: object, *, strict: bool = True, str_keys: bool = False) -> Any: ...
def convert(value: object, kind: object, *, strict: bool = True, str_keys: bool = False) -> Any:
    """Convert dicts, lists and plain values into a value of a type.

    Parameters
    ----------
    value : object
    kind : type
    strict : bool
        False to accept text in place of a number.
    str_keys : bool
        True to accept text as the key of a dict in place of a number.

    Raises
    ------
    msgspec.ValidationError
        If they are no value of the type.

    Examples
    --------
    >>> convert("1", int, strict=False)
    1
    """
    msgpack_decoder(kind)
    return msgspec.convert(value, kind, strict=strict, str_keys=str_keys)


def type_info(kind: object) -> msgspec.inspect.Type:
    """Return msgspec's description of a type.

    Raises
    ------
    TypeError, NameError
        If msgspec does not support the type.

    Examples
    --------
    >>> type_info(int)
    IntType(gt=None, ge=None, lt=None, le=None, multiple_of=None)
    """
    with _analysis:
        return msgspec.inspect.type_info(kind)
