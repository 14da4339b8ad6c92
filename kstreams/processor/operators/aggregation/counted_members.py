"""`CountedMembers`: the members of groups as rows of a store, each with its number, and lists of them.

Both streams and grouped tables aggregate by them. A member is a row with the number of records or table rows that have
it, so that one which leaves is taken back. If the least or the greatest member leaves, the next one is read.

The values of `collect()` are rows by version: the state of a group has the number of changes of its list, and a row the
version in which its value came. So the list of an earlier state is still there when the record cache emits it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, TypeAlias

from kstreams.serdes import MsgpackSerde, Serde
from kstreams.serdes.member_rows import row_prefix
from kstreams.state.column_family import after_prefix
from kstreams.state.rows.ordered_bytes import ordered_bytes

Pair: TypeAlias = tuple[Any, Any]
"""The value by which a pair is chosen, and the value that is returned."""

Ranked: TypeAlias = tuple[int, int, Any, Any]
"""The number of values, the number of values less than the one below a rank, and the values below and above it."""

VERSION_BYTES = 8
_STAYS = -1
"""Stands for the version in which a value left a list."""


class CountedMembers:
    """The members of the groups of one task, each with the number of rows that have it; a NaN is no member.

    Parameters
    ----------
    rows : KeyValueStore of bytes, or RowsOfWindow
    key : Serde
        The serde of the groups' keys.
    types : mapping of int to type
        The types of the members of each slot.
    """

    __slots__ = ("_group", "_key", "_rows", "_serdes")

    def __init__(self, rows: Any, key: Serde, types: Mapping[int, Any]) -> None:
        self._rows = rows
        self._key = key
        self._serdes = {slot: MsgpackSerde(tuple[int, kind]) for slot, kind in types.items()}  # type: ignore[valid-type]
        self._group = b""

    def enter(self, key: Any) -> None:
        """Go to the group of a key of the table."""
        self._group = self._key.serialize(key)

    def added(self, slot: int, value: Any) -> int:
        """Add a value. Return 1 if it is new, else 0."""
        return self._changed(slot, value, 1) == 1

    def removed(self, slot: int, value: Any) -> int:
        """Remove a value once. Return 1 if it is gone, else 0."""
        return self._changed(slot, value, -1) == 0

    def with_least(self, slot: int, value: Any, least: Any) -> Any:
        """Add a value; return the least of all."""
        return value if self._changed(slot, value, 1) == 1 and (least is None or value < least) else least

    def with_greatest(self, slot: int, value: Any, greatest: Any) -> Any:
        """Add a value; return the greatest of all."""
        return value if self._changed(slot, value, 1) == 1 and (greatest is None or value > greatest) else greatest

    def without_least(self, slot: int, value: Any, least: Any) -> Any:
        """Remove a value once; return the least of those that stay, or None."""
        return self._first(slot) if self._changed(slot, value, -1) == 0 and value == least else least

    def without_greatest(self, slot: int, value: Any, greatest: Any) -> Any:
        """Remove a value once; return the greatest of those that stay, or None."""
        return self._first(slot, last=True) if self._changed(slot, value, -1) == 0 and value == greatest else greatest

    def with_least_pair(self, slot: int, pair: Pair, least: Pair | None) -> Pair | None:
        """Add a pair; return the least of all, in the order of their bytes: values may have no order in Python."""
        self._changed(slot, pair, 1)
        return least if least is not None and pair[0] > least[0] else self._first(slot)

    def with_greatest_pair(self, slot: int, pair: Pair, greatest: Pair | None) -> Pair | None:
        """Add a pair; return the greatest of all."""
        self._changed(slot, pair, 1)
        return greatest if greatest is not None and pair[0] < greatest[0] else self._first(slot, last=True)

    def without_least_pair(self, slot: int, pair: Pair, least: Pair | None) -> Pair | None:
        """Remove a pair once; return the least of those that stay, or None."""
        self._changed(slot, pair, -1)
        return least if least is not None and pair[0] > least[0] else self._first(slot)

    def without_greatest_pair(self, slot: int, pair: Pair, greatest: Pair | None) -> Pair | None:
        """Remove a pair once; return the greatest of those that stay, or None."""
        self._changed(slot, pair, -1)
        return greatest if greatest is not None and pair[0] < greatest[0] else self._first(slot, last=True)

    def with_ranked(self, slot: int, value: Any, ranked: Ranked | None, quantile: float) -> Ranked | None:
        """Add a value; return the values at the rank of a quantile."""
        if self._changed(slot, value, 1) is None:
            return ranked
        if ranked is None:
            return 1, 0, value, value
        count, less, lower, _ = ranked
        return self._at_rank(slot, count + 1, less + (value < lower), lower, quantile)

    def without_ranked(self, slot: int, value: Any, ranked: Ranked | None, quantile: float) -> Ranked | None:
        """Remove a value once; return the values at the rank of a quantile, or None if no value stays."""
        if ranked is None or self._changed(slot, value, -1) is None:
            return ranked
        count, less, lower, _ = ranked
        return self._at_rank(slot, count - 1, less - (value < lower), lower, quantile) if count > 1 else None

    def appended(self, slot: int, value: Any, version: int) -> int:
        """Append a value to a list; return its next version."""
        row = row_prefix(self._group, slot) + version_bytes(version)
        self._rows.put(row, self._serdes[slot].serialize((_STAYS, value)))
        return version + 1

    def listed(self, slot: int, version: int) -> list[Any]:
        """Return the list as of a version."""
        prefix = row_prefix(self._group, slot)
        deserialize = self._serdes[slot].deserialize
        rows = self._rows.first_rows(prefix, prefix + version_bytes(version))
        members = (deserialize(data) for _, data in rows)
        return [value for left_in, value in members if left_in == _STAYS or left_in >= version]

    def _at_rank(self, slot: int, count: int, less: int, lower: Any, quantile: float) -> Ranked:
        """Move from the value `lower`, which may be gone, and of which `less` values are less, to the rank."""
        place = quantile * (count - 1)
        rank = math.floor(place)
        equal = self._count(slot, lower)
        while rank < less:
            equal, lower = self._next(slot, lower, backward=True)
            less -= equal
        while rank >= less + equal:
            less += equal
            equal, lower = self._next(slot, lower)
        is_within = math.ceil(place) < less + equal
        return count, less, lower, lower if is_within else self._next(slot, lower)[1]

    def _count(self, slot: int, value: Any) -> int:
        data = self._rows.get(row_prefix(self._group, slot) + ordered_bytes(value))
        count: int = 0 if data is None else self._serdes[slot].deserialize(data)[0]
        return count

    def _next(self, slot: int, value: Any, *, backward: bool = False) -> tuple[int, Any]:
        """Return the next value in the order of values, which there must be, after its number."""
        prefix = row_prefix(self._group, slot)
        place = prefix + ordered_bytes(value)
        low, high = (prefix, place) if backward else (after_prefix(place), after_prefix(prefix))
        _, data = next(self._rows.first_rows(low, high, reverse=backward))
        count, following = self._serdes[slot].deserialize(data)
        return count, following

    def _changed(self, slot: int, value: Any, by: int) -> int | None:
        """Change the number of a value; return it. None for a NaN, and for a value that is not there."""
        if value != value:  # noqa: PLR0124 (of a NaN alone)
            return None
        row = row_prefix(self._group, slot) + ordered_bytes(value)
        serde = self._serdes[slot]
        data = self._rows.get(row)
        if data is None and by < 0:
            return None
        count: int = by if data is None else serde.deserialize(data)[0] + by
        self._rows.put(row, serde.serialize((count, value)) if count else None)
        return count

    def _first(self, slot: int, *, last: bool = False) -> Any:
        prefix = row_prefix(self._group, slot)
        for _, data in self._rows.first_rows(prefix, after_prefix(prefix), reverse=last):
            return self._serdes[slot].deserialize(data)[1]
        return None


def version_bytes(version: int) -> bytes:
    """Return the bytes of a version, in the order of versions."""
    return version.to_bytes(VERSION_BYTES, "big")
