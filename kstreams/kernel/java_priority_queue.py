"""A binary heap with the order of Java's `PriorityQueue`, which is unspecified for ties but deterministic.

Kafka Streams keeps partitions and punctuators in such queues, ordered by their time alone. Entries are tuples whose
first item is the time.
"""

from __future__ import annotations

from typing import Any, TypeVar

E = TypeVar("E", bound=tuple[Any, ...])


def push(heap: list[E], entry: E) -> None:
    """Add an entry (Java: `add`).

    Examples
    --------
    >>> heap = []
    >>> for entry in [(1, "a"), (1, "b"), (1, "c"), (0, "d")]:
    ...     push(heap, entry)
    >>> [pop(heap)[1] for _ in range(4)]
    ['d', 'b', 'c', 'a']
    """
    at = len(heap)
    heap.append(entry)
    while at and entry[0] < heap[above := (at - 1) // 2][0]:
        heap[at] = heap[above]
        at = above
    heap[at] = entry


def pop(heap: list[E]) -> E:
    """Remove and return the first entry of a heap that is not empty (Java: `poll`)."""
    first = heap[0]
    last = heap.pop()
    if heap:
        _sink(heap, last)
    return first


def _sink(heap: list[E], entry: E) -> None:
    """Replace the first entry, and move the new one below all earlier entries."""
    at = 0
    while (below := _earlier_child(heap, at)) is not None and heap[below][0] < entry[0]:
        heap[at] = heap[below]
        at = below
    heap[at] = entry


def _earlier_child(heap: list[E], at: int) -> int | None:
    """Return the index of the earlier child, or of the left one if both are equal."""
    children = range(2 * at + 1, min(2 * at + 3, len(heap)))
    return min(children, key=lambda child: heap[child][0], default=None)
