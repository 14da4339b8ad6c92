"""`require_shippable`: finds and names objects of an application that cannot be sent to workers, before a start.

Functions are sent with all objects that they refer to. A lock, a connection, an open file or a session exists in one
process only, and pickle's error names no more than its type. So an object that cannot be pickled is searched for the
part that prevents this.
"""

from __future__ import annotations

import functools
import io
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import singledispatch
from pathlib import Path
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

from kstreams.config import Config
from kstreams.errors import TopologyError
from kstreams.kernel.source_line import operator_at
from kstreams.processor.topology.topology import Topology
from kstreams.runtime.spark.cluster.shipping import is_users, packing_error, users_modules_by_value


def require_shippable(topology: Topology, config: Config) -> None:
    """Raise TopologyError if an object of an application exists in this process only.

    The message names the operator, store or setting, the function or object that refers to the object, and a remedy.
    """
    parts = list(_parts(topology, config))
    with users_modules_by_value():
        if packing_error([part for _, part in parts]) is None:
            return
        for name, part in parts:
            if packing_error(part) is not None:
                raise TopologyError(f"{name} cannot be sent to Spark's workers: {_explanation(part)}. {_REMEDY}")


def _parts(topology: Topology, config: Config) -> Iterator[tuple[str, object]]:
    """Yield all objects that are sent, with their names."""
    for sub in topology.sub_topologies:
        yield from ((operator_at(node.name, node.declared_at), node) for node in sub.nodes)
        yield from ((f"The store {store.name}", store) for store in sub.stores)
    for feed in topology.feeds:
        yield operator_at(feed.name, feed.declared_at), (feed.row, feed.key, feed.serdes)
    yield from ((f"The setting {key}", value) for key, value in config.items())


class Reference(NamedTuple):
    """A reference from an object to another object: its name in words, and the other object."""

    name: str
    target: object


def _explanation(part: object) -> str:
    """Return a sentence on the object that exists in this process only, and on the object that refers to it."""
    path = _path_to_unpicklable(part)
    of_user = [index for index, reference in enumerate(path) if not _is_ours(reference.target)]
    holder, *references = path[of_user[0] :] if of_user else path[-1:]
    if not references:
        return f"it holds {_described(holder.target)}, which exists in this process only"
    names = ", with ".join(reference.name for reference in references)
    target = _described(references[-1].target)
    return f"{_described(holder.target)} has {names}: {target}, which exists in this process only"


def _path_to_unpicklable(value: object) -> list[Reference]:
    """Return the references from an object that cannot be pickled to the object that prevents this."""
    visited: set[int] = set()

    def search(reference: Reference) -> list[Reference] | None:
        visited.add(id(reference.target))
        unpicklable = [part for part in parts_of(reference.target) if packing_error(part.target) is not None]
        if not unpicklable:
            return [reference]
        paths = (search(part) for part in unpicklable if id(part.target) not in visited)
        path = next((path for path in paths if path is not None), None)
        return None if path is None else [reference, *path]

    root = Reference("", value)
    return search(root) or [root]


@singledispatch
def parts_of(value: object) -> Iterable[Reference]:
    """Yield references to the parts of an object of the user or of kstreams. Other objects are not searched."""
    if not (_is_ours(value) or is_users(_module_of(type(value)))):
        return ()
    slots = [name for kind in type(value).__mro__ for name in _names(getattr(kind, "__slots__", ()))]
    names = dict.fromkeys([*getattr(value, "__dict__", ()), *slots])
    return [Reference(f"the attribute `{name}`", getattr(value, name)) for name in names if hasattr(value, name)]


def _names(slots: str | Iterable[str]) -> Iterable[str]:
    return [slots] if isinstance(slots, str) else slots


@parts_of.register
def _(function: FunctionType) -> Iterable[Reference]:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    yield from (Reference(f"the variable `{name}`", cell.cell_contents) for name, cell in cells if _is_set(cell))
    global_names = function.__globals__
    defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    yield from (
        Reference(f"the global `{name}`", global_names[name])
        for name in _globals_of(function.__code__)
        if name in global_names
    )
    yield from (Reference("a default", default) for default in defaults)
    yield from (Reference(f"the attribute `{name}`", part) for name, part in vars(function).items())


def _is_set(cell: CellType) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _globals_of(code: CodeType) -> dict[str, None]:
    """Return the names that a function and its inner functions may look up in the module."""
    inner = [name for part in code.co_consts if isinstance(part, CodeType) for name in _globals_of(part)]
    return dict.fromkeys([*code.co_names, *inner])


@parts_of.register
def _(method: MethodType) -> Iterable[Reference]:
    return [Reference("its object", method.__self__), Reference("its function", method.__func__)]


@parts_of.register
def _(partial: functools.partial) -> Iterable[Reference]:  # type: ignore[type-arg]
    positional = [Reference("an argument", part) for part in partial.args]
    keywords = [Reference(f"the argument `{name}`", part) for name, part in partial.keywords.items()]
    return [Reference("its function", partial.func), *positional, *keywords]


@parts_of.register
def _(mapping: Mapping) -> Iterable[Reference]:  # type: ignore[type-arg]
    return [Reference(f"the entry {key!r}", part) for key, part in mapping.items()]


@parts_of.register(list)
@parts_of.register(tuple)
@parts_of.register(set)
@parts_of.register(frozenset)
def _(items: Iterable[object]) -> Iterable[Reference]:
    return [Reference("an item", part) for part in items]


@parts_of.register
def _(kind: type) -> Iterable[Reference]:
    return [Reference(f"the attribute `{name}`", part) for name, part in vars(kind).items()] if _is_sent(kind) else ()


@parts_of.register
def _(module: ModuleType) -> Iterable[Reference]:
    return [Reference(f"the name `{name}`", part) for name, part in vars(module).items()] if is_users(module) else ()


@parts_of.register(staticmethod)
@parts_of.register(classmethod)
@parts_of.register(functools._lru_cache_wrapper)
def _(wrapper: Any) -> Iterable[Reference]:
    return [Reference("its function", wrapper.__wrapped__)]


def _is_sent(kind: type) -> bool:
    return is_users(_module_of(kind))


def _module_of(kind: type) -> ModuleType | None:
    return sys.modules.get(kind.__module__)


def _is_ours(value: object) -> bool:
    """Return True for an object of kstreams, a list, a tuple or a dict, which only contain objects of the user."""
    return type(value).__module__.startswith("kstreams.") or isinstance(value, list | tuple | dict)


@singledispatch
def _described(value: object) -> str:
    """Return an object in words."""
    kind = type(value)
    name = (
        kind.__qualname__ if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}.{kind.__qualname__}"
    )
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


@_described.register
def _(file: io.IOBase) -> str:
    return f"the open file {getattr(file, 'name', '(without a name)')}"


@_described.register
def _(function: FunctionType) -> str:
    code = function.__code__
    return f"the function {function.__name__} ({Path(code.co_filename).name}:{code.co_firstlineno})"


@_described.register
def _(method: MethodType) -> str:
    return f"the method {method.__name__} of {_described(method.__self__)}"


@_described.register
def _(kind: type) -> str:
    return f"the class {kind.__name__}"


@_described.register
def _(module: ModuleType) -> str:
    return f"the module {module.__name__}"


_REMEDY = (
    "Create it where it is used: in `init` of a processor, or in a function that creates it when it is first called "
    "and keeps it (`@functools.cache`)."
)
