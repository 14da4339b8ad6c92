"""`CompiledSource`: functions under construction that read or fill messages, whose lines know the field they are about.

A line that moves a field ends with the field's name as a comment, so that an error which Python raises there can name
the field.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

_NUMBERS = count()
_MARK = "  # "
_WITHIN_A_LINE = ("<listcomp>", "<dictcomp>")
"""Functions of Python's own, whose line is that of the field around them."""


class CompiledSource:
    """Lines, and the objects that they name. It holds names made here and identifiers of schemas; all else is bound."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {}
        self.lines: list[str] = []
        self._file = f"<protobuf {next(_NUMBERS)}>"

    def bound(self, value: Any) -> str:
        """A name for an object."""
        name = f"c{len(self.names)}"
        self.names[name] = value
        return name

    def function(self, name: str) -> Callable[..., Any]:
        """The function of a name, once all lines are there."""
        exec(compile("\n".join(self.lines), self._file, "exec"), self.names)
        function: Callable[..., Any] = self.names[name]
        return function

    def place_of(self, error: BaseException) -> str:
        """The path of the field at which a function of this source raised an error, for sentences; or nothing."""
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
    """Lines that are about a field, as far as they are not about a part of it."""
    name = field if field.isprintable() else repr(field)
    return [line if _MARK in line else f"{line}{_MARK}{name}" for line in lines]
