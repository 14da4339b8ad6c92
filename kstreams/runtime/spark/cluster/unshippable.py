"""`require_shippable`: finds and names objects of an application that cannot be sent to workers, before a start.

Functions travel with all that they refer to. A lock, a connection, an open file or a session exists in one process
only, and pickle says of it no more than its type. So what does not pickle is taken apart, down to the part to blame.
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
from kstreams.runtime.spark.cluster.shipping import is_users, packing, users_modules_by_value


def require_shippable(topology: Topology, config: Config) -> None:
    """Raise TopologyError when something of an application exists in this process only.

    It names the operator, store or setting, the function or object that holds it, and the cure.
    """
    parts = list(_parts(topology, config))
    with users_modules_by_value():
        if packing([part for _, part in parts]) is None:
            return
        for name, part in parts:
            if packing(part) is not None:
                raise TopologyError(f"{name} cannot be sent to Spark's workers: {_said(part)}. {_CURE}")


def _parts(topology: Topology, config: Config) -> Iterator[tuple[str, object]]:
    """Yield all objects that are sent, with their names."""
    for sub in topology.sub_topologies:
        yield from ((operator_at(node.name, node.declared_at), node) for node in sub.nodes)
        yield from ((f"The store {store.name}", store) for store in sub.stores)
    for feed in topology.feeds:
        yield operator_at(feed.name, feed.declared_at), (feed.row, feed.key, feed.serdes)
    yield from ((f"The setting {key}", value) for key, value in config.items())


class Reference(NamedTuple):
    """A step from an object to a part of it: the name of the part, and the part."""

    name: str
    part: object


def _said(part: object) -> str:
    """Return a sentence on the object that exists in this process only, and on the object that refers to it."""
    way = _way_to_culprit(part)
    own = [place for place, step in enumerate(way) if not _is_ours(step.part)]
    holder, *steps = way[own[0] :] if own else way[-1:]
    if not steps:
        return f"it holds {_described(holder.part)}, which exists in this process only"
    names = ", with ".join(step.name for step in steps)
    return f"{_described(holder.part)} has {names}: {_described(steps[-1].part)}, which exists in this process only"


def _way_to_culprit(thing: object) -> list[Reference]:
    """Return the steps from an object that cannot be pickled to the part that prevents this."""
    visited: set[int] = set()

    def look(step: Reference) -> list[Reference] | None:
        visited.add(id(step.part))
        bad = [part for part in parts_of(step.part) if packing(part.part) is not None]
        if not bad:
            return [step]
        ways = (look(part) for part in bad if id(part.part) not in visited)
        below = next((way for way in ways if way is not None), None)
        return None if below is None else [step, *below]

    whole = Reference("", thing)
    return look(whole) or [whole]


@singledispatch
def parts_of(thing: object) -> Iterable[Reference]:
    """Yield the parts of an object of the user or of kstreams; other objects count as a whole."""
    if not (_is_ours(thing) or is_users(_module_of(type(thing)))):
        return ()
    slots = [name for kind in type(thing).__mro__ for name in _names(getattr(kind, "__slots__", ()))]
    names = dict.fromkeys([*getattr(thing, "__dict__", ()), *slots])
    return [Reference(f"the attribute `{name}`", getattr(thing, name)) for name in names if hasattr(thing, name)]


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
    arguments = [Reference("an argument", part) for part in partial.args]
    named = [Reference(f"the argument `{name}`", part) for name, part in partial.keywords.items()]
    return [Reference("its function", partial.func), *arguments, *named]


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


def _is_ours(thing: object) -> bool:
    """Return True for an object of kstreams, a list, a tuple or a dict, which only hold objects of the user."""
    return type(thing).__module__.startswith("kstreams.") or isinstance(thing, list | tuple | dict)


@singledispatch
def _described(thing: object) -> str:
    kind = type(thing)
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


_CURE = (
    "Make it where it is used: in `init` of a processor, or in a function that makes it when it is first called and "
    "keeps it (`@functools.cache`)."
)
