"""`.proto` files as FileDescriptorProtos in base64, which can be read without a compiler.

Confluent's clients for other languages than Java register this form, and every registry accepts it.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from kstreams.errors import RegistryError

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto

_BASE64 = re.compile(r"[A-Za-z0-9+/]{4,}={0,2}")


def is_serialized(text: str) -> bool:
    """True if a text is a FileDescriptorProto in base64, judged by its characters.

    Examples
    --------
    >>> is_serialized("CgtvcmRlci5wcm90bw=="), is_serialized("message Order { }")
    (True, False)
    """
    return len(text) % 4 == 0 and _BASE64.fullmatch(text) is not None


def deserialized(text: str, path: str) -> FileDescriptorProto:
    """Decode a FileDescriptorProto and set its path. Raises RegistryError if the text does not decode."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.message import DecodeError

    try:
        file = FileDescriptorProto.FromString(base64.b64decode(text))
    except DecodeError as error:
        raise RegistryError(f"{path} is neither a .proto file nor a FileDescriptorProto in base64: {error}") from None
    file.name = path
    return file


def clear_default_json_names(messages: Iterable[DescriptorProto]) -> None:
    """Remove JSON names that are derived from field names. Generated classes do not hold them either."""
    for message in messages:
        clear_default_json_names(message.nested_type)
        for field in message.field:
            if field.json_name == _camel_case(field.name):
                field.ClearField("json_name")


def _camel_case(name: str) -> str:
    first, *parts = re.split("_+(.?)", name)
    return "".join([first, *(part.upper() if index % 2 == 0 else part for index, part in enumerate(parts))])
