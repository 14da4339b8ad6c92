"""Types of Python in a connect file: names, tables of fields, and classes of a module beside the file."""

from __future__ import annotations

import ast
import importlib
import keyword
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from types import UnionType
from typing import Any, TypeAlias, Union, get_args, get_origin
from uuid import UUID

import msgspec

from kstreams.connect.tables import Place
from kstreams.modules.app_module import import_from, place_of

PythonType: TypeAlias = Any
"""A type, or a union of types."""

_NAMES: Mapping[str, PythonType] = {
    kind.__name__: kind for kind in (str, int, float, bool, bytes, datetime, date, Decimal, UUID, dict, list)
}
_CLASS = re.compile(r"([\w.]+):(\w+)")
_GENERIC: Mapping[str, int] = {"list": 1, "dict": 2}
"""The types with arguments, and how many."""


@dataclass(frozen=True, slots=True)
class TypeReader:
    """Reads the types of a connect file.

    Parameters
    ----------
    folder : Path
        The folder of the file, in which modules with classes are looked for first.
    """

    folder: Path

    def read(self, declaration: object, place: Place, name: str) -> PythonType:
        """Return the type of a text, such as `int | None` or `shop:Trade`, or of a table of fields.

        Parameters
        ----------
        declaration : str or mapping
        place : Place
        name : str
            The name of the class that a table of fields makes.

        Raises
        ------
        ConfigError
            If the text names no type.

        Examples
        --------
        >>> reader = TypeReader(Path("."))
        >>> reader.read("int | None", Place("trades.toml"), "trades") == int | None
        True
        >>> reader.read({"symbol": "str", "size": "int"}, Place("trades.toml"), "trades")("A", 3)
        trades(symbol='A', size=3)
        """
        if isinstance(declaration, Mapping):
            fields = {field: self.read(kind, place.at(field), field) for field, kind in declaration.items()}
            return row_class(name, fields, place)
        if not isinstance(declaration, str):
            raise place.error(f'a type is a text such as "int | None", or a table of fields, not {declaration!r}')
        match = _CLASS.fullmatch(declaration.strip())
        if match is not None:
            return self._class(match[1], match[2], place)
        try:
            tree = ast.parse(declaration.strip(), mode="eval").body
        except SyntaxError:
            raise _no_type(declaration, place) from None
        return _type_of(tree, declaration, place)

    def _class(self, module_name: str, name: str, place: Place) -> PythonType:
        file = self.folder / f"{module_name.replace('.', '/')}.py"
        try:
            module = import_from(place_of(str(file))) if file.is_file() else importlib.import_module(module_name)
        except ImportError as error:
            raise place.error(f"{module_name} is no module beside the file, and not installed: {error}") from error
        if not hasattr(module, name):
            raise place.unknown(f"class in {module_name}", name, [item for item in vars(module) if item[0] != "_"])
        return getattr(module, name)


def row_class(name: str, fields: Mapping[str, PythonType], place: Place) -> type:
    """Return the class of rows with these fields. A field that may be None is None if it is absent.

    Examples
    --------
    >>> row_class("Trade", {"symbol": str, "size": int | None}, Place("trades.toml"))("A")
    Trade(symbol='A', size=None)
    """
    for field in fields:
        require_field_name(field, place)
    if not fields:
        raise place.error("a table of fields has at least one field")
    optional = [may_be_none(kind) for kind in fields.values()]
    declarations = [(field, kind, None) if may_be_none(kind) else (field, kind) for field, kind in fields.items()]
    by_name_only = optional != sorted(optional)  # a field with a default is followed by one without
    return msgspec.defstruct(name, declarations, module=__name__, frozen=True, kw_only=by_name_only)


def require_field_name(name: object, place: Place) -> None:
    """Raise ConfigError if a text cannot be the name of a field."""
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise place.error(f"{name!r} is no name of a field: write letters, digits and _, and no word of Python")


def may_be_none(kind: PythonType) -> bool:
    """Return whether a type has None.

    Examples
    --------
    >>> may_be_none(int | None), may_be_none(int)
    (True, False)
    """
    origin: object = get_origin(kind)
    return origin in (Union, UnionType) and type(None) in get_args(kind)


def _type_of(tree: ast.expr, text: str, place: Place) -> PythonType:
    if isinstance(tree, ast.Name) and tree.id in _NAMES:
        return _NAMES[tree.id]
    if isinstance(tree, ast.Constant) and tree.value is None:
        return None
    if isinstance(tree, ast.BinOp) and isinstance(tree.op, ast.BitOr):
        return Union[_type_of(tree.left, text, place), _type_of(tree.right, text, place)]  # noqa: UP007
    if isinstance(tree, ast.Subscript) and isinstance(tree.value, ast.Name):
        parts = tree.slice.elts if isinstance(tree.slice, ast.Tuple) else [tree.slice]
        if _GENERIC.get(tree.value.id) == len(parts):
            return _NAMES[tree.value.id][tuple(_type_of(part, text, place) for part in parts)]
    raise _no_type(text, place)


def _no_type(text: str, place: Place) -> Exception:
    names = [*_NAMES, "T | None", "list[T]", "dict[str, T]", "module:Class"]
    return place.unknown("type", text, names)
