"""The message index: the position of a record's message in its file, written between the frame and the message.

It consists of the position of a message in its file and the positions of nested messages inside their parents. It is
written as the number of positions and the positions, in zigzag variable-length integers. `[0]`, the first message, is
one byte 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf.descriptor import Descriptor, FileDescriptor

from kstreams.errors import SerdeError

_MOST_DEEP = 100
_LONGEST = 5  # bytes of a 32-bit integer


def message_index(message: Descriptor) -> tuple[int, ...]:
    """Return the index of a message, from the outermost message inward.

    Examples
    --------
    >>> from google.protobuf.struct_pb2 import ListValue, Struct
    >>> message_index(ListValue.DESCRIPTOR), message_index(Struct.DESCRIPTOR.nested_types[0])
    ((2,), (0, 0))
    """
    holder = message.containing_type
    siblings = list(message.file.message_types_by_name.values()) if holder is None else list(holder.nested_types)
    place = next(at for at, sibling in enumerate(siblings) if sibling.full_name == message.full_name)
    return (place,) if holder is None else (*message_index(holder), place)


def message_at(file: FileDescriptor, index: Sequence[int]) -> Descriptor:
    """Return the message at an index.

    Raises
    ------
    SerdeError
        If the file has no message there.
    """
    messages = list(file.message_types_by_name.values())
    message = None
    for place in index:
        if not 0 <= place < len(messages):
            raise SerdeError(f"{file.name} has no message at the index {list(index)}")
        message = messages[place]
        messages = list(message.nested_types)
    if message is None:
        raise SerdeError(f"{file.name} has no message at an empty index")
    return message


def encoded(index: Sequence[int]) -> bytes:
    """Return the bytes of an index.

    Examples
    --------
    >>> encoded((0,)), encoded((1,)), encoded((0, 70))
    (b'\\x00', b'\\x02\\x02', b'\\x04\\x00\\x8c\\x01')
    """
    if tuple(index) == (0,):
        return b"\x00"
    return b"".join(_varint(number << 1) for number in (len(index), *index))


def _varint(number: int) -> bytes:
    data = bytearray()
    while number > 0x7F:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    data.append(number)
    return bytes(data)


def decoded(data: bytes, at: int) -> tuple[tuple[int, ...], int]:
    """Decode the index at a position, and return it with the position after it.

    Raises
    ------
    SerdeError
        If there is no index.

    Examples
    --------
    >>> decoded(b"\\x02\\x02rest", 0), decoded(b"\\x00rest", 0)
    (((1,), 2), ((0,), 1))
    """
    count, at = _number(data, at)
    if count == 0:
        return (0,), at
    if not 0 < count <= _MOST_DEEP:
        raise SerdeError(f"a message index has {count} parts")
    index = []
    for _ in range(count):
        place, at = _number(data, at)
        index.append(place)
    return tuple(index), at


def index_length(data: bytes, at: int) -> int:
    """Return the length of an index in bytes. Raises SerdeError if there is none."""
    return decoded(data, at)[1] - at


def _number(data: bytes, at: int) -> tuple[int, int]:
    number = 0
    for length, byte in enumerate(data[at : at + _LONGEST]):
        number |= (byte & 0x7F) << (7 * length)
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at + length + 1
    raise SerdeError("the bytes end within a message index" if len(data) - at < _LONGEST else "no message index")
