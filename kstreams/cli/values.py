"""How the bytes of a topic are shown, and how text from the command line becomes bytes."""

from __future__ import annotations

import base64
from collections.abc import Callable
from enum import StrEnum
from typing import Any

import msgspec

from kstreams.errors import SerdeError
from kstreams.serdes import serde_of


class ValueType(StrEnum):
    """What the bytes of keys or values are taken for."""

    AUTO = "auto"
    TEXT = "text"
    JSON = "json"
    INT = "int"
    FLOAT = "float"
    BYTES = "bytes"


_SERDES = {ValueType.TEXT: str, ValueType.JSON: Any, ValueType.INT: int, ValueType.FLOAT: float}
_READERS: dict[ValueType, Callable[[str], Any]] = {
    ValueType.TEXT: str,
    ValueType.JSON: msgspec.json.decode,
    ValueType.INT: int,
    ValueType.FLOAT: float,
}


def decoder(kind: ValueType) -> Callable[[bytes | None], Any]:
    """The function that turns bytes into what is shown.

    Bytes that are not of the kind raise SerdeError. `auto` takes objects and arrays for JSON, other printable UTF-8
    for text, and shows the rest as `{"base64": ...}`.

    Examples
    --------
    >>> decoder(ValueType.AUTO)(b'{"a": 1}'), decoder(ValueType.AUTO)(b"EWR"), decoder(ValueType.AUTO)(bytes(8))
    ({'a': 1}, 'EWR', {'base64': 'AAAAAAAAAAA='})
    >>> decoder(ValueType.INT)(bytes(8))
    0
    """
    if kind is ValueType.AUTO:
        return _guess
    if kind is ValueType.BYTES:
        return lambda data: None if data is None else _base64(data)
    read = serde_of(_SERDES[kind]).deserialize
    return lambda data: None if data is None else read(data)


def encoder(kind: ValueType) -> Callable[[str], bytes]:
    """The function that turns text into the bytes of a kind; `auto` is text, `bytes` reads base64.

    Examples
    --------
    >>> encoder(ValueType.INT)("7")
    b'\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x07'
    """
    if kind is ValueType.AUTO:
        return str.encode
    if kind is ValueType.BYTES:
        return lambda text: _checked(kind, text, lambda given: base64.b64decode(given, validate=True))
    serialize = serde_of(_SERDES[kind]).serialize
    return lambda text: serialize(_checked(kind, text, _READERS[kind]))


def encode_json(value: Any, kind: ValueType) -> bytes | None:
    """Bytes of a value out of a JSON line: null stays null, `{"base64": ...}` is raw bytes, under `auto` text is text.

    Examples
    --------
    >>> encode_json({"a": 1}, ValueType.AUTO), encode_json("EWR", ValueType.AUTO), encode_json(None, ValueType.AUTO)
    (b'{"a":1}', b'EWR', None)
    """
    if value is None:
        return None
    if isinstance(value, dict) and value.keys() == {"base64"}:
        return encoder(ValueType.BYTES)(value["base64"])
    if kind is ValueType.AUTO:
        return value.encode() if isinstance(value, str) else msgspec.json.encode(value)
    if kind is ValueType.BYTES:
        return encoder(kind)(value)
    return serde_of(_SERDES[kind]).serialize(value)


def _guess(data: bytes | None) -> Any:
    if data is None:
        return None
    if data[:1] in (b"{", b"["):
        try:
            return msgspec.json.decode(data)
        except msgspec.DecodeError:
            pass
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return _base64(data)
    return text if _printable(text) else _base64(data)


def _printable(text: str) -> bool:
    return text.isprintable() or all(letter.isprintable() or letter in "\t\r\n" for letter in text)


def _base64(data: bytes) -> dict[str, str]:
    return {"base64": base64.b64encode(data).decode()}


def _checked(kind: ValueType, text: str, read: Callable[[str], Any]) -> Any:
    try:
        return read(text)
    except (ValueError, msgspec.DecodeError) as error:
        raise SerdeError(f"{text!r} cannot be read as {kind}: {error}") from error
