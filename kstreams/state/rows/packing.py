"""The encoding of rows in buffers: parts of any length, one after the other, and headers as parts.

A part is its length (4 bytes, big endian; -1 for None) and its bytes. Headers are their number (4 bytes), and for each
header two parts, name and value.
"""

from __future__ import annotations

import struct

from kstreams.record import Headers

_LENGTH = struct.Struct(">i")


def packed(part: bytes | None) -> bytes:
    """Encode a part.

    Examples
    --------
    >>> packed(b"ab"), packed(None)
    (b'\\x00\\x00\\x00\\x02ab', b'\\xff\\xff\\xff\\xff')
    """
    return _LENGTH.pack(-1) if part is None else _LENGTH.pack(len(part)) + part


def unpacked(data: bytes, at: int, count: int) -> tuple[list[bytes | None], int]:
    """Decode `count` parts from position `at` on; return them and the position of their end."""
    parts: list[bytes | None] = []
    for _ in range(count):
        length = _LENGTH.unpack_from(data, at)[0]
        at += _LENGTH.size
        parts.append(None if length < 0 else data[at : at + length])
        at += max(0, length)
    return parts, at


def packed_headers(headers: Headers) -> bytes:
    """Encode the headers of a record."""
    parts = [_LENGTH.pack(len(headers))]
    for name, value in headers:
        parts += [packed(name.encode()), packed(value)]
    return b"".join(parts)


def unpacked_headers(data: bytes, at: int) -> Headers:
    """Decode the headers at a position."""
    count = _LENGTH.unpack_from(data, at)[0]
    parts, _ = unpacked(data, at + _LENGTH.size, 2 * count)
    return tuple(((name or b"").decode(), value) for name, value in zip(parts[::2], parts[1::2], strict=True))
