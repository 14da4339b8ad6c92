"""`Rows`: a DataFrame of the program, made of other DataFrames; `Stream`: how the columns of one are to be read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from kstreams.dsl.graph import Node
from kstreams.serdes import Serde


@dataclass(frozen=True, eq=False)
class Rows:
    """A DataFrame.

    Parameters
    ----------
    node : Node
        The operator that it stands for.
    start : str
        The text that begins it, in which `{0}` and `{1}` stand for the names of the DataFrames that it reads.
    parents : tuple of Rows
        The DataFrames that it reads.
    calls : tuple of str
        The methods that are called on it one after the other: `.where(...)`.
    side : str
        The side of a join that it is, `left` or `right`; empty if it is no side.
    """

    node: Node
    start: str
    parents: tuple[Rows, ...] = ()
    calls: tuple[str, ...] = ()
    side: str = ""

    @property
    def follows(self) -> bool:
        """True if it only calls methods of its parent, so that it needs no name for it."""
        return self.start == "{0}"

    @property
    def comment(self) -> str:
        """The operator and its line: `filter(), app.py:12`; empty for a side of a join."""
        if self.side:
            return ""
        place = Path(self.node.declared_at).name
        return f"{self.node.called}, {place}" if place else self.node.called


class Window(Enum):
    """The kind of windows that the keys of a stream have. Their bounds are in the column `window`."""

    TIME = "time"
    SESSION = "session"


@dataclass(frozen=True)
class Stream:
    """The rows of an operator: `key` as bytes, `value` as a typed column, `timestamp`, and `window` if there is one.

    Parameters
    ----------
    rows : Rows
    key, value : Serde
        The serde of the bytes in `key`, and the serde for which `value` has its type.
    is_checked : bool
        True if every value has been read from a topic, so that it can be written again without a check.
    window : Window or None
    mode : {"append", "update"}
        The output mode of the query.
    has_state : bool
        True if Spark keeps state for an operator before it.
    """

    rows: Rows
    key: Serde
    value: Serde
    is_checked: bool = False
    window: Window | None = None
    mode: str = "append"
    has_state: bool = False

    def then(self, node: Node, *calls: str) -> Stream:
        """Return the stream after calls of methods."""
        return replace(self, rows=Rows(node, "{0}", (self.rows,), calls))

    @property
    def columns(self) -> str:
        """The names of its columns, as arguments of `select`."""
        return '"key", "value", "timestamp"' + (', "window"' if self.window else "")
