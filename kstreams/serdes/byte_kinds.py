"""How the bytes of a topic are shown, and how text from a command line becomes bytes."""

from __future__ import annotations

import binascii
from collections.abc import Callable
from typing import Any, Final

import msgspec

from kstreams.decoders import decode_json
from kstreams.errors import SerdeError
from kstreams.serdes import serde_named
from kstreams.serdes.plain_forms import from_base64, from_json, from_text, in_base64, shown

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
    return lambda data: None if data is None else shown(read(data))


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
    return lambda line: serde.serialize(from_text(serde, _text(line)))


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
        return from_base64(value["base64"])
    if kind == HEX:
        return _from_hex(value)
    if kind in (AUTO, RAW):
        return value.encode() if isinstance(value, str) else msgspec.json.encode(value)
    serde = serde_named(kind)
    return serde.serialize(from_json(serde, value))


def _guess(data: bytes | None) -> Any:
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
    return text if _printable(text) else in_base64(data)


def _printable(text: str) -> bool:
    return text.isprintable() or all(letter.isprintable() or letter in "\t\r\n" for letter in text)


def _text(line: bytes) -> str:
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
