"""Join of a stream with a table or global table: each record looks up the table as it is now."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kstreams.processor.context import NodeContext
from kstreams.processor.operator import Forward, TableView

NULL_KEY_OR_VALUE = "null key or value"


@dataclass(frozen=True, slots=True)
class LookupJoin:
    """Looks each record up in a table; updates of the table emit nothing.

    Parameters
    ----------
    table : TableView
        What is looked up.
    joiner : callable
        `joiner(key, value, looked_up)`.
    left : bool
        Whether records without a row in the table are joined with None, or left out.
    select_key : callable, optional
        `select_key(key, value)` gives the table's key (global tables); by default it is the record's.
    as_of : bool
        Whether rows are looked up as they were at the time of the record (versioned tables), or as they are now.
    """

    table: TableView
    joiner: Callable[[Any, Any, Any], Any]
    left: bool = False
    select_key: Callable[[Any, Any], Any] | None = None
    as_of: bool = False

    def bind(self, context: NodeContext, forward: Forward) -> Forward:
        look_up, joiner, left, as_of = self.table.bind(context), self.joiner, self.left, self.as_of
        select_key = self.select_key or _own_key

        def lookup_join(key: Any, value: Any, timestamp: int) -> None:
            table_key = select_key(key, value)
            if value is None or (table_key is None and not (left and key is None)):
                context.dropped(NULL_KEY_OR_VALUE)
                return
            when = (timestamp,) if as_of else ()
            found = None if table_key is None else look_up(table_key, *when)
            if found is not None:
                forward(key, joiner(key, value, found.value), timestamp)
            elif left:
                forward(key, joiner(key, value, None), timestamp)

        return lookup_join


def _own_key(key: Any, value: Any) -> Any:
    return key
