"""What sources make of the columns of their rows: keys, the rows that can be read, and the text of the others."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar, get_args

import msgspec
import numpy as np
import pyarrow as pa

from kstreams.errors import ConnectorError
from kstreams.expressions.types import fields_of

Rows = TypeVar("Rows", pa.Array, pa.Table)


def type_of_key(names: Sequence[str], value: Any) -> Any:
    """Return the type of keys that are made of columns: of the one column, else a dict.

    Raises
    ------
    ConnectorError
        If the type of values does not have the column.

    Examples
    --------
    >>> type_of_key(["id"], dict[str, int]), type_of_key(["shop", "day"], dict), type_of_key([], dict)
    (<class 'int'>, <class 'dict'>, <class 'bytes'>)
    """
    if not names:
        return bytes
    if len(names) > 1:
        return dict
    fields = fields_of(value) or dict.fromkeys(names, _value_type_of_dict(value))
    hint = fields.get(names[0])
    if hint is None:
        raise ConnectorError(
            f"the type of the key column {names[0]!r} is not known, since {value!r} lacks it: pass key_type="
        )
    return hint


def _value_type_of_dict(value: Any) -> Any:
    return dict(enumerate(get_args(value))).get(1)


def key_column(names: Sequence[str], columns: Mapping[str, pa.Array]) -> pa.Array | None:
    """Return the keys: the one column, else a struct of the columns. None without a name."""
    if not names:
        return None
    if len(names) == 1:
        return columns[names[0]]
    return pa.StructArray.from_arrays([columns[name] for name in names], list(names))


def without_rows(rows: Rows, numbers: Collection[int]) -> Rows:
    """Return all rows but some.

    Examples
    --------
    >>> without_rows(pa.array(["a", "b", "c"]), {1}).to_pylist()
    ['a', 'c']
    """
    return rows.take(pa.array(np.setdiff1d(np.arange(len(rows)), list(numbers))))


def json_of(row: pa.Scalar) -> bytes:
    """Return a row as JSON; its text if it is a text.

    Examples
    --------
    >>> json_of(pa.scalar({"id": 1, "at": None})), json_of(pa.scalar(b"bytes")), json_of(pa.scalar("text"))
    (b'{"id":1,"at":null}', b'bytes', b'text')
    """
    value = row.as_py()
    if isinstance(value, str | bytes):
        return value.encode() if isinstance(value, str) else value
    return msgspec.json.encode(value, enc_hook=str)
