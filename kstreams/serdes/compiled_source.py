"""`CompiledSource`: the source text of functions that are generated for a type.

A line that converts a field may end with the name of the field as a comment. So the traceback of an error leads to the
field.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

_FILE_NUMBERS = count()
_MARK = "  # "
_COMPREHENSIONS = ("<listcomp>", "<dictcomp>")
"""The names of code objects inside a line. The frame of the line itself names the field."""


class CompiledSource:
    """Lines of source text and the objects that they name.

    The text contains only generated names and identifiers of schemas.
    """

    def __init__(self) -> None:
        self.names: dict[str, Any] = {}
        self.lines: list[str] = []
        self._file = f"<kstreams serde {next(_FILE_NUMBERS)}>"

    def bound(self, value: object) -> str:
        """Bind an object to a new name."""
        name = f"c{len(self.names)}"
        self.names[name] = value
        return name

    def function(self, name: str) -> Callable[..., Any]:
        """Compile all lines, and return the function with a name."""
        exec(compile("\n".join(self.lines), self._file, "exec"), self.names)
        function: Callable[..., Any] = self.names[name]
        return function

    def place_of(self, error: BaseException) -> str:
        """Return the path of the field whose line raised an error, for messages. Empty if no line of a field did."""
        path = []
        trace = error.__traceback__
        while trace is not None:
            code = trace.tb_frame.f_code
            if code.co_filename == self._file and code.co_name not in _COMPREHENSIONS:
                path += self.lines[trace.tb_lineno - 1].split(_MARK)[1:]
            trace = trace.tb_next
        return f"{'.'.join(path)}: " if path else ""


def indented(lines: list[str]) -> list[str]:
    """Indent lines by one block."""
    return [f"    {line}" for line in lines]


def marked(field: str, lines: list[str]) -> list[str]:
    """Mark lines with a field, unless they are marked with a nested field."""
    name = field if field.isprintable() else repr(field)
    return [line if _MARK in line else f"{line}{_MARK}{name}" for line in lines]
