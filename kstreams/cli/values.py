"""How the bytes of a topic are shown, and how text from the command line becomes bytes."""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable
from typing import Any, Final

import msgspec

from kstreams.errors import SerdeError
from kstreams.record import Change, Window, Windowed
from kstreams.serdes import (
    BytesSerde,
    ChangeSerde,
    Serde,
    SessionWindowedSerde,
    StringSerde,
    TimeWindowedSerde,
    WindowRowSerde,
    serde_named,
    type_name,
)

AUTO: Final = "auto"
RAW: Final = "raw"
HEX: Final = "hex"
OTHER_NAMES = {"text": "str", "base64": "bytes"}


def checked_kind(name: str) -> str:
    """The name by which a kind goes; raises SerdeError when there is none of this name.

    Examples
    --------
    >>> checked_kind("text"), checked_kind("windowed(str, 60000)")
    ('str', 'windowed(str, 60000)')
    """
    found = OTHER_NAMES.get(name, name)
    if found not in (AUTO, RAW, HEX):
        serde_named(found)
    return found


def is_known(name: str) -> bool:
    """Whether this process can read a type that a topic's settings name: an application may have types of its own.

    Examples
    --------
    >>> is_known("int"), is_known("elsewhere.unheard")
    (True, False)
    """
    try:
        checked_kind(name)
    except SerdeError:
        return False
    return True


def decoder(kind: str) -> Callable[[bytes | None], Any]:
    """The function that turns bytes into what is shown: values that JSON can hold.

    Bytes that are not of the kind raise SerdeError. `auto` takes objects and arrays for JSON, other printable UTF-8
    for text, and shows the rest as `{"base64": ...}`.

    Examples
    --------
    >>> decoder("auto")(b'{"a": 1}'), decoder("auto")(b"EWR"), decoder("auto")(bytes(8))
    ({'a': 1}, 'EWR', {'base64': 'AAAAAAAAAAA='})
    >>> decoder("int")(bytes(8))
    0
    >>> decoder("session(str)")(b"EWR" + bytes(16))
    {'key': 'EWR', 'window': {'start_ms': 0, 'end_ms': 0}}
    """
    kind = checked_kind(kind)
    if kind == AUTO:
        return _guess
    if kind == HEX:
        return lambda data: None if data is None else data.hex()
    read = serde_named("bytes" if kind == RAW else kind).deserialize
    return lambda data: None if data is None else _shown(read(data))


def encoder(kind: str) -> Callable[[bytes], bytes]:
    """The function that turns a line of input into the bytes of a kind; `auto` is text.

    Examples
    --------
    >>> encoder("int")(b"7")
    b'\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x07'
    """
    kind = checked_kind(kind)
    if kind == RAW:
        return bytes
    if kind == HEX:
        return lambda line: _from_hex(_text(line))
    serde = serde_named("str" if kind == AUTO else kind)
    return lambda line: serde.serialize(_of_text(serde, _text(line)))


def encode_json(value: Any, kind: str) -> bytes | None:
    """Bytes of a value out of a JSON line: null stays null, `{"base64": ...}` is raw bytes, under `auto` text is text.

    Examples
    --------
    >>> encode_json({"a": 1}, "auto"), encode_json("EWR", "auto"), encode_json(None, "auto")
    (b'{"a":1}', b'EWR', None)
    """
    kind = checked_kind(kind)
    if value is None:
        return None
    if isinstance(value, dict) and value.keys() == {"base64"}:
        return _from_base64(value["base64"])
    if kind == HEX:
        return _from_hex(value)
    if kind in (AUTO, RAW):
        return value.encode() if isinstance(value, str) else msgspec.json.encode(value)
    serde = serde_named(kind)
    return serde.serialize(_of_json(serde, value))


def _guess(data: bytes | None) -> Any:
    if data is None:
        return None
    if data[:1] in (b"{", b"["):
        try:
            return msgspec.json.decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            pass
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return _base64(data)
    return text if _printable(text) else _base64(data)


def _printable(text: str) -> bool:
    return text.isprintable() or all(letter.isprintable() or letter in "\t\r\n" for letter in text)


def _shown(value: Any) -> Any:
    """A value as JSON can hold it, with names for the parts of a tuple that has them."""
    if isinstance(value, bytes):
        return _base64(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    names = getattr(value, "_fields", None)
    if names is None:
        return value
    return {name: _shown(part) for name, part in zip(names, value, strict=True)}


def _base64(data: bytes) -> dict[str, str]:
    return {"base64": base64.b64encode(data).decode()}


def _text(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise SerdeError(
            f"it is not UTF-8 text ({error.reason} at byte {error.start}): convert it, for example by "
            "`iconv -f latin1 -t utf-8`, or write its bytes as they are with --value-type raw"
        ) from None


def _of_text(serde: Serde[Any], text: str) -> Any:
    """The value that a line names."""
    if type(serde) is StringSerde:
        return text
    if type(serde) is BytesSerde:
        return _from_base64(text)
    try:
        if serde.type is Any or type(serde) in _IN_PARTS:
            return _of_json(serde, msgspec.json.decode(text))
        return msgspec.convert(text, serde.type, strict=False)
    except msgspec.DecodeError as error:
        why = "" if "Expected" in str(error) else f": {error}"
        raise SerdeError(f"{text!r} cannot be read as {type_name(serde)}{why}") from None


def _of_json(serde: Serde[Any], value: Any) -> Any:
    """The value that a piece of JSON stands for."""
    in_parts = _IN_PARTS.get(type(serde))
    try:
        if in_parts is not None:
            return in_parts(serde, value)
        return msgspec.convert(value, serde.type, strict=not isinstance(value, str) or serde.type is not float)
    except (msgspec.ValidationError, LookupError, TypeError, AttributeError):
        hint = ": write it as `consume --json` prints it" if in_parts else ""
        raise SerdeError(f"{value!r} cannot be read as {type_name(serde)}{hint}") from None


def _windowed(serde: Any, value: Any) -> Windowed[Any]:
    window = msgspec.convert(value["window"], dict[str, int])
    return Windowed(_of_json(serde.inner, value["key"]), Window(window["start_ms"], window["end_ms"]))


def _change(serde: Any, value: Any) -> Change[Any]:
    new, old = (None if value.get(of) is None else _of_json(serde.inner, value[of]) for of in ("new", "old"))
    return Change(new, old, value.get("is_latest", True))


_IN_PARTS: dict[type[Any], Callable[[Any, Any], Any]] = {
    TimeWindowedSerde: _windowed,
    SessionWindowedSerde: _windowed,
    WindowRowSerde: _windowed,
    ChangeSerde: _change,
}


def _from_base64(text: Any) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (TypeError, ValueError) as error:
        raise SerdeError(f"{text!r} cannot be read as base64: {error}") from None


def _from_hex(text: Any) -> bytes:
    try:
        return binascii.unhexlify(text)
    except (TypeError, ValueError) as error:
        raise SerdeError(f"{text!r} cannot be read as hex: {error}") from None
