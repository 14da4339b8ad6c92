"""The keys and times of a source's records, made of columns of its rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import pyarrow as pa

from kstreams.errors import ConnectorError
from kstreams.expressions.types import fields_of


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
