"""`pack` and `unpack`: send a topology to Spark's Python workers; functions and types of the user travel by value.

A worker has kstreams and installed packages, but not the folder of `app.py`. So functions and types of the user's
modules are pickled by value, and workers need not import them. Modules that functions import when they are called are
sent as text.

Security: workers unpickle only bytes that the driver of this application has written, never bytes of topics or stores.
"""

from __future__ import annotations

import functools
import inspect
import io
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, get_type_hints

import msgspec
import pyspark
from pyspark import cloudpickle

from kstreams.errors import TopologyError
from kstreams.modules.installed import is_installed
from kstreams.modules.user_modules import Source, sources_of


def offer(sources: Mapping[str, Source]) -> None:
    """Make modules importable from their texts. A module whose text has changed is imported again."""
    if _finder not in sys.meta_path:
        sys.meta_path.append(_finder)
    for name, source in sources.items():
        if _finder.sources.get(name) not in (None, source):
            sys.modules.pop(name, None)
        _finder.sources[name] = source


class _Finder(MetaPathFinder):
    """A finder of modules that were sent as text. It comes after all other finders."""

    def __init__(self) -> None:
        self.sources: dict[str, Source] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module, or None if the module was not sent as text."""
        source = self.sources.get(fullname)
        if source is None:
            return None
        spec = ModuleSpec(fullname, _Loader(source), origin=source.file, is_package=source.is_package)
        spec.has_location = True  # it then has a __file__
        return spec


class _Loader(InspectLoader):
    """A loader that runs the text of a module. Stack traces show the name of its file on the driver."""

    def __init__(self, source: Source) -> None:
        self._source = source

    def get_source(self, fullname: str) -> str:
        """Return the text of a module."""
        return self._source.text

    def is_package(self, fullname: str) -> bool:
        """Return True if a module is a package."""
        return self._source.is_package

    def get_code(self, fullname: str) -> CodeType:
        """Return the code of a module."""
        return self.source_to_code(self._source.text, self._source.file)


_finder = _Finder()


_PYSPARK_FOLDERS = tuple(str(Path(folder).resolve()) for folder in pyspark.__path__)
"""The folders of PySpark, which may be outside of site-packages on a cluster (`SPARK_HOME`)."""
_STRUCT_OPTIONS = (
    "array_like",
    "cache_hash",
    "dict",
    "eq",
    "forbid_unknown_fields",
    "frozen",
    "gc",
    "omit_defaults",
    "order",
    "repr_omit_defaults",
    "tag",
    "tag_field",
    "weakref",
)


def pack(value: object) -> bytes:
    """Serialize an object for a worker.

    Raises
    ------
    TopologyError
        If a part of the object exists in this process only, such as an open file or a connection. `require_shippable`
        names this part before a start.
    """
    buffer = io.BytesIO()
    pickler = _Pickler(buffer)
    try:
        with users_modules_by_value():
            pickler.dump(value)
    except Exception as error:  # a class may raise any error when it is pickled
        raise TopologyError(
            f"The topology cannot be sent to Spark's workers: {error}. One of its functions refers to an object that "
            "exists in this process only: create it inside the function or in a processor's init()."
        ) from error
    return cloudpickle.dumps((sources_of(pickler.codes), buffer.getvalue()))  # type: ignore[no-any-return]


def packing_error(value: object) -> Exception | None:
    """Return the reason why an object cannot be packed, or None. Call it within `users_modules_by_value`."""
    try:
        _Pickler(io.BytesIO()).dump(value)
    except Exception as error:
        return error
    return None


@lru_cache(maxsize=64)
def unpack(packed: bytes) -> Any:
    """Return the packed object: the same object for the same bytes while the worker lives."""
    sources, pickled = cloudpickle.loads(packed)
    offer(sources)
    return cloudpickle.loads(pickled)


_MSGSPEC_CACHE = "__msgspec_cache__"
"""The attribute in which msgspec caches data on a class, which is valid in this process only."""


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """cloudpickle, with three differences.

    - A msgspec Struct is sent by its definition, since its fields cannot be set after the class is created.
    - An open file is refused, where cloudpickle sends its content.
    - A function of the user in `functools.cache` is sent by value, where cloudpickle sends its name.

    Attributes
    ----------
    codes : list of (code, str)
        The codes of the user's pickled functions, each with the package of its function.
    """

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.codes: list[tuple[CodeType, str]] = []

    def reducer_override(self, value: object) -> Any:
        if isinstance(value, io.IOBase) and not isinstance(value, _IN_MEMORY) and value not in _STANDARD:
            raise cloudpickle.pickle.PicklingError(f"cannot pickle the open file {value!r}")
        if isinstance(value, functools._lru_cache_wrapper) and is_users(inspect.getmodule(value.__wrapped__)):
            return _cached, (value.__wrapped__, value.cache_parameters())
        if isinstance(value, FunctionType) and is_users(sys.modules.get(value.__module__)):
            self.codes.append((value.__code__, value.__globals__.get("__package__") or ""))
        if isinstance(value, type) and issubclass(value, msgspec.Struct) and _is_sent_by_definition(value):
            return _reduced_struct(value)
        reduced = super().reducer_override(value)
        return _resolved(value, reduced) if isinstance(value, type) and _MSGSPEC_CACHE in vars(value) else reduced


_IN_MEMORY = (io.BytesIO, io.StringIO)
_STANDARD = (sys.stdin, sys.stdout, sys.stderr)


def _cached(function: Callable[..., Any], parameters: dict[str, Any]) -> Any:
    """Return a cached function with an empty cache."""
    return functools.lru_cache(**parameters)(function)


def _is_sent_by_definition(struct: type) -> bool:
    """Return True if a worker cannot import a Struct: it belongs to the user, or its module lacks its name."""
    module = sys.modules.get(struct.__module__)
    return is_users(module) or ("." not in struct.__qualname__ and not hasattr(module, struct.__qualname__))


def _resolved(kind: type, reduced: object) -> Any:
    """Return the pickled form of a class with resolved annotations, whose names a worker cannot resolve.

    The form of a class that is sent by reference stays unchanged.
    """
    if isinstance(reduced, tuple):
        attributes, _ = reduced[2]
        attributes.pop(_MSGSPEC_CACHE)
        if annotations := attributes.get("__annotations__"):
            hints = get_type_hints(kind, include_extras=True)
            attributes["__annotations__"] = {name: hints[name] for name in annotations}
    return reduced


def _reduced_struct(struct: type[msgspec.Struct]) -> tuple[object, ...]:
    annotations = inspect.get_annotations(struct)
    fields = [_field(info) for info in msgspec.structs.fields(struct) if info.name in annotations]
    options = {name: getattr(struct.__struct_config__, name) for name in _STRUCT_OPTIONS}
    options["rename"] = dict(zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True))
    options["kw_only"] = _is_keyword_only(struct, annotations)
    bases = tuple(base for base in struct.__bases__ if base is not msgspec.Struct)
    set_by_msgspec = {"__module__", "__qualname__", "__annotations__", "__slots__", "__dict__", "__weakref__"}
    generated = annotations.keys() | set_by_msgspec
    methods = {
        name: item
        for name, item in struct.__dict__.items()
        if name not in generated and not name.startswith(("__struct_", "__match_args__"))
    }
    # The methods are sent as state, since they may refer to the class, which must exist first.
    return _struct, (struct.__name__, struct.__module__, fields, bases, options), methods, None, None, _set_methods


def _is_keyword_only(struct: type[msgspec.Struct], annotations: dict[str, object]) -> bool:
    parameters = inspect.signature(struct).parameters
    return any(parameters[name].kind is inspect.Parameter.KEYWORD_ONLY for name in annotations)


def _field(info: msgspec.structs.FieldInfo) -> tuple[str, Any, dict[str, Any]]:
    """Return name, type and default of a field."""
    kinds = {"default": info.default, "default_factory": info.default_factory}
    return info.name, info.type, {kind: value for kind, value in kinds.items() if value is not msgspec.NODEFAULT}


_structs: dict[str, type[msgspec.Struct]] = {}


def _struct(name: str, module: str, fields: list[Any], bases: tuple[type, ...], options: dict[str, Any]) -> type:
    """Create a Struct, once per definition, so that values of different batches have the same type."""
    key = f"{module}.{name}{fields}{options}"
    if key not in _structs:
        named = [(field, kind, msgspec.field(**default)) for field, kind, default in fields]
        _structs[key] = msgspec.defstruct(name, named, bases=bases or None, module=module, **options)
    return _structs[key]


def _set_methods(struct: type, methods: dict[str, object]) -> None:
    for name, item in methods.items():
        setattr(struct, name, item)


@contextmanager
def users_modules_by_value() -> Iterator[None]:
    """Pickle the modules of the user by value within the block."""
    # By id, since some modules have two names.
    users_modules = {id(module): module for module in list(sys.modules.values()) if is_users(module)}
    modules = [
        module for module in users_modules.values() if module.__name__ in sys.modules and module.__name__ != "__main__"
    ]
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)


def is_users(module: ModuleType | None) -> bool:
    """Return True if a module is neither installed nor part of Python or kstreams."""
    if module is None or not isinstance(module, ModuleType):
        return False
    file = getattr(module, "__file__", None)
    if file is None:
        return module.__name__ == "__main__"
    return not (is_installed(file) or str(Path(file).resolve()).startswith(_PYSPARK_FOLDERS))
