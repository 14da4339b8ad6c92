"""Stores as Arrow tables: a row for each entry, with columns for its key, its value and its times.

Entries are read in their changelog form, as columns. Only keys and values without a columnar form become objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import reduce
from typing import Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kstreams.errors import StateError
from kstreams.kernel.batch import HEADERS_TYPE
from kstreams.serdes import Serde, WindowedSerde
from kstreams.serdes.pydantic_models import is_model
from kstreams.state.api import Changes, StoreBuilder
from kstreams.state.rows.byte_columns import cut, integers
from kstreams.state.rows.version_rows import versions_of
from kstreams.state.tables.declared_types import completed, in_utc
from kstreams.state.values_with_headers import parted

_WINDOW_COLUMNS = "window_start", "window_end"
_ARROW_SCALARS = datetime, date, time, timedelta, Decimal, bytes
"""Types that msgspec would turn into text, and for which Arrow has types."""


class StoreRows(NamedTuple):
    """The rows of one partition of a store, and the store's time."""

    builder: StoreBuilder
    rows: Changes
    observed_ms: int


AsTable: TypeAlias = Callable[[StoreRows, int | None], pa.Table]
"""Makes the table of a partition's rows at a time; None: the present."""


def rows_of_store(store: Any) -> StoreRows:
    """Return all rows of a store."""
    return StoreRows(store.builder, store.dump(), store.observed_ms)


def as_table(parts: Sequence[StoreRows], as_of_ms: int | None) -> pa.Table:
    """Return the table of all partitions of a store.

    Parameters
    ----------
    parts : sequence of StoreRows
    as_of_ms : int or None
        If given, the table has only the rows that were valid at this time.
    """
    builder = parts[0].builder
    to_table: AsTable | None = builder.kind.table
    if to_table is None:
        raise StateError(f"the store {builder.name!r} is a {builder.kind.name} store, which cannot be read as a table")
    tables = [to_table(part, as_of_ms) for part in parts]
    try:
        table = pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise _mixed_types_error(builder, error) from error
    for name, declared_type in _declared_types(builder).items():
        index = table.column_names.index(name)
        table = table.set_column(index, name, completed(table.column(name), declared_type))
    return table


def _declared_types(builder: StoreBuilder) -> dict[str, object]:
    """Return the Python types of the columns `key` and `value`; None if a type is unknown."""
    serdes = {"key": _inner(builder.key), "value": builder.value}
    types: dict[str, object] = {name: None if serde is None else serde.type for name, serde in serdes.items()}
    return types if builder.result is None else types | {"value": builder.result_type}


def key_values(part: StoreRows, as_of_ms: int | None) -> pa.Table:
    """Return a row per key: key, window_start and window_end of windowed keys, value, timestamp if there is one."""
    builder, rows, _ = part
    if as_of_ms is not None:
        raise StateError(
            f"the store {builder.name!r} knows the present alone: only windows, sessions and versions have a past"
        )
    if not isinstance(builder.key, WindowedSerde):
        return _table(builder, rows.keys, rows, {})
    windowed: list[Any] = builder.key.decode_rows(rows.keys)
    bounds = {name: pa.array([key.window[n] for key in windowed], pa.int64()) for n, name in enumerate(_WINDOW_COLUMNS)}
    inner = pa.array([builder.key.inner.serialize(key.key) for key in windowed], pa.binary())
    return _table(builder, inner, rows, bounds)


def windows(part: StoreRows, as_of_ms: int | None) -> pa.Table:
    """Return a row per key and window: key, window_start, window_end, value, timestamp if there is one."""
    builder, rows, _ = part
    starts = integers(cut(rows.keys, -12, -4))
    ends = pc.add(starts, builder.window_size_ms or 0)
    table = _table(builder, cut(rows.keys, 0, -12), rows, {"window_start": starts, "window_end": ends})
    return table if as_of_ms is None else _filter(table, pc.less_equal(starts, as_of_ms), pc.greater(ends, as_of_ms))


def sessions(part: StoreRows, as_of_ms: int | None) -> pa.Table:
    """Return a row per session: key, window_start, window_end (the time of its last record), value."""
    builder, rows, _ = part
    ends = integers(cut(rows.keys, -16, -8))
    starts = integers(cut(rows.keys, -8))
    table = _table(builder, cut(rows.keys, 0, -16), rows, {"window_start": starts, "window_end": ends})
    if as_of_ms is None:
        return table
    return _filter(table, pc.less_equal(starts, as_of_ms), pc.greater_equal(ends, as_of_ms))


def versions(part: StoreRows, as_of_ms: int | None) -> pa.Table:
    """Return a row per version that is not a deletion: key, valid_from, valid_to (null: still valid), value."""
    builder, rows, observed_ms = part
    stored = versions_of(rows)
    by_key = pa.table({"key": stored.keys, "time": stored.times, "value": stored.values})
    by_key = by_key.filter(pc.invert(stored.are_gone)).sort_by([("key", "ascending"), ("time", "ascending")])
    keys, times, values = (column.combine_chunks() for column in by_key.columns)
    valid_from = times.to_numpy(zero_copy_only=False)
    are_latest = np.ones(len(keys), bool)
    are_latest[:-1] = pc.not_equal(keys[1:], keys[:-1]).to_numpy(zero_copy_only=False)
    valid_to = pa.array(np.roll(valid_from, -1), pa.int64(), mask=are_latest)
    columns = {"valid_from": times, "valid_to": valid_to}
    table = _table(builder, keys, Changes(keys, values, times), columns)
    conditions = [values.is_valid()]
    if as_of_ms is not None:
        has_history = as_of_ms >= observed_ms - (builder.history_retention_ms or 0)
        is_valid = pc.greater(valid_to, as_of_ms).fill_null(True) if has_history else valid_to.is_null()
        conditions += [pc.less_equal(times, as_of_ms), is_valid]
    return _filter(table, *conditions)


def _filter(table: pa.Table, *conditions: pa.Array) -> pa.Table:
    return table.filter(reduce(pc.and_, conditions))


def _table(builder: StoreBuilder, keys: pa.Array, rows: Changes, time_columns: dict[str, pa.Array]) -> pa.Table:
    data, headers = _split_headers(rows.values) if builder.kind.headers else (rows.values, {})
    columns = {"key": _decoded(builder, _inner(builder.key), keys)}
    columns |= time_columns
    columns["value"] = _values(builder, data)
    if builder.kind.timestamped:
        columns["timestamp"] = rows.timestamps
    return pa.table(columns | headers)


def _split_headers(column: pa.Array) -> tuple[pa.Array, dict[str, pa.Array]]:
    """Return the values without their headers, and the column of headers."""
    data, headers = parted(column)
    return data, {"headers": pa.array([[*row_headers] for row_headers in headers], HEADERS_TYPE)}


def _values(builder: StoreBuilder, data: pa.Array) -> pa.Array:
    """Return the column of values. A store of aggregation states has a function that turns a state into a value."""
    result = builder.result
    serde = builder.value
    if result is None or serde is None:
        return _decoded(builder, serde, data)
    return _column(builder, (None if row is None else result(row) for row in serde.decode_rows(data)))


def _inner(serde: Serde[object] | None) -> Serde[object] | None:
    """Return the serde of keys without their windows."""
    return serde.inner if isinstance(serde, WindowedSerde) else serde


def _decoded(builder: StoreBuilder, serde: Serde[object] | None, data: pa.Array) -> pa.Array:
    """Return the column of keys or values, with the Arrow type of the serde or else the type of the values."""
    if serde is None:
        return data
    if serde.arrow_type is not None:
        return serde.decode_column(data)
    return _column(builder, serde.decode_rows(data))


def _column(builder: StoreBuilder, values: Iterable[object]) -> pa.Array:
    try:
        return in_utc(pa.array([_plain(value) for value in values]))
    except (pa.ArrowException, TypeError, OverflowError) as error:
        raise _mixed_types_error(builder, error) from error


def _plain(value: object) -> Any:
    return msgspec.to_builtins(value, builtin_types=_ARROW_SCALARS, str_keys=True, enc_hook=_model_fields)


def _model_fields(value: Any) -> Any:
    """Return the fields of a pydantic model, with the names in its JSON; msgspec does not know such models."""
    if not is_model(type(value)):
        raise TypeError(f"{type(value).__name__} cannot be converted to plain data")
    return value.model_dump(by_alias=True)


def _mixed_types_error(builder: StoreBuilder, error: Exception) -> StateError:
    return StateError(
        f"the store {builder.name!r} holds values that make no column of one type ({error}): read them by all()"
    )
