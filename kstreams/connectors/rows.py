"""`RowColumns`: the rows of a target as columns, made of the values, the keys and the times of a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from kstreams.connectors.api import SinkBatch
from kstreams.errors import ConnectorError
from kstreams.expressions import Expr, Operation
from kstreams.expressions.arrow import compute

Derivation: TypeAlias = "Expr | str"
"""An expression, or a format of event time such as `"%Y-%m-%d"`."""

PartitionBy: TypeAlias = "str | Sequence[str] | Mapping[str, Derivation]"
"""Names of columns, or new columns by name."""

PLAIN_VALUE = "value"
"""The column of values that have no fields."""

_COARSE_DIRECTIVES = frozenset("YmdHjyGVuAaBbU%")
"""The directives of `strftime` whose text is the same within an hour of UTC."""


def names_of(columns: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return names of columns as a tuple.

    Examples
    --------
    >>> names_of("id"), names_of(["shop", "day"]), names_of(None)
    (('id',), ('shop', 'day'), ())
    """
    if columns is None:
        return ()
    return (columns,) if isinstance(columns, str) else tuple(columns)


def derivations_of(partition_by: PartitionBy | None) -> dict[str, Derivation]:
    """Return each partition column with its derivation; a name alone is the column of that name.

    Examples
    --------
    >>> derivations_of({"day": "%Y-%m-%d"}), derivations_of("country")
    ({'day': '%Y-%m-%d'}, {'country': 'country'})
    """
    if isinstance(partition_by, Mapping):
        return dict(partition_by)
    return {name: name for name in names_of(partition_by)}


class RowColumns:
    """The columns of rows: those of the key, the fields of the value, the event time, and derived ones.

    Parameters
    ----------
    key : tuple of str
        The columns of the record's key: one for a plain key, or fields of a key with fields. A column of the key takes
        the place of a field of the value with its name.
    timestamp : str or None
        The column of event times.
    derived : mapping of str to Expr or str
        Columns by expression, or by a format of event time. A name that stands for itself is no derivation.

    Examples
    --------
    >>> import numpy as np
    >>> batch = SinkBatch(0, np.array([7]), pa.array(["a"]), pa.array([{"n": 1}]), pa.array([86_400_000]))
    >>> RowColumns(key=("id",), timestamp=None, derived={"day": "%Y-%m-%d"}).of(batch).to_pylist()
    [{'id': 'a', 'n': 1, 'day': '1970-01-02'}]
    """

    def __init__(self, *, key: tuple[str, ...], timestamp: str | None, derived: Mapping[str, Derivation]) -> None:
        self._key = key
        self._timestamp = timestamp
        self._derived = {name: source for name, source in derived.items() if not _is_itself(name, source)}

    def of(self, batch: SinkBatch) -> pa.RecordBatch:
        """Return the rows of all records. The value's columns of a record without value are null.

        Raises
        ------
        ConnectorError
            If an expression reads a column that the records do not have, or the key has no such field.
        """
        value_columns = _value_columns(batch.values)
        key_columns = {name: _key_column(batch.keys, name) for name in self._key}
        columns = key_columns | {name: column for name, column in value_columns.items() if name not in key_columns}
        if self._timestamp is not None:
            columns[self._timestamp] = batch.timestamps.cast(pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC"))
        for name, source in self._derived.items():
            columns[name] = _derived_column(source, batch, value_columns)
        return pa.RecordBatch.from_arrays(list(columns.values()), list(columns))


def _is_itself(name: str, source: Derivation) -> bool:
    return isinstance(source, str) and source == name


def _value_columns(values: pa.Array) -> dict[str, pa.Array]:
    if pa.types.is_struct(values.type):
        names = [field.name for field in values.type]
        return dict(zip(names, values.flatten(), strict=True))
    if pa.types.is_null(values.type):  # only records that delete
        return {}
    return {PLAIN_VALUE: values}


def _key_column(keys: pa.Array, name: str) -> pa.Array:
    if not pa.types.is_struct(keys.type):
        return keys
    names = [field.name for field in keys.type]
    if name not in names:
        raise ConnectorError(f"The key has no field {name!r}, only {', '.join(names)}. Name its fields in `key=`.")
    return keys.flatten()[names.index(name)]


def _derived_column(source: Derivation, batch: SinkBatch, value_columns: Mapping[str, pa.Array]) -> pa.Array:
    if isinstance(source, str):
        return formatted_times(batch.timestamps, _time_format(source))
    columns = {repr(leaf): _leaf_column(leaf, batch, value_columns) for leaf in source.leaves}
    result = compute(source, columns)
    return pa.repeat(result, len(batch)) if isinstance(result, pa.Scalar) else result


def _time_format(source: str) -> str:
    if "%" not in source:
        raise ConnectorError(f"{source!r} is no format of event time, such as '%Y-%m-%d'. For a column, take ks.col.")
    return source


def _leaf_column(leaf: Expr, batch: SinkBatch, value_columns: Mapping[str, pa.Array]) -> pa.Array:
    if leaf.operation is Operation.FIELD and leaf.detail in value_columns:
        return value_columns[leaf.detail]
    if leaf.operation not in _LEAVES:
        raise ConnectorError(
            f"{leaf!r} cannot be read for a row of a sink: the values have the fields {', '.join(value_columns)}. "
            "Expressions read fields, ks.key, ks.value, ks.timestamp, ks.partition and ks.offset."
        )
    return _LEAVES[leaf.operation](batch)


_LEAVES: dict[Operation, Callable[[SinkBatch], pa.Array]] = {
    Operation.KEY: lambda batch: batch.keys,
    Operation.VALUE: lambda batch: batch.values,
    Operation.TIMESTAMP: lambda batch: batch.timestamps,
    Operation.OFFSET: lambda batch: pa.array(batch.offsets),
    Operation.PARTITION: lambda batch: pa.repeat(pa.scalar(batch.partition, pa.int64()), len(batch)),
}


def formatted_times(timestamps: pa.Array, pattern: str) -> pa.Array:
    """Return the text of times in UTC; each distinct hour or millisecond is formatted once.

    Examples
    --------
    >>> formatted_times(pa.array([0, 3_600_000]), "%Y-%m-%d").to_pylist()
    ['1970-01-01', '1970-01-01']
    """
    times = timestamps.cast(pa.timestamp("ms", "UTC"))
    if _COARSE_DIRECTIVES.issuperset(text[:1] for text in pattern.replace("%%", "").split("%")[1:]):
        times = pc.floor_temporal(times, unit="hour")
    encoded = times.dictionary_encode()
    return pc.strftime(encoded.dictionary, format=pattern).take(encoded.indices)
