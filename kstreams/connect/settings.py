"""The settings of a connector: keys of a table as the arguments of a function, checked with its annotations."""

from __future__ import annotations

import builtins
import inspect
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from types import UnionType
from typing import Any, Literal, TypeVar, Union, Unpack, get_args, get_origin, get_type_hints

import msgspec

from kstreams.config.config import is_secret
from kstreams.connect.tables import Place, Table
from kstreams.connect.types import TypeReader
from kstreams.errors import KStreamsError
from kstreams.kernel.decoders import convert
from kstreams.kernel.durations import text_to_ms

T = TypeVar("T")

_TYPES = ("value", "key_type")
"""The parameters of connectors that are types of Python."""


def called_with(function: Callable[..., T], table: Table, types: TypeReader, *, name: str) -> T:
    """Call the function of a connector with the settings of a table.

    Parameters
    ----------
    function : callable
    table : Table
        The keys are names of parameters.
    types : TypeReader
    name : str
        The name of the class that a table of fields makes.

    Raises
    ------
    ConfigError
        If the function has no such parameter, needs others, or refuses a value.
    """
    parameters = _parameters(function)
    for key in table.entries:
        if key not in parameters:
            raise table.place.unknown("setting", key, list(parameters))
    for key, parameter in parameters.items():
        if parameter.default is inspect.Parameter.empty and key not in table.entries:
            raise table.place.error(f"{key} is missing: write {key} = ...")
    arguments = {}
    for key, value in table.entries.items():
        place = table.place.at(key)
        if key in _TYPES:
            arguments[key] = types.read(value, place, name)
        elif isinstance(value, Mapping) and value.get("type") in _classes(function):
            arguments[key] = _object(function, Table(place, value), types)
        else:
            arguments[key] = checked(value, parameters[key].annotation, place, key)
    try:
        return function(**arguments)
    except (KStreamsError, TypeError, ValueError) as error:
        raise table.place.error(str(error)) from error


def checked(value: object, hint: Any, place: Place, key: str) -> object:
    """Return a value as an argument of a type: a duration for a text such as "10s".

    Raises
    ------
    ConfigError
        If it is not of the type. Secrets are masked.

    Examples
    --------
    >>> checked("10s", timedelta | int, Place("trades.toml"), "interval")
    datetime.timedelta(seconds=10)
    """
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if Any in members or object in members:
        return value
    _require_choice(value, members, place)
    try:
        return _converted(value, members)
    except (msgspec.ValidationError, ValueError) as error:
        shown = "****" if is_secret(key) else repr(value)
        raise place.error(f"this cannot be {shown}: {error}") from None
    except TypeError:  # a type that only the function itself can check
        return value


def _require_choice(value: object, members: Sequence[Any], place: Place) -> None:
    """Raise ConfigError if a text is none of the possible ones."""
    choices = [choice for member in members if get_origin(member) is Literal for choice in get_args(member)]
    if choices and isinstance(value, str) and value not in choices and str not in members:
        raise place.unknown("value", value, choices)


def _converted(value: object, members: Sequence[Any]) -> object:
    if timedelta in members and isinstance(value, str):
        return timedelta(milliseconds=text_to_ms(value))
    readable = tuple(member for member in members if not _is_path(member))
    return convert(value, Union[readable] if readable else str)  # noqa: UP007


def _is_path(hint: object) -> bool:
    return get_origin(hint) is os.PathLike or hint is os.PathLike


def _parameters(function: Callable[..., object]) -> dict[str, inspect.Parameter]:
    """Return the parameters by name, with the types that their annotations stand for."""
    annotated: Callable[..., object] = function.__init__ if inspect.isclass(function) else function
    hints = get_type_hints(annotated, localns=_Names(annotated))
    parameters = {}
    for name, parameter in inspect.signature(function).parameters.items():
        hint = hints.get(name, object)
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            further = get_args(hint)[0] if get_origin(hint) is Unpack else None
            for key, kind in {} if further is None else get_type_hints(further).items():
                parameters[key] = inspect.Parameter(key, parameter.KEYWORD_ONLY, default=None, annotation=kind)
        else:
            parameters[name] = parameter.replace(annotation=hint)
    return parameters


class _Names(dict[str, Any]):
    """The names in the annotations of a function. Aliases and imports for type checkers only are `object`."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__()
        self._globals: Mapping[str, object] = getattr(function, "__globals__", {})

    def __missing__(self, name: str) -> object:
        member = self._globals.get(name, getattr(builtins, name, object))
        return object if isinstance(member, str) else member


def _classes(function: Callable[..., object]) -> list[str]:
    """Return the classes that are public beside a function, such as the cursors of `ks.sources.http`."""
    module = sys.modules[function.__module__]
    return [name for name in getattr(module, "__all__", ()) if inspect.isclass(getattr(module, name))]


def _object(function: Callable[..., object], table: Table, types: TypeReader) -> object:
    """Return the object of the class that the key `type` names."""
    kind = table.text("type")
    return called_with(getattr(sys.modules[function.__module__], kind), table.without("type"), types, name=kind)
