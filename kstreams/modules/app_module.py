"""`app_module`: the module that holds an application, by its file or by its name, imported under one name.

A file in a package is imported as part of it, so that `from .rules import ...` works, and so that a test that imports
`pkg.app` has the very module that `kstreams run pkg/app.py` runs.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import Loader
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from kstreams.errors import TopologyError
from kstreams.kernel.advice import nearest_name
from kstreams.modules.installed import is_installed
from kstreams.modules.user_modules import Import, imports_of, specs_of

logger = logging.getLogger(__name__)


class Place(NamedTuple):
    """Where the module of an application lies.

    Parameters
    ----------
    file : Path
        As the user knows it: relative to the current folder, where it was named so or lies below it.
    name : str
        Under which it is imported.
    root : Path
        The folder from which it is imported under this name.
    """

    file: Path
    name: str
    root: Path

    @property
    def folder(self) -> Path:
        """That of the file."""
        return self.file.resolve().parent

    @property
    def package(self) -> str:
        """The package that it is a part of; empty outside of any."""
        return self.name if self.file.name == "__init__.py" else self.name.rpartition(".")[0]


def place_of(target: str) -> Place:
    """Where the module is that a user names: `app.py`, `pkg/app.py`, `pkg.app`.

    Raises
    ------
    TopologyError
        When it is not there, or may not be read.
    """
    is_name = all(part.isidentifier() for part in target.split("."))
    if is_name and not target.endswith(".py") and not _is_plain(Path(target)):
        return _place_of_module(target)
    return _place_of_file(Path(target))


def import_from(place: Place) -> ModuleType:
    """Run the module, unless the program has imported it already.

    What an earlier application of another folder imported from there makes way: both may have siblings of one name.

    Raises
    ------
    TopologyError
        When a package of its name is imported already from elsewhere.
    """
    importlib.invalidate_caches()
    _leave_others(place.root)
    _look_in(place)
    before = set(sys.modules)
    try:
        return _imported(place)
    finally:
        for name in set(sys.modules) - before:
            if _is_users(sys.modules[name]):
                _brought[name] = _Brought(place.root, sys.modules[name])
        _tell_twins()


def shadowing(place: Place, error: BaseException) -> Path | None:
    """The file beside the application that was imported in place of Python's own module, and so led to an error."""
    module = error.name if isinstance(error, ImportError) else None
    if isinstance(error, AttributeError):
        module = getattr(error.obj, "__name__", None)
    name = (module or "").partition(".")[0]
    file = place.folder / f"{name}.py"
    return file if name in sys.stdlib_module_names and file.is_file() else None


@contextmanager
def imports_from(place: Place) -> Iterator[None]:
    """Meanwhile imports look where they look for a module, without that it was run."""
    before = sys.path[:]
    _look_in(place)
    try:
        yield
    finally:
        sys.path[:] = before


class _Brought(NamedTuple):
    """One of the user's modules, and from which folder it came with an application."""

    root: Path
    module: ModuleType


_brought: dict[str, _Brought] = {}

_run: dict[str, ModuleType] = {}
"""The modules of applications, as they were run here."""


def _imported(place: Place) -> ModuleType:
    file = place.file.resolve()
    if place.package and place.package != place.name:
        _require_parents(place)
    present = sys.modules.get(place.name)
    if present is not None and present is not _run.get(place.name) and _file_of(present) == file:
        return present
    name = place.name
    if present is not None and present is not _run.get(name):
        if place.package:
            raise _taken(place, name, present)
        name = f"kstreams_app_{name}"  # a script may have any name, also that of a module of Python
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise TopologyError(f"{place.file} is no Python file: name the one that holds the topology")
    return _executed(spec, spec.loader)


def _executed(spec: ModuleSpec, loader: Loader) -> ModuleType:
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = _run[spec.name] = module
    try:
        loader.exec_module(module)
    except BaseException:
        del sys.modules[spec.name]
        raise
    package, _, own = spec.name.rpartition(".")
    if package:
        setattr(sys.modules[package], own, module)
    return module


def _require_parents(place: Place) -> None:
    """Import the packages around a module, which must be those around its file."""
    top = place.package.partition(".")[0]
    present = sys.modules.get(top)
    if present is not None and str(place.root / top) not in _folders_of(present):
        raise _taken(place, top, present)
    package = importlib.import_module(place.package)
    if str(place.folder) not in _folders_of(package):
        raise _taken(place, place.package, package)


def _taken(place: Place, name: str, present: ModuleType) -> TopologyError:
    origin = getattr(present, "__file__", None) or next(iter(_folders_of(present)), "Python itself")
    return TopologyError(
        f"{place.file} cannot be imported as {place.name}: the package {name} is imported already from {origin}; "
        f"rename the folder {place.root / name.replace('.', os.sep)}"
    )


def _folders_of(package: ModuleType) -> list[str]:
    return [str(Path(folder).resolve()) for folder in getattr(package, "__path__", ())]


def _leave_others(root: Path) -> None:
    """Forget what applications of other folders have imported from there."""
    for name in [name for name, place in _brought.items() if place.root != root]:
        if sys.modules.get(name) is _brought.pop(name).module:
            del sys.modules[name]


def _look_in(place: Place) -> None:
    """Let imports look where the module lies first, as for a script, and in the current folder.

    The folder of a file in a package comes last: its modules are those of the package.
    """
    sys.path[:] = [entry for entry in sys.path if not entry or Path(entry).resolve() != place.root]
    sys.path.insert(0, str(place.root))
    if not any(Path(entry).resolve() == _here() for entry in sys.path):
        sys.path.insert(1, str(_here()))
    if str(place.folder) not in sys.path:
        sys.path.append(str(place.folder))


def _tell_twins() -> None:
    """Warn of files that applications have imported under two names: what they define is there twice."""
    names = defaultdict(set)
    for name, (_, module) in _brought.items():
        names[_file_of(module)].add(name)
    for file, twins in names.items():
        if file is not None and len(twins) > 1:
            logger.warning(
                "%s is imported twice, as %s: its classes and its state are there twice; import it under one name",
                file,
                " and as ".join(sorted(twins)),
            )


def _is_users(module: ModuleType) -> bool:
    file = _file_of(module)
    return file is not None and not is_installed(file)


def _file_of(module: ModuleType) -> Path | None:
    file = getattr(module, "__file__", None)
    return None if file is None else Path(file).resolve()


# Files.


def _place_of_file(path: Path) -> Place:
    _check_readable(path)
    file = path.resolve()
    imports = _imports_in(file)
    root = _root_of(file, imports)
    parts = _module_parts(file, root)
    far = max(imports, key=lambda imported: imported.level, default=None)
    if far is not None and far.level > len(file.relative_to(root).parts) - 1:
        raise TopologyError(f"from {far} reaches above the folders of {path}: leave some of the dots out")
    for part in parts[:-1]:
        if not part.isidentifier():
            raise TopologyError(
                f"{path} imports from the package that it lies in, and {part} can be no name of a package: rename the "
                "folder, with letters, digits and _"
            )
    return Place(path, ".".join(parts), root)


def _root_of(file: Path, imports: list[Import]) -> Path:
    """The folder from which a file is imported: above its packages, and above what it imports relative to itself.

    Folders without an `__init__.py` are packages if the file imports so, as seen from the current folder, or from one
    that Python looks into.
    """
    folder = file.parent
    while (folder / "__init__.py").is_file():
        folder = folder.parent
    level = max((imported.level for imported in imports), default=0)
    tops = {imported.module.partition(".")[0] for imported in imports if not imported.level}
    above = [root for root in _roots_above(folder) if _is_package_at(root, file.relative_to(root).parts[0], tops)]
    if above:
        return above[0]
    if len(file.relative_to(folder).parts) > level:
        return folder
    deep = [root for root in _roots_above(folder) if len(file.relative_to(root).parts) > level]
    return deep[0] if deep else file.parents[min(level, len(file.parents) - 1)]


def _roots_above(folder: Path) -> list[Path]:
    """Where Python looks, or would from here, above a folder: the nearest first."""
    roots = {_here() / "src", _here(), *(Path(entry).resolve() for entry in sys.path)}
    above = [root for root in roots if root != folder and folder.is_relative_to(root)]
    return sorted(above, key=lambda root: -len(root.parts))


def _is_package_at(root: Path, name: str, imported: set[str]) -> bool:
    """Whether a name that is imported is that of a folder there, and of nothing that is installed."""
    spec = PathFinder.find_spec(name, [str(root), *sys.path]) if name in imported else None
    return spec is not None and str(root / name) in list(spec.submodule_search_locations or ())


def _module_parts(file: Path, root: Path) -> tuple[str, ...]:
    parts = file.relative_to(root).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts


def _imports_in(file: Path) -> list[Import]:
    """What a file imports; nothing where it is no Python: to load it then says why."""
    try:
        return list(imports_of(compile(file.read_bytes(), str(file), "exec", dont_inherit=True)))
    except (SyntaxError, ValueError):
        return []


def _is_plain(path: Path) -> bool:
    """Whether a path is that of a file, or of a folder that is no package."""
    return path.is_file() or (path.is_dir() and not (path / "__init__.py").is_file())


def _check_readable(path: Path) -> None:
    """Raise a TopologyError unless the path is that of a file that may be read."""
    try:
        path.open("rb").close()
    except FileNotFoundError:
        near = nearest_name(path.name, _siblings(path))
        hint = f"did you mean {path.with_name(near)}?" if near else "name the Python file that holds the topology"
        raise TopologyError(f"there is no file {path}: {hint}") from None
    except IsADirectoryError:
        raise TopologyError(f"{path} is a folder: name the Python file in it, such as {path / 'app.py'}") from None
    except PermissionError:
        raise TopologyError(
            f"{path} may not be read: give yourself the permission, with chmod u+r {path}, or run as its owner"
        ) from None
    except OSError as error:
        raise TopologyError(f"{path} cannot be read: {error.strerror}; name the Python file of the topology") from error


def _siblings(path: Path) -> list[str]:
    return [file.name for file in path.parent.glob("*.py")]


# Modules.


def _place_of_module(name: str) -> Place:
    specs = _specs(name)
    absent_name = ".".join(name.split(".")[: len(specs) + 1])
    if len(specs) < name.count(".") + 1:
        where = "" if specs else f" in {_here()} or where else Python looks (PYTHONPATH)"
        raise TopologyError(f"there is no module {absent_name}{where}: {_near_module(name, absent_name, specs)}")
    spec = specs[-1]
    if spec.origin is None or not Path(spec.origin).is_file():
        raise TopologyError(f"{name} is a package without code: name a module in it, such as {name}.app")
    file = Path(spec.origin).resolve()
    root = file.parents[name.count(".") + (file.name == "__init__.py")]
    return Place(file.relative_to(_here()) if file.is_relative_to(_here()) else file, name, root)


def _specs(name: str) -> list[ModuleSpec]:
    """Those of a module and its packages as seen from the current folder, from the outermost, as far as they exist."""
    return list(specs_of(name, [str(_here()), *sys.path, str(_here() / "src")]))


def _near_module(name: str, absent_name: str, specs: list[ModuleSpec]) -> str:
    """A hint at the module whose name is nearest to one that is not there."""
    folders = list(specs[-1].submodule_search_locations or ()) if specs else [str(_here()), str(_here() / "src")]
    before, _, own = absent_name.rpartition(".")
    modules = [module for folder in folders for module in _modules_in(Path(folder))]
    near = nearest_name(own, modules)
    if near is None:
        return "name the module, or the Python file, that holds the topology"
    return f"did you mean {'.'.join(filter(None, (before, near)))}{name.removeprefix(absent_name)}?"


def _modules_in(folder: Path) -> list[str]:
    files = [path.stem for path in folder.glob("*.py")]
    packages = [path.name for path in folder.glob("*") if path.is_dir() and path.name.isidentifier()]
    return files + packages


def _here() -> Path:
    return Path.cwd().resolve()
