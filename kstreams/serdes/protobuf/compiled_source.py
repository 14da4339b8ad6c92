"""`CompiledSource`: source text of functions that read or fill messages, and errors that name a field.

A line that converts a field ends with the name of the field as a comment, so that an error raised there can name it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

_NUMBERS = count()
_MARK = "  # "
_WITHIN_A_LINE = ("<listcomp>", "<dictcomp>")
"""Names of code objects inside a line, whose errors belong to that line."""


class CompiledSource:
    """Lines of source text, which contain generated names and identifiers of schemas only, and the named objects."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {}
        self.lines: list[str] = []
        self._file = f"<protobuf {next(_NUMBERS)}>"

    def bound(self, value: object) -> str:
        """Bind an object to a new name."""
        name = f"c{len(self.names)}"
        self.names[name] = value
        return name

    def function(self, name: str) -> Callable[..., Any]:
        """Compile all lines and return the function with a name."""
        exec(compile("\n".join(self.lines), self._file, "exec"), self.names)
        function: Callable[..., Any] = self.names[name]
        return function

    def place_of(self, error: BaseException) -> str:
        """Return the path of the field whose line raised an error, for error messages, or an empty string."""
        path = []
        trace = error.__traceback__
        while trace is not None:
            code = trace.tb_frame.f_code
            line = trace.tb_lineno
            if code.co_filename == self._file and code.co_name not in _WITHIN_A_LINE:
                path += self.lines[line - 1].split(_MARK)[1:]
            trace = trace.tb_next
        return f"{'.'.join(path)}: " if path else ""


def about(field: str, lines: list[str]) -> list[str]:
    """Mark lines with a field, unless they are marked with a nested field."""
    name = field if field.isprintable() else repr(field)
    return [line if _MARK in line else f"{line}{_MARK}{name}" for line in lines]
