"""Partial results of a batch, merged into the states before it: slot by slot, exactly as record by record.

Sums of floats depend on their order, so they go on from the old state, one record after the other; sums of integers
that might leave 64 bits are added as Python's integers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from kstreams.expressions import Aggregation, Operation
from kstreams.expressions.functions import with_member
from kstreams.kernel.batch import Integers
from kstreams.processor.columns.windowing import RowGroups
from kstreams.processor.operators.aggregation.members import Members

Old = list[Any]
Merge = Callable[[Old, RowGroups, "pa.Array | None"], list[Any]]


def merge_states(
    aggregation: Aggregation,
    old: Old,
    groups: RowGroups,
    inputs: Sequence[pa.Array | None],
    members: Members | None = None,
) -> list[object]:
    """Return the states of all groups after a batch.

    Parameters
    ----------
    aggregation : Aggregation
    old : list, one per group
        The states before.
    groups : RowGroups
    inputs : sequence, one per slot
        The values that the slot aggregates.
    members : Members, optional
        The members of the groups, if they are rows.
    """
    if aggregation.is_count:
        return merge(Operation.ROWS, old, groups, None)
    merged = []
    for slot, (node, before, column) in enumerate(zip(aggregation.slots, zip(*old, strict=True), inputs, strict=True)):
        if members is not None and node.operation is Operation.DISTINCT:
            merged.append(_added(list(before), members.added_to_groups(slot, groups, *_present(groups, column))))
        else:
            merged.append(merge(node.operation, list(before), groups, column))
    return list(zip(*merged, strict=True))


def merge(operation: Operation, old: Old, groups: RowGroups, values: pa.Array | None) -> list[object]:
    """Return the slots of all groups after a batch.

    Parameters
    ----------
    operation : Operation
        An aggregation.
    old : list, one per group
        The slot before; for a new group 0 of counts and None of the others.
    groups : RowGroups
        Which record belongs to which group.
    values : pyarrow array, one per record, or None
        What is aggregated; `ks.len()` needs none.

    Examples
    --------
    >>> groups = RowGroups(np.array([0, 1, 0]), ["a", "b"], None)
    >>> merge(Operation.SUM, [None, 5], groups, pa.array([1, 2, 3]))
    [4, 7]
    """
    return _MERGES[operation](old, groups, values)


def _rows(old: Old, groups: RowGroups, _: pa.Array | None) -> list[Any]:
    return _added(old, np.bincount(groups.of_row, minlength=len(groups)))


def _count(old: Old, groups: RowGroups, values: pa.Array | None) -> list[object]:
    of_row, _ = _present(groups, values)
    return _added(old, np.bincount(of_row, minlength=len(groups)))


def _added(old: Old, counts: Integers) -> list[object]:
    sums: list[object] = (np.array(old, np.int64) + counts).tolist()
    return sums


def _present(groups: RowGroups, values: Any) -> tuple[Integers, Any]:
    """Return the groups and values of the records whose value is not null."""
    if values.null_count == 0:
        return groups.of_row, values
    return groups.of_row[values.is_valid().to_numpy(zero_copy_only=False)], values.drop_null()


def _sum(old: Old, groups: RowGroups, values: Any) -> list[Any]:
    of_row, present = _present(groups, values)
    numbers = present.to_numpy()
    if pa.types.is_floating(values.type):
        # Minus zero is what changes nothing: plus zero would turn a sum of minus zeros around.
        totals = np.array([-0.0 if slot is None else slot for slot in old])
        np.add.at(totals, of_row, numbers)
        return _where_touched(old, totals.tolist(), of_row)
    largest = max(abs(int(numbers.min())), abs(int(numbers.max()))) if len(numbers) else 0
    safe = largest * len(numbers) < 2**63
    totals = np.zeros(len(groups), np.int64 if safe else object)
    np.add.at(totals, of_row, numbers if safe else numbers.astype(object))
    sums = [part if slot is None else slot + part for slot, part in zip(old, totals.tolist(), strict=True)]
    return _where_touched(old, sums, of_row)


def _extreme(integers: Any, floats: Any, worst: int) -> Merge:
    def rule(old: Old, groups: RowGroups, values: Any) -> list[Any]:
        of_row, present = _present(groups, values)
        if pa.types.is_floating(values.type):
            before = np.array([np.nan if slot is None else slot for slot in old])
            best = before.copy()
            floats.at(best, of_row, present.to_numpy())
            # Zero and minus zero are equal: what was there first stays, as it does record by record.
            best = np.where(best == before, before, best)
        else:
            best = np.array([worst if slot is None else slot for slot in old], np.int64)
            integers.at(best, of_row, present.to_numpy())
        return _where_touched(old, best.tolist(), of_row)

    return rule


def _where_touched(old: Old, new: list[object], of_row: Integers) -> list[object]:
    """Return the new slots of groups that had a value or have one now; None for other groups."""
    if None not in old:
        return new
    touched = np.bincount(of_row, minlength=len(old)).tolist()
    return [None if slot is None and not count else sums for slot, count, sums in zip(old, touched, new, strict=True)]


def _first(old: Old, groups: RowGroups, values: object) -> list[object]:
    of_row, present = _present(groups, values)
    first_rows = _of_rows(np.minimum, len(of_row), of_row, len(groups), present)
    return [new if slot is None else slot for slot, new in zip(old, first_rows, strict=True)]


def _last(old: Old, groups: RowGroups, values: object) -> list[object]:
    of_row, present = _present(groups, values)
    last_rows = _of_rows(np.maximum, -1, of_row, len(groups), present)
    return [slot if new is None else new for slot, new in zip(old, last_rows, strict=True)]


def _distinct(old: Old, groups: RowGroups, values: object) -> list[Any]:
    of_row, present = _present(groups, values)
    pairs = dict.fromkeys(zip(of_row.tolist(), present.to_pylist(), strict=True))
    new = list(old)
    for at, value in pairs:
        new[at] = with_member(new[at], value)
    return new


def _of_rows(choose: Any, nowhere: int, of_row: Integers, count: int, values: pa.Array) -> list[Any]:
    """Return the value of the first or last record of each group; None for a group without one."""
    rows = np.full(count, nowhere)
    choose.at(rows, of_row, np.arange(len(of_row)))
    slots: list[Any] = values.take(pa.array(rows, mask=rows == nowhere)).to_pylist()
    return slots


_MERGES: dict[Operation, Merge] = {
    Operation.ROWS: _rows,
    Operation.COUNT: _count,
    Operation.SUM: _sum,
    Operation.MIN: _extreme(np.minimum, np.fmin, 2**63 - 1),
    Operation.MAX: _extreme(np.maximum, np.fmax, -(2**63)),
    Operation.DISTINCT: _distinct,
    Operation.FIRST: _first,
    Operation.LAST: _last,
}
