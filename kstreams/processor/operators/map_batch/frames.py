"""Records as columns for functions over batches: Arrow tables, or frames of Polars or pandas.

Polars and pandas are imported when the first function needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from numbers import Integral, Real
from types import NoneType
from typing import Any, Literal, TypeAlias, is_typeddict

import pyarrow as pa

from kstreams.errors import TopologyError
from kstreams.expressions.types import fields_of, split_optional
from kstreams.serdes import serde_of

Format: TypeAlias = Literal["arrow", "polars", "pandas"]


@dataclass(frozen=True, slots=True)
class Frames:
    """Makes the argument of a function over batches.

    Parameters
    ----------
    format : {"arrow", "polars", "pandas"}
    kind : type or None
        The type of the values. A type with named fields has a column for each field, a `dict` a column for each key in
        the batch, and any other type a column "value".
    key : type or None
        The type of the keys.
    with_key, with_timestamp : bool
        True if there is a column "key", and a column "timestamp" (int64, ms).
    """

    format: Format
    kind: object = None
    key: object = None
    with_key: bool = False
    with_timestamp: bool = False

    def table(self, keys: Sequence[object], values: Sequence[object], timestamps: Sequence[int]) -> pa.Table:
        """Return records as an Arrow table."""
        return self.table_of(
            _columns(self.kind, values), lambda: self._key_column(keys), lambda: pa.array(timestamps, pa.int64())
        )

    def table_of(
        self, values: dict[str, object], keys: Callable[[], pa.Array], timestamps: Callable[[], pa.Array]
    ) -> pa.Table:
        """Return an Arrow table of columns of values; keys and timestamps are computed only if they are needed."""
        columns = dict(values)
        if self.with_key:
            columns["key"] = keys()
        if self.with_timestamp:
            columns["timestamp"] = timestamps()
        return pa.table(columns)

    def _key_column(self, keys: Sequence[object]) -> pa.Array:
        with _error_context("key", keys, "key", self.key):
            return _array(keys, self.key)

    @property
    def is_columnar(self) -> bool:
        """True if the type of the values determines the columns and their Arrow types."""
        return self.fields is not None or _arrow_type(self.kind) is not None

    @property
    def fields(self) -> tuple[str, ...] | None:
        """The names of the columns of a type with named fields; None for any other type."""
        fields = None if self.kind is None else fields_of(self.kind)
        return None if fields is None else tuple(fields)

    def frame(self, table: pa.Table) -> Any:
        """Return a table in the format of the function."""
        return _FRAMES[self.format](table)


def check_format(name: str) -> None:
    """Raise a TopologyError if a format is unknown, or if its library is not installed."""
    if name not in _FRAMES:
        raise TopologyError(f'format={name!r} is none of "arrow", "polars" and "pandas"')
    if name != "arrow":
        try:
            import_module(name)
        except ImportError as error:
            raise TopologyError(f'format="{name}" needs {name}: install it with `pip install {name}`') from error


def _columns(kind: object, values: Sequence[Any]) -> dict[str, object]:
    fields = None if kind is None else fields_of(kind)
    if fields is not None:
        read = dict.get if is_typeddict(kind) else getattr
        return {name: _field_column(values, name, read, field) for name, field in fields.items()}
    if getattr(kind, "__origin__", kind) is dict and any(values):
        with _error_context("value", values, "value", dict):
            names = dict.fromkeys(name for value in values for name in value or ())
        return {name: _field_column(values, name, dict.get, None) for name in names}
    with _error_context("value", values, "value", kind):
        return {"value": _array(values, kind)}


def _field_column(values: Sequence[object], name: str, read: Callable[[Any, str], Any], kind: object) -> pa.Array:
    with _error_context("value", values, name, kind):
        return _array([None if value is None else read(value, name) for value in values], kind)


@contextmanager
def _error_context(side: str, items: Sequence[object], column: str, kind: object) -> Iterator[None]:
    """Add the first key or value to an error. The caller tries again with fewer records, until one is left."""
    try:
        yield
    except Exception as error:
        of_type = f" of {split_optional(kind).kind.__name__}" if _arrow_type(kind) is not None else ""
        raise TypeError(
            f"its {side} {items[0]!r} does not fit the column {column!r}{of_type} that map_batch() makes: {error}"
        ) from error


def _array(items: Sequence[object], kind: object) -> pa.Array:
    """Return a column. Raise a TypeError for a value that Arrow would change, such as 1.5 as an int."""
    plain = split_optional(kind).kind
    accepted = _ACCEPTED_TYPES.get(plain)
    if accepted is not None and not set(map(type, items)) <= {plain, NoneType}:
        for item in items:
            if item is not None and (not isinstance(item, accepted) or (isinstance(item, bool) and plain is not bool)):
                raise TypeError(f"{item!r} is a {type(item).__name__}")
    return pa.array(items, _arrow_type(kind))


_ACCEPTED_TYPES: dict[object, tuple[type, ...]] = {
    int: (Integral,),
    float: (Real,),
    str: (str,),
    bool: (bool,),
    bytes: (bytes, bytearray, memoryview),
}
"""The types of objects that a column of a type accepts."""


def _arrow_type(kind: object) -> pa.DataType | None:
    """Return the Arrow type of a Python type; None if the values determine it."""
    plain = split_optional(kind).kind
    return serde_of(plain).arrow_type if plain in _ACCEPTED_TYPES else None


_FRAMES: dict[str, Callable[[pa.Table], Any]] = {
    "arrow": lambda table: table,
    "polars": lambda table: import_module("polars").from_arrow(table),
    "pandas": lambda table: table.to_pandas(),
}
