"""`sources_of`: the user's own modules that code imports, as text, for a machine that does not have them."""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterable, Iterator
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import resolve_name
from pathlib import Path
from types import CodeType
from typing import NamedTuple

from kstreams.modules.installed import is_installed


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


class Source(NamedTuple):
    """A module as text.

    Parameters
    ----------
    file : str
        Where it lies here; of a package, its `__init__.py`, which need not exist.
    text : str
    """

    file: str
    text: str

    @property
    def is_package(self) -> bool:
        """Whether it is a package."""
        return Path(self.file).name == "__init__.py"


def sources_of(codes: Iterable[tuple[CodeType, str]]) -> dict[str, Source]:
    """The user's modules that pieces of code import, and those that these import, by name.

    Parameters
    ----------
    codes : iterable of (code, str)
        Each with the package that it lies in, which may be empty.
    """
    sources: dict[str, Source] = {}
    pending = [name for code, package in codes for name in _imported_by(code, package)]
    while pending:
        name = pending.pop()
        spec = None if name in sources else _spec_of(name)
        source = None if spec is None else _source_of(spec)
        if source is None:
            continue
        sources[name] = source
        package = name if source.is_package else name.rpartition(".")[0]
        pending += _imported_by(compile(source.text, source.file, "exec", dont_inherit=True), package)
    return sources


def specs_of(name: str, folders: list[str]) -> Iterator[ModuleSpec]:
    """Those of a module and of the packages around it, from the outermost, as far as they exist; nothing is imported.

    Parameters
    ----------
    name : str
    folders : list of str
        Where the outermost is looked for.
    """
    top, *parts = name.split(".")
    spec = next(filter(None, (finder.find_spec(top, folders) for finder in sys.meta_path)), None)
    while spec is not None:
        yield spec
        if not parts:
            return
        # By its own name alone: a full one makes Python look for the package among those that are imported.
        spec = PathFinder.find_spec(parts.pop(0), list(spec.submodule_search_locations or ()))


def _imported_by(code: CodeType, package: str) -> list[str]:
    """The names of modules that code may import: what it takes from a package may be modules too."""
    return [name for imported in imports_of(code) for name in _modules_of(imported, package)]


def _modules_of(imported: Import, package: str) -> Iterator[str]:
    if imported.level and not package:
        return  # Python refuses it
    try:
        module = resolve_name(str(imported), package)
    except ImportError:
        return
    parts = module.split(".")
    yield from (".".join(parts[:count]) for count in range(1, len(parts) + 1))
    yield from (f"{module}.{name}" for name in imported.names)


def _spec_of(name: str) -> ModuleSpec | None:
    specs = list(specs_of(name, sys.path))
    return specs[-1] if len(specs) == name.count(".") + 1 else None


def _source_of(spec: ModuleSpec) -> Source | None:
    """The text of a module; None for one that is installed or has none."""
    folders = list(spec.submodule_search_locations or ())
    file = Path(spec.origin) if spec.has_location and spec.origin else None
    if file is None:  # a package without __init__.py
        return Source(str(Path(folders[0], "__init__.py")), "") if folders and not is_installed(folders[0]) else None
    if file.suffix != ".py" or is_installed(file) or not file.is_file():
        return None
    return Source(str(file), file.read_text())
