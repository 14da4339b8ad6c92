"""Stores as Arrow tables: a row for each entry, with columns for its key, its value and its times.

What a store holds is taken as it stands in a changelog, in columns; only what has no columnar form becomes objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
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

_BOUNDS = "window_start", "window_end"
_KEPT = datetime, date, time, timedelta, Decimal, bytes  # Arrow has types for them


class StoreRows(NamedTuple):
    """What one partition of a store holds."""

    builder: StoreBuilder
    rows: Changes
    observed_ms: int


AsTable: TypeAlias = Callable[[StoreRows, int | None], pa.Table]
"""Of the rows of a partition and a time (None: the present) the table."""


def held_by(store: Any) -> StoreRows:
    """All that a store holds now."""
    return StoreRows(store.builder, store.dump(), store.observed_ms)


def as_table(parts: Sequence[StoreRows], as_of_ms: int | None) -> pa.Table:
    """The table of all partitions of a store.

    Parameters
    ----------
    parts : sequence of StoreRows
    as_of_ms : int or None
        Only what held at this time.
    """
    builder = parts[0].builder
    to_table: AsTable | None = builder.kind.table
    if to_table is None:
        raise StateError(f"the store {builder.name!r} is a {builder.kind.name} store: it has no form as a table")
    tables = [to_table(part, as_of_ms) for part in parts]
    try:
        table = pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise _of_many_types(builder, error) from error
    serdes = {"key": _inner(builder.key), "value": builder.value}
    kinds = {name: None if serde is None else serde.type for name, serde in serdes.items()}
    kinds |= {} if builder.result is None else {"value": builder.result_type}
    for name, kind in kinds.items():
        place = table.column_names.index(name)
        table = table.set_column(place, name, completed(table.column(name), kind))
    return table


def key_values(part: StoreRows, as_of_ms: int | None) -> pa.Table:
    """A row per key: key (and its window_start and window_end), value, and the timestamp where the store has one."""
    builder, rows, _ = part
    if as_of_ms is not None:
        raise StateError(
            f"the store {builder.name!r} knows the present alone: only windows, sessions and versions have a past"
        )
    if not isinstance(builder.key, WindowedSerde):
        return _table(builder, rows.keys, rows, {})
    windowed: list[Any] = builder.key.decode_rows(rows.keys)
    bounds = {name: pa.array([key.window[n] for key in windowed], pa.int64()) for n, name in enumerate(_BOUNDS)}
    inner = pa.array([builder.key.inner.serialize(key.key) for key in windowed], pa.binary())
    return _table(builder, inner, rows, bounds)


def windows(part: StoreRows, as_of_ms: int | None) -> pa.Table:
    """A row per key and window: key, window_start, window_end, value, and the timestamp where the store has one."""
    builder, rows, _ = part
    starts = integers(cut(rows.keys, -12, -4))
    ends = pc.add(starts, builder.window_size_ms or 0)
    table = _table(builder, cut(rows.keys, 0, -12), rows, {"window_start": starts, "window_end": ends})
    return table if as_of_ms is None else _which(table, pc.less_equal(starts, as_of_ms), pc.greater(ends, as_of_ms))


def sessions(part: StoreRows, as_of_ms: int | None) -> pa.Table:
    """A row per session: key, window_start, window_end (the time of its last record), value."""
    builder, rows, _ = part
    ends = integers(cut(rows.keys, -16, -8))
    starts = integers(cut(rows.keys, -8))
    table = _table(builder, cut(rows.keys, 0, -16), rows, {"window_start": starts, "window_end": ends})
    if as_of_ms is None:
        return table
    return _which(table, pc.less_equal(starts, as_of_ms), pc.greater_equal(ends, as_of_ms))


def versions(part: StoreRows, as_of_ms: int | None) -> pa.Table:
    """A row per version that is not a deletion: key, valid_from, valid_to (null: it still holds), value."""
    builder, rows, observed_ms = part
    stored = versions_of(rows)
    by_key = pa.table({"key": stored.keys, "time": stored.times, "value": stored.values})
    by_key = by_key.filter(pc.invert(stored.are_gone)).sort_by([("key", "ascending"), ("time", "ascending")])
    keys, times, values = (column.combine_chunks() for column in by_key.columns)
    begin = times.to_numpy(zero_copy_only=False)
    last = np.ones(len(keys), bool)
    last[:-1] = pc.not_equal(keys[1:], keys[:-1]).to_numpy(zero_copy_only=False)
    valid_to = pa.array(np.roll(begin, -1), pa.int64(), mask=last)
    columns = {"valid_from": times, "valid_to": valid_to}
    table = _table(builder, keys, Changes(keys, values, times), columns)
    holds = [values.is_valid()]
    if as_of_ms is not None:
        is_known = as_of_ms >= observed_ms - (builder.history_retention_ms or 0)
        until = pc.greater(valid_to, as_of_ms).fill_null(True) if is_known else valid_to.is_null()
        holds += [pc.less_equal(times, as_of_ms), until]
    return _which(table, *holds)


def _which(table: pa.Table, *conditions: pa.Array) -> pa.Table:
    for condition in conditions[1:]:
        conditions = (pc.and_(conditions[0], condition),)
    return table.filter(conditions[0])


def _table(builder: StoreBuilder, keys: pa.Array, rows: Changes, places: dict[str, pa.Array]) -> pa.Table:
    times = {"timestamp": rows.timestamps} if builder.kind.timestamped else {}
    data, headers = _headers_apart(rows.values) if builder.kind.headers else (rows.values, {})
    decoded = (
        {"key": _decoded(builder, _inner(builder.key), keys)},
        {"value": _values(builder, data)},
    )
    return pa.table(decoded[0] | places | decoded[1] | times | headers)


def _headers_apart(column: pa.Array) -> tuple[pa.Array, dict[str, pa.Array]]:
    data, headers = parted(column)
    return data, {"headers": pa.array([[*row_headers] for row_headers in headers], HEADERS_TYPE)}


def _values(builder: StoreBuilder, data: pa.Array) -> pa.Array:
    result = builder.result
    serde = builder.value
    if result is None or serde is None:
        return _decoded(builder, serde, data)
    return _column(builder, (None if row is None else result(row) for row in serde.decode_rows(data)))


def _inner(serde: Serde[object] | None) -> Serde[object] | None:
    """The serde of keys without their windows."""
    return serde.inner if isinstance(serde, WindowedSerde) else serde


def _decoded(builder: StoreBuilder, serde: Serde[object] | None, data: pa.Array) -> pa.Array:
    """A column of values: of the serde's Arrow type, else of the type that the values have as plain data."""
    if serde is None:
        return data
    if serde.arrow_type is not None:
        return serde.decode_column(data)
    return _column(builder, serde.decode_rows(data))


def _column(builder: StoreBuilder, values: Iterable[object]) -> pa.Array:
    try:
        return in_utc(pa.array([_plain(value) for value in values]))
    except (pa.ArrowException, TypeError, OverflowError) as error:
        raise _of_many_types(builder, error) from error


def _plain(value: object) -> Any:
    return msgspec.to_builtins(value, builtin_types=_KEPT, str_keys=True, enc_hook=_fields)


def _fields(value: Any) -> Any:
    """What msgspec does not know: the fields of a pydantic model, by the names in its JSON."""
    if not is_model(type(value)):
        raise TypeError(f"{type(value).__name__} has no plain form")
    return value.model_dump(by_alias=True)


def _of_many_types(builder: StoreBuilder, error: Exception) -> StateError:
    return StateError(
        f"the store {builder.name!r} holds values that make no column of one type ({error}): read them by all()"
    )
