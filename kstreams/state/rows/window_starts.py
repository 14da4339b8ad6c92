"""The starts of windows: at which of them a key has a window, and at which places of a column each stands."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable
from typing import Any


class StartsOfKeys(dict[Any, list[int]]):
    """The starts of every live key, ascending: what makes fetches cheap where nearly every record has its own."""

    def note(self, key: Any, start_ms: int) -> None:
        """A key has a window at a start, perhaps known already."""
        starts = self.setdefault(key, [])
        place = bisect_left(starts, start_ms)
        if starts[place : place + 1] != [start_ms]:
            starts.insert(place, start_ms)

    def between(self, key: Any, from_ms: int, to_ms: int) -> list[int]:
        """The starts of a key with from <= start <= to."""
        starts = self.get(key, [])
        return starts[bisect_left(starts, from_ms) : bisect_right(starts, to_ms)]

    def drop_until(self, keys: Iterable[Any], start_ms: int) -> None:
        """Forget the starts of keys up to this one."""
        for key in keys:
            starts = self.get(key, [])
            del starts[: bisect_right(starts, start_ms)]
            if not starts:
                self.pop(key, None)


def places_by_start(starts: list[int]) -> list[tuple[int, list[int]]]:
    """The places at which each start stands.

    Examples
    --------
    >>> places_by_start([5, 0, 5])
    [(5, [0, 2]), (0, [1])]
    """
    places = defaultdict[int, list[int]](list)
    for place, start_ms in enumerate(starts):
        places[start_ms].append(place)
    return list(places.items())
