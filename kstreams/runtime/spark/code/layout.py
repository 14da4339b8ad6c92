"""`Layout`: the statements of a program: each DataFrame that several others read gets a name, others are chained."""

from __future__ import annotations

import keyword
import re
from collections import Counter
from collections.abc import Sequence

from kstreams.dsl import graph as g
from kstreams.dsl.graph import Node
from kstreams.runtime.spark.code.rows import Rows
from kstreams.runtime.spark.code.scanning import lines_of
from kstreams.runtime.spark.code.sinks import Sink

WIDTH = 118
"""The width of a line."""

_GENERATED = re.compile(r"K(?:STREAM|TABLE)-([A-Z-]+)-0*(\d+)(.*)")


class Layout:
    """The statements for some sinks.

    Parameters
    ----------
    sinks : sequence of Sink
    reserved : sequence of str
        Names that no DataFrame may have.
    """

    def __init__(self, sinks: Sequence[Sink], reserved: Sequence[str]) -> None:
        self._names: dict[Rows, str] = {}
        self._taken = set(reserved)
        self._uses = Counter[Rows](sink.rows for sink in sinks)
        self._is_operand = set[Rows]()
        self._written = Counter[str]()
        self.statements: list[str] = []
        for rows in all_rows(sinks):
            self._uses.update(rows.parents)
            self._is_operand.update(() if rows.follows else rows.parents)
        for sink in sinks:
            self._write(sink)

    def _write(self, sink: Sink) -> None:
        rows = self._name(sink.rows)
        self._written[sink.topic] += 1
        number = self._written[sink.topic]
        name = f', "{sink.topic}-{number}"' if number > 1 else ""
        comment = Rows(sink.node, "").comment
        records = f'{rows}.select({sink.columns}), "{sink.topic}"'
        stateless = f"write_stateless({records}{name})"
        write = f'write({records}, "{sink.mode}"{name})' if sink.has_state else stateless
        self.statements.append("\n".join([f"# {comment}", *lines_of(write, WIDTH)]))

    def _name(self, rows: Rows) -> str:
        """Return the name of a DataFrame, after the statement that assigns it."""
        if rows not in self._names:
            lines = self._lines(rows)
            self._names[rows] = self._new_name(rows)
            body = "\n".join(f"    {part}" for line in lines for part in _parts(line))
            self.statements.append(f"{self._names[rows]} = (\n{body}\n)")
        return self._names[rows]

    def _lines(self, rows: Rows) -> list[str]:
        """Return the lines of the expression of a DataFrame, down to the first that has a name."""
        comment = [f"# {rows.comment}"] if rows.comment else []
        if not rows.follows:
            start = rows.start.format(*map(self._name, rows.parents))
            return [*comment, start, *rows.calls]
        [parent] = rows.parents
        if self._uses[parent] > 1 or parent in self._is_operand:
            return [self._name(parent), *comment, *rows.calls]
        return [*self._lines(parent), *comment, *rows.calls]

    def _new_name(self, rows: Rows) -> str:
        name = rows.side or _name_of(rows)
        names = [name, *(f"{name}_{number}" for number in range(2, 1_000))]
        new = next(candidate for candidate in names if candidate not in self._taken)
        self._taken.add(new)
        return new


def _parts(line: str) -> list[str]:
    return [line] if line.startswith("#") else lines_of(line, WIDTH - 4)


def all_rows(sinks: Sequence[Sink]) -> list[Rows]:
    """Return the DataFrames of some sinks, each once."""
    all_rows: dict[Rows, None] = {}
    pending = [sink.rows for sink in sinks]
    while pending:
        rows = pending.pop()
        if rows not in all_rows:
            all_rows[rows] = None
            pending.extend(rows.parents)
    return list(all_rows)


def streamed_sources(sinks: Sequence[Sink]) -> list[Node]:
    """Return the sources that some sinks read as streams, not as tables, each once."""
    rows = (rows for rows in all_rows(sinks) if rows.start.startswith(_STREAMS))
    return list({rows.node.name: rows.node for rows in rows}.values())


_STREAMS = ("read(", "read_by_partition(")


def _name_of(rows: Rows) -> str:
    """Return the name of a DataFrame, by its topic or its operator."""
    node = rows.node
    if isinstance(node, g.StreamSource):
        return as_identifier(node.topics[0])
    generated = _GENERATED.fullmatch(node.name)
    return as_identifier(f"{generated[1]}_{generated[2]}{generated[3]}".lower() if generated else node.name)


def as_identifier(name: str) -> str:
    """Return a name as Python takes it.

    Examples
    --------
    >>> as_identifier("orders-by-city"), as_identifier("2024")
    ('orders_by_city', 'rows_2024')
    """
    words = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")
    return words if words.isidentifier() and not keyword.iskeyword(words) else f"rows_{words}"
