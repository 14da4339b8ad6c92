"""The members of the groups of an aggregation of a stream, such as the values of `n_unique()`, as rows of a store.

The store lies beside that of the aggregates, and has one row per group, slot and member. So a record changes one small
row, however many members its group has. The key of a row (`MemberRowSerde`) ends with the member in `ordered_bytes`.
The store of an aggregation by window is a window store with the same starts, so that members expire with their windows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kstreams.kernel.batch import Integers
from kstreams.processor.columns.windowing import RowGroups
from kstreams.processor.context.operator_context import OperatorContext
from kstreams.processor.operators.aggregation.counted_members import CountedMembers
from kstreams.serdes import Serde
from kstreams.serdes.member_rows import row_prefix
from kstreams.state.rows.ordered_bytes import ordered_bytes

_PRESENT = b"\1"


@dataclass(frozen=True, slots=True)
class MemberRows:
    """Where the members of an aggregation are.

    Parameters
    ----------
    store : str
        The name of the store.
    aggregates : str
        The name of the store of the aggregates, which knows the serde of the groups' keys.
    windowed : bool
        True if both are window stores.
    types : mapping of int to type
        The types of the members of each slot.
    """

    store: str
    aggregates: str
    windowed: bool
    types: Mapping[int, Any]

    def open(self, context: OperatorContext) -> Members:
        """Return the members in one task."""
        store = context.state_store(self.store)
        key: Serde = context.state_store(self.aggregates).builder.key
        return WindowMembers(store, key, self.types) if self.windowed else Members(store, key, self.types)


class Members(CountedMembers):
    """The members of the groups of one task, which only come.

    Parameters
    ----------
    store : KeyValueStore
    key : Serde
        The serde of the groups' keys.
    types : mapping of int to type
        The types of the members of each slot.
    """

    __slots__ = ("_store",)

    def __init__(self, store: Any, key: Serde, types: Mapping[int, Any]) -> None:
        super().__init__(store, key, types)
        self._store = store

    def enter_window(self, key: Any, start_ms: int) -> None:
        """Go to the group of a key and window."""
        self._group = self._key.serialize(key)

    def added(self, slot: int, value: Any) -> int:
        """Add a member. Return 1 if it is new; 0 if the group has it, or for a NaN."""
        if value != value:  # noqa: PLR0124 (of a NaN alone)
            return 0
        row = row_prefix(self._group, slot) + ordered_bytes(value)
        if self._rows.get(row) is not None:
            return 0
        self._rows.put(row, _PRESENT)
        return 1

    def added_to_groups(self, slot: int, groups: RowGroups, of_row: Integers, values: pa.Array) -> Integers:
        """Add the values of a batch to their groups. Return how many of them are new, by group.

        Parameters
        ----------
        slot : int
        groups : RowGroups
        of_row : numpy int64 array, shape (n,)
            The group of each value.
        values : pyarrow array, shape (n,)
            Values without nulls.
        """
        pairs, distinct = _distinct_pairs(of_row, values)
        members = [None if value != value else ordered_bytes(value) for value in distinct]  # noqa: PLR0124 (NaN)
        prefixes = [row_prefix(self._key.serialize(key), slot) for key in groups.keys]
        in_groups = []
        rows = []
        for pair in pairs.tolist():
            group, at = divmod(pair, len(members))
            member = members[at]
            if member is not None:
                in_groups.append(group)
                rows.append(prefixes[group] + member)
        added = [at for at, count in enumerate(self._counts(groups, in_groups, rows)) if count is None]
        added_in = [in_groups[at] for at in added]
        self._put_many(groups, added_in, [rows[at] for at in added])
        return np.bincount(np.array(added_in, np.int64), minlength=len(groups))

    def _counts(self, groups: RowGroups, in_groups: list[int], rows: list[bytes]) -> list[bytes | None]:
        counts: list[bytes | None] = self._store.get_many(rows)
        return counts

    def _put_many(self, groups: RowGroups, in_groups: list[int], rows: list[bytes]) -> None:
        self._store.put_many(rows, [_PRESENT] * len(rows))


class RowsOfWindow:
    """The rows of one window of a window store, with the methods of a key-value store.

    Attributes
    ----------
    start_ms : int
        The start of the window.
    """

    __slots__ = ("_store", "start_ms")

    def __init__(self, store: Any) -> None:
        self._store = store
        self.start_ms = 0

    def get(self, row: bytes) -> Any:
        return self._store.get(row, self.start_ms)

    def put(self, row: bytes, value: bytes | None) -> None:
        self._store.put(row, value, self.start_ms)

    def first_rows(self, low: bytes, high: bytes | None, *, reverse: bool = False) -> Iterator[tuple[bytes, bytes]]:
        rows: Iterator[tuple[bytes, bytes]] = self._store.first_rows(self.start_ms, low, high, reverse=reverse)
        return rows


class WindowMembers(Members):
    """The members of groups by key and window."""

    __slots__ = ("_window",)

    def __init__(self, store: Any, key: Serde, types: Mapping[int, Any]) -> None:
        super().__init__(store, key, types)
        self._rows = self._window = RowsOfWindow(store)

    def enter(self, key: Any) -> None:
        self.enter_window(key[0], key[1][0])

    def enter_window(self, key: Any, start_ms: int) -> None:
        self._group = self._key.serialize(key)
        self._window.start_ms = start_ms

    def _counts(self, groups: RowGroups, in_groups: list[int], rows: list[bytes]) -> list[bytes | None]:
        counts: list[bytes | None] = self._store.get_many(rows, _starts(groups, in_groups))
        return counts

    def _put_many(self, groups: RowGroups, in_groups: list[int], rows: list[bytes]) -> None:
        self._store.put_many(rows, _starts(groups, in_groups), [_PRESENT] * len(rows))


def _starts(groups: RowGroups, in_groups: list[int]) -> list[int]:
    starts = groups.starts or []
    return [starts[group] for group in in_groups]


def _distinct_pairs(of_row: Integers, values: pa.Array) -> tuple[Integers, list[Any]]:
    """Return the distinct pairs of group and value, in the order of the groups, and the distinct values.

    A pair is: group * number of distinct values + position of the value.

    Examples
    --------
    >>> _distinct_pairs(np.array([1, 0, 1]), pa.array(["a", "b", "a"]))
    (array([1, 2]), ['a', 'b'])
    """
    if pa.types.is_floating(values.type):
        values = pc.add(values, 0.0)  # turns -0.0 into 0.0, which is equal
    encoded = values.dictionary_encode()
    distinct = encoded.dictionary.to_pylist()
    codes = encoded.indices.to_numpy().astype(np.int64)
    return np.unique(of_row * len(distinct) + codes), distinct
