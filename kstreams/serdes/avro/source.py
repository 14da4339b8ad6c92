"""`Source`: the text of a function under construction that reads or writes one schema.

Each line knows the field that it is about, so that an error that Python raises there can name the field.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_FILE = "<avro>"


class Source:
    """Lines, and the objects that they name. It holds names made here alone; all else is bound by name."""

    def __init__(self, **names: Any) -> None:
        self._names = names
        self._lines: list[str] = []
        self._paths: list[str] = []
        self._depth, self._count, self.path = 0, 0, ""

    def add(self, *lines: str) -> None:
        """Append lines in the block that is open."""
        for line in lines:
            self._lines.append("    " * self._depth + line)
            self._paths.append(self.path)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """What is added meanwhile stands in a block under a line."""
        self.add(f"{head}:")
        self._depth += 1
        before = len(self._lines)
        try:
            yield
        finally:
            if len(self._lines) == before:
                self.add("pass")
            self._depth -= 1

    @contextmanager
    def field(self, name: str) -> Iterator[None]:
        """What is added meanwhile is about a field."""
        outer = self.path
        self.path = f"{outer}.{name}" if outer else name
        try:
            yield
        finally:
            self.path = outer

    @contextmanager
    def apart(self) -> Iterator[None]:
        """What is added meanwhile stands before everything else, as a function of its own."""
        lines, paths, depth = self._lines, self._paths, self._depth
        self._lines, self._paths, self._depth = [], [], 0
        try:
            yield
        finally:
            self._lines, self._paths = self._lines + lines, self._paths + paths
            self._depth = depth

    def variable(self) -> str:
        """A new name."""
        self._count += 1
        return f"v{self._count}"

    def bound(self, value: Any) -> str:
        """A name for a value."""
        self._count += 1
        name = f"c{self._count}"
        self._names[name] = value
        return name

    def functions(self, *names: str) -> tuple[Callable[..., Any], ...]:
        """The functions of these names."""
        namespace = dict(self._names)
        exec(compile("\n".join(self._lines), _FILE, "exec"), namespace)  # made of names of this class alone
        return tuple(namespace[name] for name in names)

    def field_of(self, error: BaseException) -> str:
        """The field at which a function of this source raised an error; empty where that is not known."""
        place, trace = "", error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == _FILE and 0 < trace.tb_lineno <= len(self._paths):
                place = self._paths[trace.tb_lineno - 1] or place
            trace = trace.tb_next
        return place
