"""Encoders and decoders between values of one Python type and bytes of one message type, without the frame."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError, EncodeError, Message
from google.protobuf.message_factory import GetMessageClass
from msgspec import inspect

from kstreams.errors import SerdeError
from kstreams.serdes.base import decode_error
from kstreams.serdes.plain_check import plain_check
from kstreams.serdes.protobuf.fields import is_map
from kstreams.serdes.protobuf.reading import reader
from kstreams.serdes.protobuf.type_infos import info_of
from kstreams.serdes.protobuf.writing import writer
from kstreams.serdes.typed import same_value

UNREADABLE = (DecodeError, ValueError, TypeError, LookupError, ArithmeticError, RecursionError, AttributeError)
"""Errors of protobuf and of classes for bytes that do not decode."""
UNWRITABLE = (EncodeError, ValueError, TypeError, LookupError, ArithmeticError, RecursionError, AttributeError)
"""Errors of protobuf for a value that does not fit its field."""

Decode = Callable[[bytes], Any]
Encode = Callable[[Any], bytes]


def value_decoder(message: Descriptor, kind: object) -> Decode:
    """Return the function that decodes the bytes of a message to a value of a type. The type `Any` means dicts.

    Raises
    ------
    SerdeError
        If the message cannot be read as the type.
    """
    parse = GetMessageClass(message).FromString
    read, place_of = reader(message, info_of(kind))
    kind_name = getattr(kind, "__name__", kind)

    def decode(data: bytes) -> Any:
        try:
            return read(parse(data))
        except UNREADABLE as error:
            raise decode_error(f"a {message.full_name} as {kind_name}", data, f"{place_of(error)}{error}") from error

    return decode


def value_encoder(message: Descriptor, kind: object) -> Encode:
    """Return the function that encodes a value of a type as the bytes of a message, which read back equal.

    Raises
    ------
    SerdeError
        If the type cannot be written as the message.
    """
    info = info_of(kind)
    message_class = GetMessageClass(message)
    to_bytes = serialization(message)
    fill, place_of, is_exact = writer(message, info)
    is_plain = _plain_test(kind) if is_exact else _never
    is_read_back = _contains if isinstance(info, inspect.AnyType | inspect.DictType) else same_value
    decode = value_decoder(message, kind)

    def encode(value: object) -> bytes:
        filled = message_class()
        try:
            fill(value, filled)
            data = to_bytes(filled)
        except UNWRITABLE as error:
            reason = f"{place_of(error)}{error}"
            raise SerdeError(f"{value!r} cannot be written as {message.full_name}: {reason}") from error
        return data if is_plain(value) else require_read_back(value, data)

    def require_read_back(value: object, data: bytes) -> bytes:
        read_value = decode(data)
        if is_read_back(value, read_value):
            return data
        raise SerdeError(f"{value!r} does not fit {message.full_name}: it would be read back as {read_value!r}")

    return encode


def _plain_test(kind: object) -> Callable[[object], bool]:
    """Return the test for values of exactly the classes of a type. No value of a type that msgspec refuses passes."""
    try:
        return plain_check(kind).one
    except TypeError:
        return _never


def message_decoder(cls: type[Message], keep_unknown: bool) -> Decode:
    """Return the function that decodes bytes to messages of a generated class."""
    parse = cls.FromString
    name = cls.DESCRIPTOR.full_name

    def decode(data: bytes) -> Message:
        try:
            return parse(data)
        except DecodeError as error:
            raise decode_error(f"a {name}", data, error) from error

    def decode_known(data: bytes) -> Message:
        message = decode(data)
        message.DiscardUnknownFields()
        return message

    return decode if keep_unknown else decode_known


def message_encoder(cls: type[Message]) -> Encode:
    """Return the function that encodes messages of a generated class."""
    to_bytes = serialization(cls.DESCRIPTOR)
    name = cls.DESCRIPTOR.full_name

    def encode(value: object) -> bytes:
        if type(value) is not cls:
            raise SerdeError(f"{value!r} is no {name}: write messages of the class that was passed to ks.Protobuf")
        try:
            return to_bytes(value)
        except EncodeError as error:
            raise SerdeError(f"the {name} cannot be written: {error}") from error

    return encode


def serialization(message: Descriptor) -> Callable[[Message], bytes]:
    """Return the function that serializes messages. Map entries are sorted, so that equal messages have equal bytes."""
    serialize: Callable[[Message], bytes] = GetMessageClass(message).SerializeToString
    return _serialize_sorted if _holds_maps(message, set()) else serialize


def _serialize_sorted(message: Message) -> bytes:
    data: bytes = message.SerializeToString(deterministic=True)
    return data


def _holds_maps(message: Descriptor, visited: set[str]) -> bool:
    if message.full_name in visited:
        return False
    visited.add(message.full_name)
    return any(
        is_map(field) or _holds_maps(field.message_type, visited) for field in message.fields if field.message_type
    )


def _contains(written: object, read: object) -> bool:
    """True if a read value contains a written value. Fields that a dict leaves out are read as their defaults."""
    if isinstance(written, dict) and isinstance(read, dict):
        return all(name in read and _contains(part, read[name]) for name, part in written.items())
    if isinstance(written, list | tuple) and isinstance(read, list):
        return len(written) == len(read) and all(map(_contains, written, read))
    return same_value(written, read)


def _never(value: object) -> bool:
    return False
