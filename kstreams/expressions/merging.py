"""What the states of two parts of the records make together, as when two sessions become one."""

from __future__ import annotations

from collections.abc import Callable

from kstreams.expressions.aggregation import UPDATES, Aggregation, State
from kstreams.expressions.functions import union
from kstreams.expressions.operations import Operation
from kstreams.expressions.python import Body
from kstreams.expressions.types import Schema

_MERGES = {
    **UPDATES,
    Operation.ROWS: "{old} + {new}",
    Operation.COUNT: "{old} + {new}",
    Operation.DISTINCT: "union({old}, {new})",
}


def merging(aggregation: Aggregation) -> Callable[[State, State], State]:
    """The function `(state, state) -> state` of an aggregation; the initial state changes nothing.

    The first state is that of the earlier session: its `first()` is that of both, and the `last()` of the other one.

    Examples
    --------
    >>> from kstreams.expressions import aggregation, col, rows
    >>> merging(aggregation({"flights": rows(), "most": col("delay").max()}))((2, 5), (1, 9))
    (3, 9)
    """
    if aggregation.is_count:
        return lambda first, other: first + other
    body = Body(("one", "other"), Schema())
    size = range(len(aggregation.slots))
    body.names["union"] = union
    olds = [f"a{index}" for index in size]
    news = [f"b{index}" for index in size]
    body.lines += [f"{', '.join(olds)}, = one", f"{', '.join(news)}, = other"]
    slots = zip(aggregation.slots, olds, news, strict=True)
    texts = [_MERGES[slot.operation].format(old=old, new=new) for slot, old, new in slots]
    return body.function("merge", ("one", "other"), f"({', '.join(f'({text})' for text in texts)},)")
