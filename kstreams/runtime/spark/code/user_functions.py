"""`UserFunctions`: the Python functions of a user in a program, as text that needs nothing of the user's modules."""

from __future__ import annotations

import ast
import builtins
import linecache
import sys
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple, get_type_hints

import msgspec

from kstreams.kernel.decoders import type_info
from kstreams.runtime.spark.code.unsayable import Unsayable

_Definition = ast.Lambda | ast.FunctionDef

PLAIN: dict[type, str] = {
    msgspec.inspect.IntType: "bigint",
    msgspec.inspect.FloatType: "double",
    msgspec.inspect.StrType: "string",
    msgspec.inspect.BoolType: "boolean",
    msgspec.inspect.BytesType: "binary",
}
"""The types of Spark whose values functions take and return, by the type that msgspec sees."""


def plain_type(kind: object) -> str | None:
    """Return the type of Spark for a type whose values Arrow holds as Python does; None for others.

    Examples
    --------
    >>> plain_type(int | None), plain_type(list[int])
    ('bigint', None)
    """
    try:
        info = type_info(kind)
    except (TypeError, NameError):
        return None
    members = info.types if isinstance(info, msgspec.inspect.UnionType) else (info,)
    ddls = {PLAIN.get(type(member)) for member in members if not isinstance(member, msgspec.inspect.NoneType)}
    return ddls.pop() if len(ddls) == 1 else None


class Argument(NamedTuple):
    """A parameter of a function, and what the function reads of it.

    Parameters
    ----------
    fields : tuple of str or None
        The fields that it reads; None: it takes the whole value.
    """

    fields: tuple[str, ...] | None


class UserFunctions:
    """The functions in one program, and what they need, by the names that they have in it.

    Their text is made from their syntax, without comments and annotations.
    """

    def __init__(self) -> None:
        self.definitions: dict[str, str] = {}
        """Imports, constants, classes and functions, in the order in which they are needed."""

    def text_of(self, function: Any) -> str:
        """Return the text of a function: a lambda itself, or the name of a function that is defined before.

        Raises
        ------
        Unsayable
            If its source cannot be had whole, or needs what a program cannot have.
        """
        if _is_builtin(function):
            return str(function.__name__)
        if not isinstance(function, FunctionType):
            raise Unsayable(_NO_SOURCE.format(function))
        before = dict(self.definitions)
        try:
            return self._text_of(function)
        except Unsayable:
            self.definitions = before
            raise

    def _text_of(self, function: FunctionType) -> str:
        definition = _definition_of(function)
        for name in _free_names(definition):
            self._define(name, _value_of(name, function), function)
        if isinstance(definition, ast.Lambda):
            text = ast.unparse(definition)
            return f"({text})" if len(definition.args.args) > 1 else text
        self._add(definition.name, ast.unparse(definition))
        return definition.name

    def _define(self, name: str, value: object, function: FunctionType) -> None:
        """Define what a function reads by a name."""
        if value is function or getattr(builtins, name, None) is value:
            return
        text = _imported(name, value) or _constant(name, value) or _record_class(name, value)
        if text is not None:
            self._add(name, text)
        elif isinstance(value, FunctionType) and value.__name__ == name:
            self.text_of(value)
        else:
            raise Unsayable(
                f"its function reads {name}, a {type(value).__name__}: a program can have constants, functions with a "
                "source, and the standard library"
            )

    def _add(self, name: str, text: str) -> None:
        if self.definitions.setdefault(name, text) != text:
            raise Unsayable(f"two things of its functions are called {name}")


def _is_builtin(function: Any) -> bool:
    """Return True for functions that every program has, such as `len` and `str`."""
    return getattr(builtins, getattr(function, "__name__", ""), None) is function


_NO_SOURCE = "it calls a Python function that has no source: {!r}"


def arguments_of(function: object, kinds: Mapping[str, object]) -> list[Argument]:
    """Return what a function reads of each argument of its call.

    Parameters
    ----------
    kinds : mapping of str to type
        The type of each argument, by its name in reasons.

    Raises
    ------
    Unsayable
        If it reads what is not a plain value: a number, text, truth value or bytes.
    """
    if _is_builtin(function):
        if not all(map(plain_type, kinds.values())):
            raise Unsayable("it calls a function of Python with other values than plain ones")
        return [Argument(None) for _ in kinds]
    if not isinstance(function, FunctionType):
        raise Unsayable(_NO_SOURCE.format(function))
    definition = _definition_of(function)
    names = [argument.arg for argument in (*definition.args.posonlyargs, *definition.args.args)]
    if definition.args.vararg is not None or len(names) < len(kinds):
        raise Unsayable("its function takes its arguments as a tuple")
    return [_read(definition, name, side, kind) for name, (side, kind) in zip(names, kinds.items(), strict=False)]


def _read(definition: _Definition, name: str, side: str, kind: object) -> Argument:
    uses = list(_uses(definition, name))
    if not uses:
        return Argument(())
    if plain_type(kind) is not None:
        return Argument(None)
    reads = [node for node in uses if not _asks_for_none(node)]
    read = {node.attr for node in reads if isinstance(node, ast.Attribute)}
    if not all(isinstance(node, ast.Attribute) for node in reads):
        raise Unsayable(f"its function takes the whole {side}, not fields of it or a plain value")
    return Argument(_fields_read(read, side, kind))


def _fields_read(read: set[str], side: str, kind: object) -> tuple[str, ...]:
    """Return the fields that a function reads; one field, which tells whether there is a value, if it reads none."""
    plain = [name for name, of_field in _field_kinds(kind).items() if plain_type(of_field) and not name.startswith("_")]
    others = sorted(read.difference(plain))
    if others:
        raise Unsayable(f"its function reads {others[0]} of the {side}, which is no plain field")
    if not plain:
        raise Unsayable(f"the {side} that its function takes has no plain field")
    return tuple(name for name in plain if name in read) or (plain[0],)


def _uses(definition: _Definition, name: str) -> Iterator[ast.AST]:
    """Yield where a function uses an argument: the access to a field, the comparison with None, or the name itself."""
    parents = {child: parent for parent in ast.walk(definition) for child in ast.iter_child_nodes(parent)}
    for node in ast.walk(definition):
        if isinstance(node, ast.Name) and node.id == name:
            parent = parents[node]
            is_field = isinstance(parent, ast.Attribute) and isinstance(parent.ctx, ast.Load)
            yield parent if is_field or _asks_for_none(parent) else node


def _asks_for_none(node: ast.AST) -> bool:
    """Return True for `value is None` and `value is not None`."""
    if not isinstance(node, ast.Compare) or not all(isinstance(part, ast.Is | ast.IsNot) for part in node.ops):
        return False
    return all(isinstance(part, ast.Constant) and part.value is None for part in node.comparators)


def _field_kinds(kind: object) -> dict[str, object]:
    try:
        info = type_info(kind)
    except (TypeError, NameError):
        return {}
    if not isinstance(info, msgspec.inspect.StructType | msgspec.inspect.DataclassType):
        return {}
    hints = get_type_hints(info.cls)
    return {field.name: hints[field.name] for field in info.fields}


def result_fields(kind: object) -> dict[str, str]:
    """Return the fields of a class that a function returns, with their types of Spark.

    Raises
    ------
    Unsayable
        If a field is not plain.
    """
    kinds = _field_kinds(kind)
    plain = {name: ddl for name, part in kinds.items() if (ddl := plain_type(part)) is not None}
    if not kinds or len(plain) < len(kinds):
        raise Unsayable(f"its function returns {getattr(kind, '__name__', kind)}, which has fields that are not plain")
    return plain


def _definition_of(function: FunctionType) -> _Definition:
    """Return the definition of a function in its file."""
    code = function.__code__
    source = "".join(linecache.getlines(code.co_filename))
    try:
        tree = ast.parse(source)
    except SyntaxError:
        tree = ast.Module([], [])
    nodes = [node for node in ast.walk(tree) if isinstance(node, _Definition) and node.lineno == code.co_firstlineno]
    same = [node for node in nodes if _compiled(node, code)]
    if len({ast.dump(node) for node in same}) != 1:
        raise Unsayable(_NO_SOURCE.format(function))
    [definition, *_] = same
    if isinstance(definition, ast.FunctionDef) and definition.decorator_list:
        raise Unsayable("its function is decorated")
    _remove_annotations(definition)
    defaults = (*definition.args.defaults, *definition.args.kw_defaults)
    if not all(default is None or isinstance(default, ast.Constant) for default in defaults):
        raise Unsayable("its function has defaults that are not constants")
    return definition


def _remove_annotations(definition: _Definition) -> None:
    """Remove the types of parameters and results, which a function does not need when it runs."""
    for node in ast.walk(definition):
        if isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.FunctionDef):
            node.returns = None


def _compiled(definition: _Definition, code: CodeType) -> bool:
    """Return True if a definition gives this code."""
    is_lambda = isinstance(definition, ast.Lambda)
    if isinstance(definition, ast.Lambda):
        compiled = compile(ast.Expression(definition), code.co_filename, "eval", dont_inherit=True)
    else:
        compiled = compile(ast.Module([definition], []), code.co_filename, "exec", dont_inherit=True)
    candidates = [const for const in compiled.co_consts if isinstance(const, CodeType)]
    # A name of an enclosing function, or of an imported module, gives other code outside of its place.
    parts = ("co_varnames",) if code.co_freevars else ("co_varnames", "co_names")
    return any(
        is_lambda == (candidate.co_name == "<lambda>")
        and all(getattr(candidate, part) == getattr(code, part) for part in parts)
        and _constants_of(candidate) == _constants_of(code)
        for candidate in candidates
    )


def _constants_of(code: CodeType) -> list[object]:
    return [const for const in code.co_consts if not isinstance(const, CodeType)]


def _free_names(definition: _Definition) -> list[str]:
    """Return the names that a function reads and does not bind."""
    names = [node for node in ast.walk(definition) if isinstance(node, ast.Name)]
    bound = {node.id for node in names if not isinstance(node.ctx, ast.Load)}
    bound |= {node.arg for node in ast.walk(definition) if isinstance(node, ast.arg)}
    bound |= {node.name for node in ast.walk(definition) if isinstance(node, ast.FunctionDef)}
    return list(dict.fromkeys(node.id for node in names if node.id not in bound))


def _value_of(name: str, function: FunctionType) -> object:
    closed = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    if name in closed:
        return closed[name].cell_contents
    if name in function.__globals__:
        return function.__globals__[name]
    if hasattr(builtins, name):
        return getattr(builtins, name)
    raise Unsayable(f"its function reads {name}, which is not defined")


def _imported(name: str, value: object) -> str | None:
    """Return the import of something of the standard library; None for anything else."""
    if isinstance(value, ModuleType):
        module = value.__name__
        return f"import {module}" + ("" if module == name else f" as {name}") if _is_standard(module) else None
    module = getattr(value, "__module__", None) or ""
    original = getattr(value, "__qualname__", "")
    if not _is_standard(module) or getattr(sys.modules.get(module), original, None) is not value:
        return None
    return f"from {module} import {original}" + ("" if original == name else f" as {name}")


def _is_standard(module: str) -> bool:
    return module.partition(".")[0] in sys.stdlib_module_names


def _constant(name: str, value: object) -> str | None:
    """Return the assignment of a constant; None if its text is not a literal."""
    try:
        is_literal = ast.literal_eval(repr(value)) == value
    except (ValueError, SyntaxError):
        return None
    return f"{name} = {value!r}" if is_literal else None


def _record_class(name: str, value: object) -> str | None:
    """Return a tuple with the fields of a class that a function makes objects of; None for other classes."""
    if not isinstance(value, type) or name != value.__name__:
        return None
    defaults = _defaults(value)
    if defaults is None:
        return None
    with_defaults = f", defaults={list(map(_default, defaults.values()))!r}" if defaults else ""
    return f"{name} = namedtuple({name!r}, {list(_field_kinds(value))!r}{with_defaults})"


def _default(value: object) -> object:
    if _constant("default", value) is None:
        raise Unsayable(f"its function makes objects with the default {value!r}")
    return value


def _defaults(cls: type) -> dict[str, object] | None:
    """Return the defaults of the last fields of a class; None if it is no class of records."""
    if issubclass(cls, msgspec.Struct):
        parts = msgspec.structs.fields(cls)
        return {part.name: part.default for part in parts if not part.required}
    if is_dataclass(cls):
        return {part.name: part.default for part in fields(cls) if part.default is not MISSING}
    return None
