"""The message index: the position of a record's message in its file, written between the frame and the message.

The index lists the position of the outermost message in the file, and then the position of each nested message in its
parent. It is written as the number of positions and the positions, as zigzag integers of variable length. `[0]`, the
index of the first message, is written as one byte 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from google.protobuf.descriptor import Descriptor, FileDescriptor

from kstreams.errors import SerdeError

_MAX_DEPTH = 100
_MAX_BYTES = 5  # of a 32-bit integer


def message_index(message: Descriptor) -> tuple[int, ...]:
    """Return the index of a message, from the outermost message inward.

    Examples
    --------
    >>> from google.protobuf.struct_pb2 import ListValue, Struct
    >>> message_index(ListValue.DESCRIPTOR), message_index(Struct.DESCRIPTOR.nested_types[0])
    ((2,), (0, 0))
    """
    parent = message.containing_type
    siblings = message.file.message_types_by_name.values() if parent is None else parent.nested_types
    position = [sibling.full_name for sibling in siblings].index(message.full_name)
    return (position,) if parent is None else (*message_index(parent), position)


def message_at(file: FileDescriptor, index: Sequence[int]) -> Descriptor:
    """Return the message at an index.

    Raises
    ------
    SerdeError
        If the file has no message at the index.
    """
    messages = list(file.message_types_by_name.values())
    message = None
    for position in index:
        if not 0 <= position < len(messages):
            raise SerdeError(f"{file.name} has no message at the index {list(index)}")
        message = messages[position]
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


def decoded(data: bytes, start: int) -> tuple[tuple[int, ...], int]:
    """Return the message index at a position, and the position after the index.

    Raises
    ------
    SerdeError
        If the bytes hold no index there.

    Examples
    --------
    >>> decoded(b"\\x02\\x02rest", 0), decoded(b"\\x00rest", 0)
    (((1,), 2), ((0,), 1))
    """
    count, end = _read_integer(data, start)
    if count == 0:
        return (0,), end
    if not 0 < count <= _MAX_DEPTH:
        raise SerdeError(f"a message index has {count} positions, and 1 to {_MAX_DEPTH} are possible")
    index = []
    for _ in range(count):
        position, end = _read_integer(data, end)
        index.append(position)
    return tuple(index), end


def index_length(data: bytes, start: int) -> int:
    """Return the length in bytes of the index at a position. Raises SerdeError if the bytes hold no index there."""
    _, end = decoded(data, start)
    return end - start


def _read_integer(data: bytes, start: int) -> tuple[int, int]:
    """Return the zigzag integer at a position, and the position after the integer."""
    zigzag = 0
    for index, byte in enumerate(data[start : start + _MAX_BYTES]):
        zigzag |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return (zigzag >> 1) ^ -(zigzag & 1), start + index + 1
    if len(data) - start < _MAX_BYTES:
        raise SerdeError("the bytes end within a message index")
    raise SerdeError("the bytes hold no message index: a number has more than 32 bits")
