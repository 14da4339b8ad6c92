"""`Changes`: the records of a topic as changes of the rows of a table, in columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from kstreams.connectors.api import Offsets, SinkBatch
from kstreams.errors import ConnectorError

KEY_OF_RECORD = "record_key"
KEY_OF_VALUE = "record_value"


class Changes(NamedTuple):
    """Changes in the order of their offsets.

    Parameters
    ----------
    rows : pyarrow.Table
        The columns of the key, then the others.
    offsets : numpy int64 array, shape (n,)
    deleted : numpy bool array, shape (n,)
        True if the record deletes the row of its key; its other columns are null.
    """

    rows: pa.Table
    offsets: Offsets
    deleted: np.typing.NDArray[np.bool_]

    def take(self, indices: Offsets) -> Changes:
        """Return some of the changes."""
        return Changes(self.rows.take(indices), self.offsets[indices], self.deleted[indices])

    def without_offsets(self, offsets: Sequence[int]) -> Changes:
        """Return the changes with other offsets."""
        return self.take(np.flatnonzero(~np.isin(self.offsets, offsets)))

    def halves(self) -> tuple[Changes, Changes]:
        """Divide the changes in the middle."""
        middle = len(self.offsets) // 2
        return (
            Changes(self.rows.slice(0, middle), self.offsets[:middle], self.deleted[:middle]),
            Changes(self.rows.slice(middle), self.offsets[middle:], self.deleted[middle:]),
        )


def changes_of(batch: SinkBatch, key: tuple[str, ...], pk_mode: str) -> Changes:
    """Return the changes of a batch of records.

    Parameters
    ----------
    batch : SinkBatch
    key : tuple of str
        The columns of the key; none if the table has no key.
    pk_mode : str
        `record_key` if the record's key has the key columns, `record_value` if the record's value has them.

    Raises
    ------
    ConnectorError
        If the records do not have the key columns.
    """
    columns = _columns_of_values(batch.values)
    key_columns = {name: columns[name] for name in key if name in columns}
    if pk_mode == KEY_OF_RECORD and key:
        key_columns = _columns_of_keys(batch.keys, key)
    if len(key_columns) < len(key):
        absent = ", ".join(name for name in key if name not in key_columns)
        raise ConnectorError(
            f"the values of the records have no field {absent}, which is a key column of the table: values have "
            f"{', '.join(columns)}. Name other key columns, or take them from the record's key by pk_mode='record_key'"
        )
    table = pa.table({**key_columns, **{name: column for name, column in columns.items() if name not in key_columns}})
    return Changes(table, batch.offsets, batch.values.is_null().to_numpy(zero_copy_only=False))


def _columns_of_values(values: pa.Array) -> dict[str, pa.Array]:
    if not pa.types.is_struct(values.type):
        return {"value": values}
    return dict(zip(values.type.names, values.flatten(), strict=True))


def _columns_of_keys(keys: pa.Array, key: tuple[str, ...]) -> dict[str, pa.Array]:
    if not pa.types.is_struct(keys.type):
        return {key[0]: keys} if len(key) == 1 else {}
    columns = dict(zip(keys.type.names, keys.flatten(), strict=True))
    return {name: columns[name] for name in key if name in columns}


def concatenated(parts: Sequence[Changes]) -> Changes:
    """Return several changes as one. A column that a part lacks is null there."""
    rows = pa.concat_tables([part.rows for part in parts], promote_options="permissive")
    offsets = np.concatenate([part.offsets for part in parts])
    return Changes(rows, offsets, np.concatenate([part.deleted for part in parts]))


def rows_without_key(changes: Changes, key: tuple[str, ...]) -> Offsets:
    """Return the indices of the changes with a null in a key column."""
    absent = np.zeros(len(changes.offsets), bool)
    for name in key:
        absent |= changes.rows[name].is_null().to_numpy()
    return np.flatnonzero(absent)


def last_of_each_key(changes: Changes, key: tuple[str, ...]) -> Changes:
    """Return the last change of each key, in the order of offsets."""
    keys = changes.rows.select(key).append_column("index", pa.array(np.arange(len(changes.offsets))))
    lasts = keys.group_by(list(key), use_threads=False).aggregate([("index", "max")])["index_max"]
    return changes.take(np.sort(lasts.to_numpy()))


def changes_of_same_keys(changes: Changes, offsets: Sequence[int], key: tuple[str, ...]) -> Changes:
    """Return the changes whose keys are those of the changes at some offsets."""
    keys = changes.rows.select(key).append_column("index", pa.array(np.arange(len(changes.offsets))))
    sought = changes.take(np.flatnonzero(np.isin(changes.offsets, offsets))).rows.select(key)
    indices = keys.join(sought, list(key), join_type="left semi")["index"]
    return changes.take(np.sort(indices.to_numpy()))


def plain_columns(rows: pa.Table) -> pa.Table:
    """Return a table whose lists, structs and maps are JSON texts, since few databases have such columns."""
    for index, field in enumerate(rows.schema):
        if pa.types.is_nested(field.type):
            texts = [
                None if value is None else _json(value) for value in rows[index].to_pylist(maps_as_pydicts="lossy")
            ]
            rows = rows.set_column(index, field.name, pa.array(texts, pa.string()))
    return rows


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
