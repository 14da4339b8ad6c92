"""How much memory live objects take: weighed by samples, since an estimate by type is off by a factor soon."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

_SHARED = (type, ModuleType, FunctionType, BuiltinFunctionType, bool, type(None))
_KEPT_BY_PYTHON = range(-5, 257)  # integers of which there is one each
_MOST_OBJECTS = 5_000  # of a sample: large values are not weighed by the dozen
SLOT_BYTES = 64
"""What a dict takes for an entry, beside the key and the value: between 36 and 105, as full as it is."""


def footprint(objects: Iterable[Any], counted: set[int] | None = None) -> int:
    """Bytes that objects take with all they hold.

    Parameters
    ----------
    objects : iterable
    counted : set of int, optional
        Identities of what was counted before, and counts no more; those of the objects are added.

    Examples
    --------
    >>> footprint([b"0123456789"]) == footprint([b"0123456789", None, 7, int])
    True
    """
    todo = list(objects)
    size = 0
    counted = set() if counted is None else counted
    while todo:
        current = todo.pop()
        if (
            id(current) in counted
            or isinstance(current, _SHARED)
            or (type(current) is int and current in _KEPT_BY_PYTHON)
        ):
            continue
        counted.add(id(current))
        size += sys.getsizeof(current) + 15 & ~15
        todo += gc.get_referents(current)
    return size


class RowWeight:
    """The bytes of a row of many alike, weighed anew whenever their number has doubled.

    Parameters
    ----------
    sample : callable
        Some of the rows: for each, the objects that are held for it.
    slots : int
        How many entries of dicts a row has.

    Examples
    --------
    >>> weight = RowWeight(lambda: [(bytes([n]) * 1_000, bytes([n]) * 1_000) for n in range(4)], slots=1)
    >>> 2_000 < weight.of(1) < 2_200
    True
    """

    def __init__(self, sample: Callable[[], list[tuple[Any, ...]]], slots: int) -> None:
        self._sample = sample
        self._fixed = slots * SLOT_BYTES
        self._bytes = 0
        self._weighed_at = 0

    def of(self, count: int) -> int:
        """The bytes of a row, when there are `count` of them."""
        if count >= 2 * self._weighed_at or not self._bytes:
            self.weigh(count)
        return self._bytes

    def weigh(self, count: int) -> None:
        """Weigh anew."""
        counted = set[int]()
        weighed = 0
        size = 0
        for row in self._sample():
            size = size + footprint(row, counted)
            weighed = weighed + 1
            if len(counted) > _MOST_OBJECTS:
                break
        if weighed:
            self._bytes = self._fixed + size // weighed
            self._weighed_at = max(1, count)
