"""Rows that the judge writes, records that it reads, and the partition of a key as Kafka computes it."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """A row to be written."""

    topic: str
    key: bytes
    value: bytes | None
    timestamp: int


class Partition(NamedTuple):
    """A partition of a topic."""

    topic: str
    number: int


class Record(NamedTuple):
    """A record of a partition."""

    partition: Partition
    offset: int
    key: bytes | None
    value: bytes | None


def partition_of(key: bytes, partitions: int) -> int:
    """Return the partition of a key by murmur2, as Kafka's default partitioner does."""
    return (_murmur2(key) & 0x7FFFFFFF) % partitions


def _murmur2(key: bytes) -> int:
    multiplier, mask = 0x5BD1E995, 0xFFFFFFFF
    value = 0x9747B28C ^ len(key)
    whole = len(key) & ~3
    for start in range(0, whole, 4):
        word = int.from_bytes(key[start : start + 4], "little") * multiplier & mask
        word = (word ^ word >> 24) * multiplier & mask
        value = (value * multiplier & mask) ^ word
    if rest := key[whole:]:
        value = (value ^ int.from_bytes(rest, "little")) * multiplier & mask
    value = (value ^ value >> 13) * multiplier & mask
    return value ^ value >> 15
