"""What the states of two parts of the records make together, as when two sessions become one."""

from __future__ import annotations

from collections.abc import Callable

from kstreams.errors import TopologyError
from kstreams.expressions.aggregation import UPDATES, Aggregation, State
from kstreams.expressions.expression import Expr
from kstreams.expressions.operations import Operation
from kstreams.expressions.python import Body

_SUM = "{old} + {new}"
_MERGES = {
    Operation.ROWS: _SUM,
    Operation.COUNT: _SUM,
    **{same: UPDATES[same] for same in (Operation.SUM, Operation.MIN, Operation.MAX)},
}


def merging(aggregation: Aggregation) -> Callable[[State, State], State]:
    """The function `(state, state) -> state` of an aggregation; the initial state changes nothing.

    Raises
    ------
    TopologyError
        When it depends on the order of the records, which two states no longer tell.

    Examples
    --------
    >>> from kstreams.expressions import aggregation, col, rows
    >>> merging(aggregation({"flights": rows(), "most": col("delay").max()}))((2, 5), (1, 9))
    (3, 9)
    """
    if aggregation.is_count:
        return lambda one, other: one + other
    body, size = Body(("one", "other")), range(len(aggregation.slots))
    olds, news = [f"a{index}" for index in size], [f"b{index}" for index in size]
    body.lines += [f"{', '.join(olds)}, = one", f"{', '.join(news)}, = other"]
    texts = [
        _merge(slot).format(old=old, new=new) for slot, old, new in zip(aggregation.slots, olds, news, strict=True)
    ]
    return body.function("merge", ("one", "other"), f"({', '.join(f'({text})' for text in texts)},)")


def _merge(slot: Expr) -> str:
    text = _MERGES.get(slot.operation)
    if text is None:
        raise TopologyError(
            f"{slot!r} cannot be aggregated by sessions: when two sessions become one, the order of their records is "
            "lost. Use functions with merger=, or ks.len(), .count(), .sum(), .mean(), .min() and .max()"
        )
    return text
