"""Conversions of keys and values between bytes, text and JSON, for the command line and HTTP.

The kind of bytes is the name of a serde, or `auto`, `raw` or `hex`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Any, Final

import msgspec

from kstreams.errors import SerdeError
from kstreams.kernel.decoders import convert, decode_json
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
from kstreams.serdes.non_finite import with_texts


def shown(value: Any) -> Any:
    """Return a value in a form that JSON can represent. A named tuple becomes an object.

    Examples
    --------
    >>> shown(Windowed("EWR", Window(0, 60))), shown([float("nan")])
    ({'key': 'EWR', 'window': {'start_ms': 0, 'end_ms': 60}}, ['NaN'])
    """
    if isinstance(value, bytes):
        return in_base64(value)
    names = getattr(value, "_fields", None)
    if names is None:
        return value if isinstance(value, str | int) else with_texts(value)
    return {name: shown(part) for name, part in zip(names, value, strict=True)}


def in_base64(data: bytes) -> dict[str, str]:
    """Return the JSON form of bytes that are not text."""
    return {"base64": base64.b64encode(data).decode()}


def from_text(serde: Serde, text: str) -> object:
    """Parse a line of text as a value of a serde. Text of a value with several parts is JSON.

    Examples
    --------
    >>> from kstreams.serdes import serde_of
    >>> from_text(serde_of(int), "7"), from_text(serde_of(dict[str, int]), '{"a": 1}')
    (7, {'a': 1})
    """
    if type(serde) is StringSerde:
        return text
    if type(serde) is BytesSerde:
        return from_base64(text)
    if _is_untyped(serde):
        return _parse_untyped(text)
    try:
        if serde.type is Any or type(serde) in _FROM_JSON_OBJECT:
            return from_json(serde, decode_json(text))
        return _parse_typed(serde, text)
    except (msgspec.DecodeError, RecursionError) as error:
        reason = "" if "Expected" in str(error) else f": {error}"
        raise SerdeError(f"{text!r} cannot be read as {type_name(serde)}{reason}") from None


def _is_untyped(serde: Serde) -> bool:
    """True if only a schema in a registry defines the values, and no class."""
    return serde.type in (None, Any) and serde.asks_registry and type(serde) not in _FROM_JSON_OBJECT


def _parse_untyped(text: str) -> object:
    """Parse JSON. Text that is not JSON is the value itself, as a string without quotes."""
    try:
        return decode_json(text)
    except msgspec.DecodeError:
        return text


def _parse_typed(serde: Serde, text: str) -> object:
    try:
        return convert(text, serde.type, strict=False)
    except msgspec.ValidationError:
        if text[:1] not in ("{", "["):
            raise
        return from_json(serde, decode_json(text))


def from_json(serde: Serde, value: object) -> Any:
    """Convert parsed JSON to a value of a serde."""
    if _is_untyped(serde):
        return value
    from_object = _FROM_JSON_OBJECT.get(type(serde))
    names = getattr(serde.type, "_fields", None)
    try:
        if from_object is not None:
            return from_object(serde, value)
        if names is not None and type(value) is dict:  # `shown` writes a named tuple as an object
            value = [value[name] for name in names]
        return convert(value, serde.type, strict=not isinstance(value, str) or serde.type is not float)
    except (msgspec.ValidationError, LookupError, TypeError, AttributeError):
        hint = ": write it as `consume --json` prints it" if from_object else ""
        raise SerdeError(f"{value!r} cannot be read as {type_name(serde)}{hint}") from None


def _windowed_from_json(serde: Any, value: Any) -> Windowed:
    window = convert(value["window"], dict[str, int])
    return Windowed(from_json(serde.inner, value["key"]), Window(window["start_ms"], window["end_ms"]))


def _change_from_json(serde: Any, value: Any) -> Change:
    new = value.get("new")
    old = value.get("old")
    return Change(
        None if new is None else from_json(serde.inner, new),
        None if old is None else from_json(serde.inner, old),
        value.get("is_latest", True),
    )


_FROM_JSON_OBJECT: dict[type[object], Callable[[object, object], object]] = {
    TimeWindowedSerde: _windowed_from_json,
    SessionWindowedSerde: _windowed_from_json,
    WindowRowSerde: _windowed_from_json,
    ChangeSerde: _change_from_json,
}


def from_base64(text: Any) -> bytes:
    """Decode base64. Raises SerdeError if the text is not base64."""
    try:
        return base64.b64decode(text, validate=True)
    except (TypeError, ValueError) as error:
        raise SerdeError(f"{text!r} cannot be read as base64: {error}") from None


AUTO: Final = "auto"
RAW: Final = "raw"
HEX: Final = "hex"
_ALIASES = {"text": "str", "base64": "bytes"}


def checked_kind(name: str) -> str:
    """Return the name of a kind without aliases. Raises SerdeError if no kind has this name.

    Examples
    --------
    >>> checked_kind("text"), checked_kind("windowed(str, 60000)")
    ('str', 'windowed(str, 60000)')
    """
    kind = _ALIASES.get(name, name)
    if kind not in (AUTO, RAW, HEX):
        serde_named(kind)
    return kind


def is_known(name: str) -> bool:
    """True if this process has a serde with this name. An application registers its own serdes only in its process.

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
    """Return the function that decodes bytes to values that JSON can represent.

    It raises SerdeError for bytes of another kind. `auto` reads objects and arrays as JSON and other printable UTF-8 as
    text. All other bytes become `{"base64": ...}`.

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
        return _decode_auto
    if kind == HEX:
        return lambda data: None if data is None else data.hex()
    read = serde_named("bytes" if kind == RAW else kind).deserialize
    return lambda data: None if data is None else shown(read(data))


def encoder(kind: str) -> Callable[[bytes], bytes]:
    """Return the function that encodes a line of input. `auto` means text.

    Examples
    --------
    >>> encoder("int")(b"7")
    b'\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x07'
    """
    kind = checked_kind(kind)
    if kind == RAW:
        return bytes
    if kind == HEX:
        return lambda line: _from_hex(_decode_line(line))
    serde = serde_named("str" if kind == AUTO else kind)
    return lambda line: serde.serialize(from_text(serde, _decode_line(line)))


def encode_json(value: object, kind: str) -> bytes | None:
    """Encode parsed JSON. Null stays null, and `{"base64": ...}` becomes the bytes that it encodes.

    With `auto`, a string is written as text and everything else as JSON.

    Examples
    --------
    >>> encode_json({"a": 1}, "auto"), encode_json("EWR", "auto"), encode_json(None, "auto")
    (b'{"a":1}', b'EWR', None)
    """
    kind = checked_kind(kind)
    if value is None:
        return None
    if isinstance(value, dict) and value.keys() == {"base64"}:
        return from_base64(value["base64"])
    if kind == HEX:
        return _from_hex(value)
    if kind in (AUTO, RAW):
        return value.encode() if isinstance(value, str) else msgspec.json.encode(value)
    serde = serde_named(kind)
    return serde.serialize(from_json(serde, value))


def _decode_auto(data: bytes | None) -> object:
    if data is None:
        return None
    if data[:1] in (b"{", b"["):
        try:
            return decode_json(data)
        except (msgspec.DecodeError, UnicodeDecodeError):
            pass
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return in_base64(data)
    return text if _is_printable(text) else in_base64(data)


def _is_printable(text: str) -> bool:
    return text.isprintable() or all(character.isprintable() or character in "\t\r\n" for character in text)


def _decode_line(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise SerdeError(
            f"it is not UTF-8 text ({error.reason} at byte {error.start}): convert it, for example by "
            "`iconv -f latin1 -t utf-8`, or write its bytes as they are with --value-type raw"
        ) from None


def _from_hex(text: Any) -> bytes:
    try:
        return binascii.unhexlify(text)
    except (TypeError, ValueError) as error:
        raise SerdeError(f"{text!r} cannot be read as hex: {error}") from None
