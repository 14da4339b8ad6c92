"""128-bit murmur3 as Kafka Streams computes it: in a foreign-key join, a hash shows whether a row has changed."""

from __future__ import annotations

import struct

_MASK = 0xFFFFFFFFFFFFFFFF
_C1 = 0x87C37B91114253D5
_C2 = 0x4CF5AD432745937F
SEED = 104729
"""The one that Kafka Streams uses."""
_BLOCK = struct.Struct("<QQ")
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
    # All steps stand here and not in functions of their own: a call costs more than what it would do.
    for word1, word2 in _BLOCK.iter_unpack(data[:whole]):
        k1 = word1 * _C1 & _MASK
        k2 = word2 * _C2 & _MASK
        h1 ^= ((k1 << 31 | k1 >> 33) & _MASK) * _C2 & _MASK
        h1 = (((h1 << 27 | h1 >> 37) & _MASK) + h2) * 5 + 0x52DCE729 & _MASK
        h2 ^= ((k2 << 33 | k2 >> 31) & _MASK) * _C1 & _MASK
        h2 = (((h2 << 31 | h2 >> 33) & _MASK) + h1) * 5 + 0x38495AB5 & _MASK
    if whole < len(data):
        word1, word2 = _BLOCK.unpack(data[whole:].ljust(16, b"\0"))
        k1 = word1 * _C1 & _MASK
        k2 = word2 * _C2 & _MASK
        h1 ^= ((k1 << 31 | k1 >> 33) & _MASK) * _C2 & _MASK
        h2 ^= ((k2 << 33 | k2 >> 31) & _MASK) * _C1 & _MASK
    h1 = h1 ^ len(data)
    h2 = h2 ^ len(data)
    h1 = h1 + h2 & _MASK
    h2 = h2 + h1 & _MASK
    h1 = _finished(h1)
    h2 = _finished(h2)
    h1 = h1 + h2 & _MASK
    return _HASH.pack(h1, h2 + h1 & _MASK)


def _finished(bits: int) -> int:
    bits = (bits ^ bits >> 33) * 0xFF51AFD7ED558CCD & _MASK
    bits = (bits ^ bits >> 33) * 0xC4CEB9FE1A85EC53 & _MASK
    return bits ^ bits >> 33
