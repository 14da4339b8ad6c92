"""The order in which Java's `HashSet<String>` iterates: descriptions of topologies show it."""

from __future__ import annotations

from collections.abc import Collection


def hash_set_order(names: Collection[str]) -> list[str]:
    """Names by the bucket that a hash set of this many would put them into, then as they were given.

    Examples
    --------
    >>> hash_set_order(["in1", "in2"])
    ['in2', 'in1']
    """
    buckets = 16
    while len(names) > buckets * 3 // 4:
        buckets *= 2
    return sorted(names, key=lambda name: _spread(string_hash(name)) % buckets)


def string_hash(text: str) -> int:
    """`String.hashCode()`, as an unsigned 32-bit number.

    Examples
    --------
    >>> string_hash("hello")
    99162322
    """
    result = 0
    units = text.encode("utf-16-be")
    for high, low in zip(units[::2], units[1::2], strict=True):
        result = (31 * result + (high << 8 | low)) & 0xFFFFFFFF
    return result


def _spread(code: int) -> int:
    return code ^ (code >> 16)
