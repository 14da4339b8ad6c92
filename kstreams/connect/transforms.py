"""Transforms of a connect file: each is operators of a stream, with the types of the result.

Kafka Connect: single message transforms. A null value, which deletes its key, passes all transforms but `filter`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any, TypeAlias, get_args, get_origin

import msgspec

from kstreams.connect.expression_texts import expression_of
from kstreams.connect.tables import Place, as_table, texts
from kstreams.connect.types import PythonType, TypeReader, may_be_none, require_field_name
from kstreams.dsl.streams.kstream import KStream
from kstreams.errors import TopologyError
from kstreams.expressions import Expr, Schema, as_function, col, fields_of, literal, struct, type_of, value, when
from kstreams.expressions.generated import struct_type
from kstreams.expressions.types import split_optional
from kstreams.kernel.decoders import convert
from kstreams.record import RecordWithMetadata
from kstreams.row_change import RowChange

Row: TypeAlias = Any
"""A value with fields: an object of a class, or a dict."""

_EMPTY: Mapping[PythonType, object] = {
    str: "",
    int: 0,
    float: 0.0,
    bool: False,
    bytes: b"",
    datetime: datetime(1970, 1, 1, tzinfo=UTC),
}
"""What masks a field without a replacement, as Kafka Connect's MaskField does."""


@dataclass(frozen=True, slots=True)
class TypedStream:
    """A stream with the types of its records.

    Parameters
    ----------
    stream : KStream
    key, value : type
    has_deletes : bool
        True if values may be null. False allows the projections that run on columns.
    rows : callable, optional
        Returns the stream of the rows that changes make, without copies and with all columns. For a topic of Debezium.
    """

    stream: KStream[Any, Any]
    key: PythonType
    value: PythonType
    has_deletes: bool = True
    rows: Callable[[], TypedStream] | None = None

    @property
    def has_changes(self) -> bool:
        """True if values are changes of rows, as `ks.Debezium` reads them."""
        kind = split_optional(self.value).kind
        return kind is RowChange or get_origin(kind) is RowChange

    @property
    def schema(self) -> Schema:
        """The types as expressions read them."""
        return Schema(self.key, Any if self.has_changes else self.value)

    @property
    def fields(self) -> Mapping[str, PythonType] | None:
        """The fields of values. None for dicts, whose fields are not known."""
        kind = split_optional(self.value).kind
        return None if kind in (dict, Any) or get_origin(kind) is dict else fields_of(kind) or {}


@dataclass(frozen=True, slots=True)
class Step:
    """A transform in its place.

    Parameters
    ----------
    name : str
        The name of its operator.
    place : Place
    types : TypeReader
    """

    name: str
    place: Place
    types: TypeReader

    def require_fields(self, stream: TypedStream, names: object) -> None:
        """Raise ConfigError if a value does not have these fields."""
        for name in names if isinstance(names, list | Mapping) else ():
            if stream.fields is not None and name not in stream.fields:
                raise self.place.unknown("field", name, list(stream.fields))


@dataclass(frozen=True, slots=True)
class Computed:
    """A field that an expression computes, with its type."""

    expression: Expr
    kind: PythonType


@dataclass(frozen=True, slots=True)
class Projection:
    """A change of the fields of values.

    Parameters
    ----------
    renamed : mapping of str to str
        New names by the old ones.
    dropped : collection of str
    computed : mapping of str to Computed
        Fields that are replaced or added.
    selected : sequence of str, optional
        The only fields that remain, in this order.
    """

    renamed: Mapping[str, str] | None = None
    dropped: tuple[str, ...] = ()
    computed: Mapping[str, Computed] | None = None
    selected: tuple[str, ...] | None = None

    def apply(self, stream: TypedStream, step: Step) -> TypedStream:
        """Return the stream of the changed values."""
        if stream.fields is None:
            row = _ChangedDict(self, stream.schema)
            changed = stream.stream.map_values(row, with_record=True, value=dict, name=step.name)
            return replace(stream, stream=changed, value=dict)
        fields = self._fields(stream.fields)
        if not fields:
            raise step.place.error("no field remains")
        kind = struct_type(tuple((name, field.kind) for name, field in fields.items()))
        row_expression = struct(**{name: field.expression for name, field in fields.items()})
        if stream.has_deletes:
            row_expression = when(~value.is_null()).then(row_expression)
        changed = stream.stream.map_values(row_expression, value=kind, name=step.name)
        return replace(stream, stream=changed, value=kind)

    def new_name(self, name: str) -> str | None:
        """Return the name of a field after the change. None if it is left out."""
        if name in self.dropped or (self.selected is not None and name not in self.selected):
            return None
        return (self.renamed or {}).get(name, name)

    def _fields(self, fields: Mapping[str, PythonType]) -> dict[str, Computed]:
        ordered = fields if self.selected is None else {name: fields[name] for name in self.selected}
        named = ((self.new_name(name), Computed(col(name), kind)) for name, kind in ordered.items())
        return {name: field for name, field in named if name is not None} | dict(self.computed or {})


class _ChangedDict:
    """The function of a projection for values that are dicts."""

    def __init__(self, projection: Projection, schema: Schema) -> None:
        self._projection = projection
        arguments = ("key", "value", "timestamp", "record")
        self._computed = {
            name: as_function(field.expression, arguments, key=schema.key, value=schema.value)
            for name, field in (projection.computed or {}).items()
        }

    def __call__(self, record: RecordWithMetadata[Any, Any]) -> dict[str, object] | None:
        if record.value is None:
            return None
        names = {name: self._projection.new_name(name) for name in record.value}
        row = {new: record.value[old] for old, new in names.items() if new is not None}
        for name, function in self._computed.items():
            row[name] = function(record.key, record.value, record.timestamp, record)
        return row


def _filter(stream: TypedStream, argument: object, step: Step) -> TypedStream:
    condition = expression_of(argument, step.place, stream.schema)
    kind = type_of(condition, stream.schema).kind
    if kind not in (bool, Any):
        raise step.place.error(f"{argument!r} is {kind.__name__}, not a condition: write a comparison")
    return replace(stream, stream=stream.stream.filter(condition, name=step.name))


def _select(stream: TypedStream, argument: object, step: Step) -> TypedStream:
    names = texts(argument, step.place)
    step.require_fields(stream, names)
    return Projection(selected=tuple(names)).apply(stream, step)


def _drop(stream: TypedStream, argument: object, step: Step) -> TypedStream:
    names = texts(argument, step.place)
    step.require_fields(stream, names)
    return Projection(dropped=tuple(names)).apply(stream, step)


def _rename(stream: TypedStream, argument: object, step: Step) -> TypedStream:
    names = as_table(argument, step.place)
    step.require_fields(stream, names)
    others = set(stream.fields or ()) - set(names)
    for old, new in names.items():
        require_field_name(new, step.place.at(old))
        if new in others:
            raise step.place.error(f"{old} cannot be renamed to {new}, since there is a field {new}")
        others.add(str(new))
    return Projection(renamed={old: str(new) for old, new in names.items()}).apply(stream, step)


def _set(stream: TypedStream, argument: object, step: Step) -> TypedStream:
    computed = {}
    for name, text in as_table(argument, step.place).items():
        require_field_name(name, step.place)
        expression = expression_of(text, step.place.at(name), stream.schema)
        computed[name] = Computed(expression, type_of(expression, stream.schema).annotation)
    return Projection(computed=computed).apply(stream, step)


def _mask(stream: TypedStream, argument: object, step: Step) -> TypedStream:
    masks = dict.fromkeys(argument) if isinstance(argument, list) else as_table(argument, step.place)
    step.require_fields(stream, masks)
    computed = {name: _masked(stream, name, replacement, step) for name, replacement in masks.items()}
    return Projection(computed=computed).apply(stream, step)


def _masked(stream: TypedStream, name: str, replacement: object, step: Step) -> Computed:
    kind = Any if stream.fields is None else stream.fields[name]
    plain = split_optional(kind).kind
    mask = _EMPTY.get(plain) if replacement is None else replacement
    if mask is not None and plain is not Any and type(mask) is not plain:
        raise step.place.error(f"{name} is {plain.__name__}, which {mask!r} cannot replace")
    if mask is not None:
        return Computed(literal(mask), kind)
    if may_be_none(kind):
        return Computed(when(literal(False)).then(col(name)), kind)
    raise step.place.error(f'the type of {name} has no empty value: name one, as in mask = {{ {name} = "****" }}')


def _cast(stream: TypedStream, argument: object, step: Step) -> TypedStream:
    declared = as_table(argument, step.place)
    step.require_fields(stream, declared)
    kinds = {name: step.types.read(text, step.place.at(name), name) for name, text in declared.items()}
    casts = {name: _cast_field(stream, name, kind) for name, kind in kinds.items()}
    computed = {name: field for name, field in casts.items() if field is not None}
    if len(computed) == len(casts):
        return Projection(computed=computed).apply(stream, step)
    if stream.fields is None:
        rows = stream.stream.map_values(_ConvertedDict(kinds), value=dict, name=step.name)
        return replace(stream, stream=rows, value=dict)
    fields = {name: _as_optional(kinds.get(name, kind), kind) for name, kind in stream.fields.items()}
    row = struct_type(tuple(fields.items()))
    rows = stream.stream.map_values(_ConvertedRow(kinds, row), value=row, name=step.name)
    return replace(stream, stream=rows, value=row)


def _cast_field(stream: TypedStream, name: str, kind: PythonType) -> Computed | None:
    """Return the expression that casts a field. None if expressions know no such cast."""
    expression = col(name).cast(split_optional(kind).kind)
    if stream.fields is None:
        return None
    try:
        result = type_of(expression, stream.schema)
    except TopologyError:
        return None
    is_exact = (split_optional(stream.fields[name]).kind, result.kind) in _TOTAL_CASTS
    return Computed(expression, _as_optional(result.kind, stream.fields[name] if is_exact else None))


_TOTAL_CASTS = {(bool, int), (int, float), (int, str), (datetime, int), *((kind, kind) for kind in _EMPTY)}
"""The casts of expressions that never result in null."""


def _as_optional(kind: PythonType, source: PythonType) -> PythonType:
    """Return a type, with None if the source has it. None as source has it."""
    return kind | None if source is None or may_be_none(source) else kind


class _ConvertedRow:
    """The function that casts fields of objects in ways that expressions do not know."""

    def __init__(self, kinds: Mapping[str, PythonType], row: Callable[..., Row]) -> None:
        self._kinds = kinds
        self._row = row

    def __call__(self, value: Row) -> Row:
        if value is None:
            return None
        fields = msgspec.structs.asdict(value) if isinstance(value, msgspec.Struct) else dict(vars(value))
        return self._row(**{name: _converted(name, item, self._kinds) for name, item in fields.items()})


class _ConvertedDict:
    """The function that casts fields of dicts."""

    def __init__(self, kinds: Mapping[str, PythonType]) -> None:
        self._kinds = kinds

    def __call__(self, value: dict[str, object] | None) -> dict[str, object] | None:
        return None if value is None else {name: _converted(name, item, self._kinds) for name, item in value.items()}


def _converted(name: str, item: object, kinds: Mapping[str, PythonType]) -> object:
    kind = kinds.get(name)
    if item is None or kind is None:
        return item
    if split_optional(kind).kind is not str:
        try:
            return convert(item, kind, strict=False)
        except msgspec.ValidationError as error:
            raise ValueError(f"{name} is {item!r}, which cannot be cast: {error}") from None
    if isinstance(item, bool):
        return str(item).lower()
    return item.isoformat() if isinstance(item, datetime | date) else str(item)


def _key(stream: TypedStream, argument: object, step: Step) -> TypedStream:
    if not isinstance(argument, list):
        expression = expression_of(argument, step.place, stream.schema)
        kind = _kind_of(argument, expression, stream)
        return replace(stream, stream=stream.stream.select_key(expression, key=kind, name=step.name), key=kind)
    names = texts(argument, step.place)
    step.require_fields(stream, names)
    columns = {name: col(name) for name in names}
    kinds = {name: _kind_of(name, column, stream) for name, column in columns.items()}
    kind = dict if stream.fields is None else struct_type(tuple(kinds.items()))
    return replace(stream, stream=stream.stream.select_key(struct(**columns), key=kind, name=step.name), key=kind)


def _kind_of(text: object, expression: Expr, stream: TypedStream) -> PythonType:
    """Return the type of an expression; that of a field as it is declared."""
    declared = (stream.fields or {}).get(str(text))
    kind = type_of(expression, stream.schema).kind if declared is None else declared
    return None if kind is Any else kind


def _unwrap(stream: TypedStream, argument: object, step: Step) -> TypedStream:
    if argument != "debezium":
        raise step.place.unknown("form", str(argument), ["debezium"])
    if not stream.has_changes:
        raise step.place.error(
            'only changes are unwrapped: write format = "debezium" in a source of type "topic", or declare the value '
            "as ks.RowChange[T]"
        )
    if stream.rows is not None:
        return stream.rows()
    row = next(iter(get_args(stream.value)), dict)
    changes = stream.stream.filter(_is_of_row, name=f"{step.name}-rows")
    return replace(stream, stream=changes.map_values(_row_after, value=row, name=step.name), value=row)


def _is_of_row(key: object, change: RowChange[Row] | None) -> bool:
    return change is None or change.operation != "truncate"


def _row_after(change: RowChange[Row] | None) -> Row:
    """Return the row after a change, with None for a deletion."""
    if change is not None and change.unavailable:
        raise ValueError(
            f"the change does not report the columns {', '.join(change.unavailable)}: unwrap the changes before other "
            "transforms, which retains the values of such columns, or set REPLICA IDENTITY FULL"
        )
    return None if change is None else change.after


Transform: TypeAlias = Callable[[TypedStream, object, Step], TypedStream]

TRANSFORMS: Mapping[str, Transform] = {
    "filter": _filter,
    "select": _select,
    "drop": _drop,
    "rename": _rename,
    "set": _set,
    "cast": _cast,
    "mask": _mask,
    "key": _key,
    "unwrap": _unwrap,
}
"""The transforms, by their keys in the file."""

_OF_CHANGES = ("filter", "key", "unwrap")
"""The transforms that take changes of rows."""


def transformed(
    stream: TypedStream, declarations: object, place: Place, *, name: str, types: TypeReader
) -> TypedStream:
    """Return the stream after the transforms of a table.

    Parameters
    ----------
    stream : TypedStream
    declarations : list of mapping
        Each has one key, the name of the transform.
    place : Place
    name : str
        The beginning of the names of operators.
    types : TypeReader

    Raises
    ------
    ConfigError
        If a transform does not exist, or does not fit the stream.
    """
    if not isinstance(declarations, list):
        raise place.error(f'transforms are a list, such as [{{ filter = "size > 0" }}], not {declarations!r}')
    for number, declaration in enumerate(declarations, 1):
        at = place.at(f"transform {number}")
        entries = as_table(declaration, at)
        if len(entries) != 1:
            raise at.error(f"a transform has one key, not {len(entries)}: write a table in braces for each")
        [[transform, argument]] = entries.items()
        if transform not in TRANSFORMS:
            raise at.unknown("transform", transform, list(TRANSFORMS))
        if stream.has_changes and transform not in _OF_CHANGES:
            raise at.at(transform).error('values are changes of rows: write { unwrap = "debezium" } before')
        step = Step(f"{name}-{number}-{transform}", at.at(transform), types)
        stream = replace(TRANSFORMS[transform](stream, argument, step), rows=None)
    return stream
