"""murmur2, the hash of keys by which Kafka's Java producer chooses partitions."""

from __future__ import annotations

import struct

_M = 0x5BD1E995
_MASK = 0xFFFFFFFF
_SEED = 0x9747B28C


def murmur2(data: bytes) -> int:
    """Return the unsigned 32-bit murmur2 hash of `data`.

    Examples
    --------
    >>> hex(murmur2(b"kafka"))
    '0xd067cf64'
    """
    length = len(data)
    tail = length & ~3
    h = _SEED ^ length
    for (word,) in struct.iter_unpack("<I", data[:tail]):
        k = word * _M & _MASK
        h = (h * _M & _MASK) ^ ((k ^ k >> 24) * _M & _MASK)
    if tail < length:
        h = (h ^ int.from_bytes(data[tail:], "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return h ^ h >> 15


def partition_of(raw_key: bytes, partitions: int) -> int:
    """Return the partition that Kafka's default partitioner chooses for a serialized key.

    Examples
    --------
    >>> partition_of(b"kafka", 6)
    4
    """
    return (murmur2(raw_key) & 0x7FFFFFFF) % partitions
