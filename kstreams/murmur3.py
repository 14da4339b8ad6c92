"""128-bit murmur3 as Kafka Streams computes it: tells in a foreign-key join whether a row is still the same."""

from __future__ import annotations

import struct

_MASK = 0xFFFFFFFFFFFFFFFF
_C1, _C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
SEED = 104729
"""The one that Kafka Streams uses."""
_HASH = struct.Struct(">QQ")


def hash128(data: bytes, seed: int = SEED) -> bytes:
    """The 16 bytes of the hash: both of its halves, big endian.

    Examples
    --------
    >>> hash128(b"kafka").hex()
    'c1ba8801115a620ca8402311f6596740'
    """
    h1 = h2 = seed
    whole = len(data) & ~15
    for k1, k2 in struct.iter_unpack("<QQ", data[:whole]):
        h1 = _rotated(h1 ^ _mixed_first(k1), 27)
        h1 = ((h1 + h2) * 5 + 0x52DCE729) & _MASK
        h2 = _rotated(h2 ^ _mixed_second(k2), 31)
        h2 = ((h2 + h1) * 5 + 0x38495AB5) & _MASK
    if whole < len(data):
        k1, k2 = struct.unpack("<QQ", data[whole:].ljust(16, b"\0"))
        h1 ^= _mixed_first(k1)
        h2 ^= _mixed_second(k2)
    h1, h2 = h1 ^ len(data), h2 ^ len(data)
    h1 = (h1 + h2) & _MASK
    h2 = (h2 + h1) & _MASK
    h1, h2 = _finished(h1), _finished(h2)
    h1 = (h1 + h2) & _MASK
    return _HASH.pack(h1, (h2 + h1) & _MASK)


def _rotated(bits: int, by: int) -> int:
    return (bits << by | bits >> 64 - by) & _MASK


def _mixed_first(word: int) -> int:
    return _rotated(word * _C1 & _MASK, 31) * _C2 & _MASK


def _mixed_second(word: int) -> int:
    return _rotated(word * _C2 & _MASK, 33) * _C1 & _MASK


def _finished(bits: int) -> int:
    bits = (bits ^ bits >> 33) * 0xFF51AFD7ED558CCD & _MASK
    bits = (bits ^ bits >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
    return bits ^ bits >> 33
