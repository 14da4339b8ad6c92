"""`SortedKeys`: byte strings in unsigned order, with cheap additions and range reads."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable

_CHUNK = 1_000


class SortedKeys:
    """A sorted set of byte strings: a list of short sorted lists, so that an insertion moves few entries.

    Examples
    --------
    >>> keys = SortedKeys([b"b", b"a"])
    >>> keys.add(b"\\xff")
    >>> keys.between(b"a\\x00", None)
    [b'b', b'\\xff']
    """

    def __init__(self, keys: Iterable[bytes] = ()) -> None:
        ordered = sorted(set(keys))
        self._chunks = [ordered[i : i + _CHUNK] for i in range(0, len(ordered), _CHUNK)] or [[]]
        self._firsts = [chunk[0] if chunk else b"" for chunk in self._chunks]

    def add(self, key: bytes) -> None:
        """Insert a key, if it is not in the set."""
        number = self._chunk_of(key)
        chunk = self._chunks[number]
        place = bisect_left(chunk, key)
        if place < len(chunk) and chunk[place] == key:
            return
        insort(chunk, key)
        if place == 0:
            self._firsts[number] = key
        if len(chunk) > 2 * _CHUNK:
            self._split(number)

    def discard(self, key: bytes) -> None:
        """Remove a key, if it is in the set."""
        chunk = self._chunks[self._chunk_of(key)]
        place = bisect_left(chunk, key)
        if place < len(chunk) and chunk[place] == key:
            del chunk[place]  # an empty chunk, or a first key that is too low, does no harm

    def between(self, low: bytes, high: bytes | None) -> list[bytes]:
        """Return the keys in [low, high), in order; if `high` is None, up to the end."""
        keys: list[bytes] = []
        for chunk in self._chunks[self._chunk_of(low) :]:
            start = bisect_left(chunk, low)
            stop = len(chunk) if high is None else bisect_left(chunk, high)
            keys += chunk[start:stop]
            if stop < len(chunk):
                break
        return keys

    def some_between(self, low: bytes, high: bytes | None, count: int, *, reverse: bool = False) -> list[bytes]:
        """Return some of the keys in [low, high), at least one if there is any: those that come first in the order.

        Parameters
        ----------
        low : bytes
        high : bytes or None
            None stands for no bound.
        count : int
            The greatest number of keys.
        reverse : bool
            True for descending order.

        Examples
        --------
        >>> SortedKeys([b"c", b"a", b"b"]).some_between(b"", None, 2, reverse=True)
        [b'c', b'b']
        """
        step = -1 if reverse else 1
        number = self._chunk_of(low) if not reverse else len(self._chunks) - 1 if high is None else self._chunk_of(high)
        while 0 <= number < len(self._chunks):
            chunk = self._chunks[number]
            start = bisect_left(chunk, low)
            stop = len(chunk) if high is None else bisect_left(chunk, high)
            if start < stop:
                return (
                    chunk[max(start, stop - count) : stop][::-1] if reverse else chunk[start : min(stop, start + count)]
                )
            if chunk and (start > 0 if reverse else stop < len(chunk)):
                break
            number += step
        return []

    def _chunk_of(self, key: bytes) -> int:
        return max(0, bisect_right(self._firsts, key) - 1)

    def _split(self, number: int) -> None:
        chunk = self._chunks[number]
        self._chunks[number : number + 1] = [chunk[:_CHUNK], chunk[_CHUNK:]]
        self._firsts[number : number + 1] = [chunk[0], chunk[_CHUNK]]
