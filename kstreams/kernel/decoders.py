"""What msgspec reads, with one thread at a time taking a type in.

msgspec looks into a type when it first reads it, and keeps what it has found before it has found all (0.22): a second
thread that reads the same type in that moment follows a null pointer, which ends the process.
"""

from __future__ import annotations

import threading
from typing import Any, TypeVar, overload

import msgspec
import msgspec.inspect

from kstreams.os.forks import of_module

T = TypeVar("T")
Data = bytes | str | memoryview | msgspec.Raw

_taking_in = of_module(threading.Lock())


@overload
def json_decoder(kind: type[T]) -> msgspec.json.Decoder[T]: ...
@overload
def json_decoder(kind: object) -> msgspec.json.Decoder[object]: ...
def json_decoder(kind: object) -> msgspec.json.Decoder[Any]:
    """A decoder of JSON for values of a type; which threads use it does not matter.

    Examples
    --------
    >>> json_decoder(list[int]).decode(b"[1,2]")
    [1, 2]
    """
    with _taking_in:
        return msgspec.json.Decoder(kind)


@overload
def msgpack_decoder(kind: type[T]) -> msgspec.msgpack.Decoder[T]: ...
@overload
def msgpack_decoder(kind: object) -> msgspec.msgpack.Decoder[object]: ...
def msgpack_decoder(kind: object) -> msgspec.msgpack.Decoder[Any]:
    """A decoder of MessagePack for values of a type; which threads use it does not matter."""
    with _taking_in:
        return msgspec.msgpack.Decoder(kind)


@overload
def decode_json(data: Data, kind: type[T]) -> T: ...
@overload
def decode_json(data: Data, kind: object = Any) -> Any: ...
def decode_json(data: Data, kind: object = Any) -> Any:
    """The value of a type that JSON stands for.

    Raises
    ------
    msgspec.DecodeError
        When it stands for none of that type.

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
    """What dicts, lists and plain values stand for, as a value of a type.

    Text may stand for a number unless `strict`, and as a key of a dict with `str_keys`.

    Raises
    ------
    msgspec.ValidationError
        When they stand for none of that type.

    Examples
    --------
    >>> convert("1", int, strict=False)
    1
    """
    msgpack_decoder(kind)
    return msgspec.convert(value, kind, strict=strict, str_keys=str_keys)


def type_info(kind: object) -> msgspec.inspect.Type:
    """What a type is to msgspec.

    Raises
    ------
    TypeError, NameError
        When it is nothing that msgspec reads.

    Examples
    --------
    >>> type_info(int)
    IntType(gt=None, ge=None, lt=None, le=None, multiple_of=None)
    """
    with _taking_in:
        return msgspec.inspect.type_info(kind)
