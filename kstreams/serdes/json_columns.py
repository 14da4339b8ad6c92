"""JSON values as columns: only the fields that are asked for are decoded, all values of a batch in one call."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, cast, get_args, get_origin, get_type_hints, is_typeddict

import msgspec
import msgspec.inspect
import pyarrow as pa
import pyarrow.compute as pc

from kstreams.decoders import json_decoder, type_info
from kstreams.errors import SerdeError
from kstreams.serdes.json_lines import of_lines

_field = cast(Any, msgspec.field)  # its types know only one of both defaults, not that either may be absent
ARROW_TYPES = {int: pa.int64(), float: pa.float64(), str: pa.string(), bool: pa.bool_()}


class JsonColumns:
    """Reads fields of JSON objects into Arrow columns.

    The objects are checked as far as they are read: what stands in other fields is skipped, not looked at.

    Parameters
    ----------
    kind : type
        The type of the values: a msgspec Struct, dataclass, TypedDict or `dict[str, T]`.
    fields : sequence of str
        Which fields to read; each an int, float, str or bool, or one of them or None.

    Raises
    ------
    SerdeError
        When the type or one of the fields has no columnar form; says why.

    Examples
    --------
    >>> raw = pa.array([b'{"a":1,"b":"x"}', None, b'{"a":2,"b":"y"}'], pa.binary())
    >>> JsonColumns(dict[str, int], ["a"]).decode(raw)["a"].to_pylist()
    [1, None, 2]
    """

    def __init__(self, kind: Any, fields: Sequence[str]) -> None:
        known = _layout(kind)
        for name in fields:
            if name not in known:
                raise SerdeError(f"{kind} has no field {name!r}")
        self.types = {name: _arrow_type(name, known[name][1]) for name in fields}
        self.row = msgspec.defstruct("Row", [known[name] for name in fields], gc=False)
        self._decoder = json_decoder(self.row)

    def decode(self, column: pa.Array) -> dict[str, pa.Array]:
        """The fields of an Arrow binary array of JSON; null where the value is null.

        Raises
        ------
        SerdeError
            When a value does not decode; which one, the record path tells.
        """
        present = column.drop_null() if column.null_count else column
        rows = self.rows(present)
        columns = {name: _column(rows, name, kind) for name, kind in self.types.items()}
        if column.null_count:
            places = pc.cumulative_sum(pc.cast(column.is_valid(), pa.int64()))
            places = pc.if_else(column.is_valid(), pc.subtract(places, 1), None)
            columns = {name: found.take(places) for name, found in columns.items()}
        return columns

    def rows(self, column: pa.Array) -> list[Any]:
        """Objects with the fields, of values none of which is null."""
        return of_lines(self._decoder, column)


def _column(rows: list[Any], name: str, kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(list(map(attrgetter(name), rows)), kind)
    except (pa.ArrowException, OverflowError) as error:
        raise SerdeError(f"the field {name!r} holds a value that {kind} does not: {error}") from error


def _arrow_type(name: str, kind: Any) -> pa.DataType:
    members = [member for member in get_args(kind) or (kind,) if member is not type(None)]
    if len(members) != 1 or members[0] not in ARROW_TYPES or (get_args(kind) and len(get_args(kind)) != 2):
        raise SerdeError(f"the field {name!r} is {kind}, which has no columnar form; int, float, str and bool have")
    return ARROW_TYPES[members[0]]


def _layout(kind: Any) -> dict[str, tuple[str, Any, Any]]:
    """Per field of a type: how it is declared in a Struct of some of its fields."""
    if isinstance(kind, type) and hasattr(kind, "__post_init__"):
        raise SerdeError(f"{kind.__name__} has a __post_init__, which columns cannot run")
    for holds, layout in _LAYOUTS:
        if holds(kind):
            fields: dict[str, tuple[str, Any, Any]] = layout(kind)
            return fields
    raise SerdeError(f"{kind} has no named fields")


def _of_struct(kind: Any) -> dict[str, tuple[str, Any, Any]]:
    config = kind.__struct_config__
    if config.array_like or config.tag_field or config.forbid_unknown_fields:
        raise SerdeError(f"{kind.__name__} is array_like, tagged or forbids unknown fields: it is read as a whole only")
    return {
        field.name: (
            field.name,
            field.type,
            _field(default=field.default, default_factory=field.default_factory, name=field.encode_name),
        )
        for field in msgspec.structs.fields(kind)
    }


def _of_dataclass(kind: Any) -> dict[str, tuple[str, Any, Any]]:
    hints = get_type_hints(kind)
    return {
        field.name: (
            field.name,
            hints[field.name],
            _field(default=_given(field.default), default_factory=_given(field.default_factory)),
        )
        for field in dataclasses.fields(kind)
    }


def _given(default: Any) -> Any:
    return msgspec.NODEFAULT if default is dataclasses.MISSING else default


def _of_typed_dict(kind: Any) -> dict[str, tuple[str, Any, Any]]:
    described = cast(msgspec.inspect.TypedDictType, type_info(kind))
    required = {field.name for field in described.fields if field.required}
    return {
        name: (name, hint, _field() if name in required else _field(default=None))
        for name, hint in get_type_hints(kind).items()
    }


class _OfDict(dict[str, tuple[str, Any, Any]]):
    """Every name is a field of a dict; it may be absent."""

    def __init__(self, kind: Any) -> None:
        self.kind = get_args(kind)[1] | None

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str)

    def __missing__(self, name: str) -> tuple[str, Any, Any]:
        return (name, self.kind, _field(default=None))


_LAYOUTS: tuple[tuple[Any, Any], ...] = (
    (lambda kind: isinstance(kind, type) and issubclass(kind, msgspec.Struct), _of_struct),
    (dataclasses.is_dataclass, _of_dataclass),
    (is_typeddict, _of_typed_dict),
    (lambda kind: cast(Any, get_origin(kind)) is dict and get_args(kind)[0] is str, _OfDict),
)
