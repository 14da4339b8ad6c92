"""The plain Python loops that everything is measured beside: the same result with a dict, nothing kept on disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import process_time
from typing import Any


def rate(count: int, work: Callable[[], Any], rounds: int = 3) -> float:
    """Records a second of CPU time, the best of a few rounds."""
    best = float("inf")
    for _ in range(rounds):
        start = process_time()
        work()
        best = min(best, process_time() - start)
    return count / best


def three_lambdas(rows: Sequence[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
    """A map, a filter and a map over (key, value, timestamp)."""
    double, odd, shift = (lambda value: value * 2), (lambda key, value: value % 3 != 0), (lambda value: value + 1)
    out = []
    for key, value, timestamp in rows:
        doubled = double(value)
        if odd(key, doubled):
            out.append((key, shift(doubled), timestamp))
    return out


def windowed_count(keys: Sequence[str], timestamps: Sequence[int], size_ms: int) -> dict[tuple[str, int], int]:
    """Records by key and window."""
    counts: dict[tuple[str, int], int] = {}
    get = counts.get
    for key, timestamp in zip(keys, timestamps, strict=True):
        place = (key, timestamp - timestamp % size_ms)
        counts[place] = get(place, 0) + 1
    return counts


def word_count(lines: Sequence[str]) -> dict[str, int]:
    """How often each word occurs."""
    counts: dict[str, int] = {}
    for line in lines:
        for word in line.lower().split():
            counts[word] = counts.get(word, 0) + 1
    return counts
