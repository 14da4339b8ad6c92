"""`ValueColumns`: keys or values as Arrow columns for connectors, and as the bytes of a serde for topics."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from operator import attrgetter, itemgetter
from types import NoneType, UnionType
from typing import Annotated, Any, TypeAlias, Union, get_args, get_origin, get_type_hints, is_typeddict

import msgspec
import pyarrow as pa

from kstreams.errors import SerdeError
from kstreams.expressions.types import fields_of
from kstreams.kernel.decoders import convert, decode_json
from kstreams.serdes import Serde, WindowedSerde
from kstreams.serdes.arrow_types import arrow_type, typed_column, windowed_type
from kstreams.serdes.base import FieldColumns

_ARROW_SCALARS = bytes, datetime, date, time, timedelta, Decimal
"""The types that msgspec would turn into text, and for which Arrow has types."""

MAX_DIGITS = 38
"""The precision of decimals whose precision is not declared: the greatest that Delta and Iceberg have."""

_PLAIN_TYPES = {int, float, str, bool, bytes, datetime, date, NoneType}
"""The types whose objects are those of their Arrow columns."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_Objects: TypeAlias = list[Any]


class ValueColumns:
    """The conversion of keys or values between Arrow columns and the bytes of a serde.

    Rows of JSON text, which have no common fields or types, are a binary column of a type without Arrow type.

    Parameters
    ----------
    serde : Serde

    Attributes
    ----------
    type : pyarrow.DataType or None
        The type of the columns. None if only the values determine it, as for dicts and decimals. Windowed keys are
        structs of `key`, `window_start` and `window_end`.

    Examples
    --------
    >>> from kstreams.serdes import serde_of
    >>> columns = ValueColumns(serde_of(dict))
    >>> columns.encode(pa.array([{"a": 1}, None])).to_pylist()
    [b'{"a":1}', None]
    >>> columns.encode(pa.array([b'{"a": [1, "x"]}', b'{"b": 2}'], pa.binary())).to_pylist()
    [b'{"a":[1,"x"]}', b'{"b":2}']
    >>> columns.decode(pa.array([b'{"a":1}', None], pa.binary())).to_pylist()
    [{'a': 1}, None]
    """

    def __init__(self, serde: Serde) -> None:
        self._serde = serde
        self._kind = serde.type
        self.type = _type_of(serde)
        self._struct: list[pa.Field] = [] if self.type is None or not pa.types.is_struct(self.type) else list(self.type)
        self._names = [field.name for field in self._struct]
        self._partly_known = _field_types(self._kind) if self.type is None else {}
        self._field_reader = _field_reader(serde, self._names)
        self._field_writer = serde.field_writer(self._kind, self._names) if self._names else None
        self._constructor = _constructor(self._kind)

    def encode(self, column: pa.Array) -> pa.Array:
        """Return the bytes of each row. Null stays null.

        Raises
        ------
        SerdeError, pyarrow.ArrowException
            If a row does not fit the type.
        """
        if self._serde.arrow_type is not None:
            return self._serde.encode_column(column.cast(self._serde.arrow_type)).cast(pa.binary())
        if not column.null_count:
            return self._encoded(column)
        present = self._encoded(column.drop_null())
        return present.take(_positions_of_present(column))

    def decode(self, column: pa.Array) -> pa.Array:
        """Return the values of a binary column. Null stays null.

        Raises
        ------
        SerdeError, pyarrow.ArrowException
            If a value does not decode.
        """
        if self._serde.arrow_type is not None or isinstance(self._serde, WindowedSerde):
            return typed_column(self._serde, column)
        if not column.null_count:
            return self._decoded(column)
        present = self._decoded(column.drop_null())
        return present.take(_positions_of_present(column))

    def _encoded(self, column: pa.Array) -> pa.Array:
        if self.type is None and pa.types.is_binary(column.type):
            return self._serde.encode_rows(self._converted([decode_json(text) for text in column.to_pylist()]))
        if not self._names:
            return self._serde.encode_rows(self._converted(_rows(column)))
        if not {*self._names}.issubset(field.name for field in column.type):
            return self._serde.encode_rows(self._converted(_rows(column)))  # fields that are missing have defaults
        struct = _fitted(column, self.type)
        if self._field_writer is not None:
            return self._field_writer(dict(zip(self._names, struct.flatten(), strict=True)))
        if self._constructor is None:
            return self._serde.encode_rows(self._converted(_rows(struct)))
        fields = [_objects(field) for field in struct.flatten()]
        return self._serde.encode_rows(list(map(self._constructor, *fields)))

    def _converted(self, rows: _Objects) -> _Objects:
        if self._kind in (None, dict, Any):
            return rows
        try:
            return convert(rows, list[self._kind], strict=False)  # type: ignore[name-defined]
        except msgspec.ValidationError as error:
            raise SerdeError(f"a row does not fit {self._kind}: {error}") from error

    def _decoded(self, column: pa.Array) -> pa.Array:
        if self._field_reader is not None:
            try:
                fields = self._field_reader.decode(column)
            except SerdeError:
                pass  # decoded as a whole below, where the error names the value
            else:
                return pa.StructArray.from_arrays(list(fields.values()), fields=self._struct)
        rows = self._serde.decode_rows(column)
        types = self._partly_known or {field.name: field.type for field in self._struct}
        if not types:
            return pa.array(msgspec.to_builtins(rows, builtin_types=_ARROW_SCALARS), self.type)
        read: Callable[[str], Callable[[Any], Any]] = itemgetter if _is_mapping(self._kind) else attrgetter
        columns = [_column(list(map(read(name), rows)), kind) for name, kind in types.items()]
        return pa.StructArray.from_arrays(columns, list(types))


def _type_of(serde: Serde) -> pa.DataType | None:
    if isinstance(serde, WindowedSerde):
        return windowed_type(serde)
    return serde.arrow_type if serde.arrow_type is not None else arrow_type(serde.type)


def _field_types(kind: Any) -> dict[str, pa.DataType | None]:
    """Return the Arrow types of the fields of a class, None where only the values determine it.

    Examples
    --------
    >>> class Price(msgspec.Struct):
    ...     amount: Annotated[Decimal, msgspec.Meta(extra={"scale": 2})]
    ...     discount: Decimal
    ...     note: str | None
    >>> _field_types(Price)
    {'amount': Decimal128Type(decimal128(38, 2)), 'discount': None, 'note': DataType(string)}
    """
    fields = fields_of(kind)
    if fields is None:
        return {}
    hints = get_type_hints(kind, include_extras=True)
    return {name: _decimal_type(hints[name]) or arrow_type(hint) for name, hint in fields.items()}


def _decimal_type(hint: object) -> pa.DataType | None:
    """Return the type of decimals with a declared scale. None for all other types."""
    for member in (hint, *get_args(hint)):  # the second for an annotated type that may be None
        if get_origin(member) is Annotated and get_args(member)[0] is Decimal:
            settings = [meta.extra or {} for meta in get_args(member) if isinstance(meta, msgspec.Meta)]
            scales = [extra["scale"] for extra in settings if "scale" in extra]
            return pa.decimal128(MAX_DIGITS, scales[-1]) if scales else None
    return None


def _rows(column: pa.Array) -> _Objects:
    """Return the values of a column, maps as dicts."""
    return column.to_pylist(maps_as_pydicts="strict")  # type: ignore[no-any-return]


def _objects(column: pa.Array) -> _Objects:
    """Return the values of a column. For times, this is many times as fast as `to_pylist`.

    Examples
    --------
    >>> _objects(pa.array([0, None], pa.timestamp("us", "UTC")))
    [datetime.datetime(1970, 1, 1, 0, 0, tzinfo=datetime.timezone.utc), None]
    """
    if not pa.types.is_timestamp(column.type):
        return column.to_pylist()  # type: ignore[no-any-return]
    times = column.cast(pa.timestamp("us")).to_numpy(zero_copy_only=False).astype("datetime64[us]")
    if column.type.tz is None:
        return times.astype(object).tolist()  # type: ignore[no-any-return]
    since_epoch = times.view("timedelta64[us]").astype(object).tolist()
    if column.null_count:
        return [None if duration is None else _EPOCH + duration for duration in since_epoch]
    return list(map(_EPOCH.__add__, since_epoch))


def _column(values: _Objects, kind: pa.DataType | None) -> pa.Array:
    try:
        if kind is not None and pa.types.is_timestamp(kind) and kind.tz is not None:
            return _times(values, kind)
        return pa.array(values, kind)
    except pa.ArrowException:  # classes, enumerations and UUIDs
        return pa.array(msgspec.to_builtins(values, builtin_types=_ARROW_SCALARS), kind)


def _times(values: _Objects, kind: pa.DataType) -> pa.Array:
    """Return times as a column. For times with a zone, durations since the epoch cost half as much as times.

    Examples
    --------
    >>> _times([datetime(1970, 1, 1, 1, tzinfo=UTC), None], pa.timestamp("us", "UTC"))[0]
    <pyarrow.TimestampScalar: '1970-01-01T01:00:00.000000+0000'>
    """
    try:
        since_epoch = [None if time is None else time - _EPOCH for time in values]
    except TypeError:  # a time without a zone, which counts as UTC, or no time
        return pa.array(values, kind)
    return pa.array(since_epoch, pa.duration("us")).cast(pa.int64()).cast(kind)


def _fitted(column: pa.Array, struct: pa.DataType) -> pa.Array:
    """Return a struct column with exactly these fields, in this order."""
    if column.type == struct:
        return column
    fields = [column.field(field.name).cast(field.type) for field in struct]
    return pa.StructArray.from_arrays(fields, fields=list(struct))


def _positions_of_present(column: pa.Array) -> pa.Array:
    """Return for each row its position among the rows that are not null; null for the others."""
    is_valid = column.is_valid().to_numpy(zero_copy_only=False)
    return pa.array(is_valid.cumsum() - 1, pa.int64(), mask=~is_valid)


def _is_mapping(kind: object) -> bool:
    return is_typeddict(kind) or getattr(kind, "__origin__", kind) is dict


def _field_reader(serde: Serde, names: Sequence[str]) -> FieldColumns | None:
    if not names:
        return None
    try:
        return serde.field_columns(names)
    except SerdeError:
        return None


def _constructor(kind: Any) -> Callable[..., Any] | None:
    """Return the class if its objects can be made of the columns of its fields as they are, else None."""
    fields = fields_of(kind)
    if not fields or is_typeddict(kind) or hasattr(kind, "__post_init__"):
        return None
    if not all(_PLAIN_TYPES.issuperset(_members(hint)) for hint in fields.values()):
        return None
    parameters = inspect.signature(kind).parameters.values()
    return kind if all(parameter.kind is parameter.POSITIONAL_OR_KEYWORD for parameter in parameters) else None


def _members(hint: object) -> set[object]:
    """Return the types of a union, or the one type."""
    return set(get_args(hint)) if get_origin(hint) in (Union, UnionType) else {hint}
