"""Functions of whole records in the graph: those that were given with `with_record=True`."""

from __future__ import annotations

from typing import Any

from kstreams.errors import TopologyError
from kstreams.expressions import Expr
from kstreams.processor.context.record_functions import OfRecord
from kstreams.source_line import declared_at


def taking(function: Any, *, with_record: bool, with_key: bool = False) -> Any:
    """A function as its node holds it: one of the whole record is marked.

    Raises
    ------
    TopologyError
        When an expression is to take the record, or a function the key beside it.

    Examples
    --------
    >>> taking(len, with_record=False)
    <built-in function len>
    """
    if not with_record:
        return function
    if isinstance(function, Expr | tuple):
        raise TopologyError(
            f"with_record=True at {declared_at()} is for functions: an expression reads what it needs by itself, as "
            'ks.header("trace-id"), ks.timestamp, ks.topic or ks.offset'
        )
    if with_key:
        raise TopologyError(
            f"the operator at {declared_at()} has with_key=True and with_record=True: leave with_key out, the record "
            "has the key"
        )
    return OfRecord(function)
