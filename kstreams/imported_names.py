"""`imports_of`: what a piece of code imports, wherever in it: also within its functions."""

from __future__ import annotations

import dis
from collections.abc import Iterator
from types import CodeType
from typing import NamedTuple


class Import(NamedTuple):
    """One import of a piece of code.

    Parameters
    ----------
    level : int
        How many folders up a relative import begins; 0 for an absolute one.
    module : str
        Empty for `from . import name`.
    names : tuple of str
        What is taken from it.
    """

    level: int
    module: str
    names: tuple[str, ...]

    def __str__(self) -> str:
        return "." * self.level + self.module


def imports_of(code: CodeType) -> Iterator[Import]:
    """All imports of a piece of code.

    Examples
    --------
    >>> list(imports_of(compile("def f():\\n    from ..rules import shout", "app.py", "exec")))
    [Import(level=2, module='rules', names=('shout',))]
    """
    loaded: list[object] = []
    for instruction in dis.get_instructions(code):
        if instruction.opname == "IMPORT_NAME":  # its level and names were loaded last
            level, names = loaded[-2:]
            assert isinstance(level, int)
            assert names is None or isinstance(names, tuple)
            yield Import(level, str(instruction.argval), names or ())
        elif instruction.opname in ("LOAD_CONST", "LOAD_SMALL_INT"):
            loaded.append(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from imports_of(constant)
