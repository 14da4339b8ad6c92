"""`SchemaReader` and `SchemaWriter`: what a format makes of one schema, once, for all records that have it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from kstreams.errors import SerdeError


class UnreadableSchemaError(SerdeError):
    """A record that was written well, with a schema that has something for which the reader has no place."""


def _no_columns(columns: Any) -> Any:
    raise SerdeError("the schema has no columnar form")


class SchemaReader(NamedTuple):
    """Reads what was written with one schema; bytes are given with the frame in front.

    Parameters
    ----------
    one : callable
        `bytes -> value`; raises SerdeError when the bytes do not decode, or not to their last one.
    many : callable
        `list of bytes -> list of values`, in the same order; raises SerdeError when one of them does not decode.
    fields : callable
        `(fields) -> callable`, which takes a binary array without nulls and gives these fields as columns; raises
        SerdeError where it cannot.
    """

    one: Callable[[bytes], Any]
    many: Callable[[list[bytes]], list[Any]]
    fields: Callable[[Sequence[str]], Callable[[pa.Array], dict[str, pa.Array]]] = _no_columns

    @classmethod
    def of(cls, one: Callable[[bytes], Any]) -> SchemaReader:
        """A reader that reads one after the other."""
        return cls(one, lambda rows: [one(row) for row in rows])


class SchemaWriter(NamedTuple):
    """Writes with one schema, the frame in front.

    Parameters
    ----------
    one : callable
        `value -> bytes`; raises SerdeError for a value that would not be read back.
    many : callable
        `list of values -> list of bytes`, in the same order.
    columns : callable
        Of the columns of all fields a binary array; raises SerdeError where it cannot.
    """

    one: Callable[[Any], bytes]
    many: Callable[[list[Any]], list[bytes]]
    columns: Callable[[Mapping[str, pa.Array]], pa.Array] = _no_columns

    @classmethod
    def of(cls, one: Callable[[Any], bytes]) -> SchemaWriter:
        """A writer that writes one after the other."""
        return cls(one, lambda values: [one(value) for value in values])
