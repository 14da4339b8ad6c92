"""`SchemaReader` and `SchemaWriter`: the functions that decode and encode the records of one schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

import pyarrow as pa

from kstreams.errors import SerdeError


class UnreadableSchemaError(SerdeError):
    """The error of a valid record whose schema has a part that the reader's type cannot represent."""


def _no_columns(columns: object) -> NoReturn:
    raise SerdeError("the schema has no columnar form")


class SchemaReader(NamedTuple):
    """Decoder of the records of one writer's schema. The bytes of a record begin with the frame.

    Parameters
    ----------
    one : callable
        `bytes -> value`. Raises SerdeError if the bytes do not decode, or if bytes remain after the value.
    many : callable
        `list of bytes -> list of values`, in the same order. Raises SerdeError if one of them does not decode.
    fields : callable
        `(fields) -> callable`. The callable reads these fields of a binary array without nulls as columns. Raises
        SerdeError if the schema has no columnar form.
    """

    one: Callable[[bytes], Any]
    many: Callable[[list[bytes]], list[Any]]
    fields: Callable[[Sequence[str]], Callable[[pa.Array], dict[str, pa.Array]]] = _no_columns

    @classmethod
    def of(cls, one: Callable[[bytes], Any]) -> SchemaReader:
        """Return a reader that reads values one by one."""
        return cls(one, lambda rows: [one(row) for row in rows])


class SchemaWriter(NamedTuple):
    """Encoder of records with one schema. The bytes of a record begin with the frame.

    Parameters
    ----------
    one : callable
        `value -> bytes`. Raises SerdeError for a value that would not read back equal.
    many : callable
        `list of values -> list of bytes`, in the same order.
    columns : callable
        `columns of all fields -> binary array`. Raises SerdeError if the schema has no columnar form.
    """

    one: Callable[[Any], bytes]
    many: Callable[[list[Any]], list[bytes]]
    columns: Callable[[Mapping[str, pa.Array]], pa.Array] = _no_columns

    @classmethod
    def of(cls, one: Callable[[Any], bytes]) -> SchemaWriter:
        """Return a writer that writes values one by one."""
        return cls(one, lambda values: [one(value) for value in values])
