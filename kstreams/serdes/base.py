"""`Serde`: the conversion of values of one type to bytes and to Arrow columns, and back."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias

import pyarrow as pa

from kstreams.errors import RegistryError, RegistryUnavailableError, SerdeError

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from kstreams.config import Config
    from kstreams.schemas import SchemaRegistry

    T = TypeVar("T", default=Any)  # a `Serde` without a type argument is a serde of any type
else:
    from typing import TypeVar

    T = TypeVar("T")


def failing_rows(convert: Callable[[Any], Any], rows: Any, first: int = 0) -> Iterator[tuple[int, Exception]]:
    """Yield the number and the error of each row that fails on its own. Bisection is fast, since most rows are valid.

    Parameters
    ----------
    convert : callable
        `decode_rows` or `encode_rows` of a serde.
    rows : sequence or pyarrow array
    first : int
        The number of the first row.

    Examples
    --------
    >>> [(row, str(error)) for row, error in failing_rows(lambda rows: [1 // row for row in rows], [1, 0, 2, 0])]
    [(1, 'integer division or modulo by zero'), (3, 'integer division or modulo by zero')]
    """
    try:
        convert(rows)
    except RegistryError:
        raise  # no single row is the cause
    except Exception as cause:
        half = len(rows) // 2
        if not half:
            yield first, cause
            return
        yield from failing_rows(convert, rows[:half], first)
        yield from failing_rows(convert, rows[half:], first + half)


@dataclass(frozen=True, slots=True)
class SerdeUse:
    """The topic, the role and the configuration for which a serde is used.

    Parameters
    ----------
    topic : str
        The topic whose records the serde reads or writes. For a store: its changelog topic.
    is_key : bool
        True for keys, False for values.
    config : Config
        The configuration of the application.
    registry : callable
        `() -> SchemaRegistry`: the registry of the configuration. All serdes of an application share it.
    """

    topic: str
    is_key: bool
    config: Config
    registry: Callable[[], SchemaRegistry]


class FieldColumns(Protocol):
    """Reader of single fields of encoded values into Arrow columns."""

    def decode(self, column: pa.Array) -> dict[str, pa.Array]:
        """Return one column per field, by name. A null value gives null fields.

        Raises
        ------
        SerdeError
            If a value does not decode. Decoding the records one by one then finds the value.
        """
        ...


FieldWriter: TypeAlias = "Callable[[Mapping[str, pa.Array]], pa.Array]"
"""Encodes columns as a binary array. Raises SerdeError if `serialize` could return other bytes for the objects."""


class Serde(Generic[T]):
    """Conversion of values to bytes and back. `None` is never passed to a serde: null stays null.

    A subclass defines `serialize` and `deserialize`. The other methods convert many values at once. A subclass
    overrides them where columns are faster than rows.

    Examples
    --------
    >>> from kstreams.serdes import IntSerde
    >>> IntSerde().serialize(7)
    b'\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x07'
    """

    type: Any = None
    """The Python type of the values, or None if it is not known."""

    arrow_type: pa.DataType | None = None
    """The Arrow type of columns of the values, or None if there is no columnar form."""

    def serialize(self, value: T) -> bytes:
        """Return the bytes of one value. Raises SerdeError if the value does not fit the type."""
        raise NotImplementedError

    def deserialize(self, data: bytes) -> T:
        """Return the value of some bytes. Raises SerdeError if they do not decode."""
        raise NotImplementedError

    def of_topic(self, use: SerdeUse) -> Serde[T]:
        """Return the serde for the keys or values of one topic: the same object, unless it needs a schema registry.

        Kafka Streams: `configure(configs, isKey)`, and the topic argument of `serialize` and `deserialize`.
        """
        return self

    @property
    def asks_registry(self) -> bool:
        """True if this serde, or a serde inside it, needs a schema registry."""
        return False

    def missing_schema(self, column: pa.Array) -> tuple[int, RegistryUnavailableError] | None:
        """Fetch the schemas of all values. If the registry is unavailable, return the first row that lacks a schema.

        The error of the registry is returned with the row.

        Parameters
        ----------
        column : pyarrow binary array, length n
            The result of `framed`.
        """
        return None

    def framed(self, column: pa.Array, headers: pa.Array | None) -> pa.Array:
        """Return the bytes in the form that `decode_rows` takes.

        A serde that writes a part of the bytes into record headers puts this part before the other bytes again.

        Parameters
        ----------
        column : pyarrow binary array, length n
            Keys or values as they are stored in the topic.
        headers : pyarrow list<struct<name, value>> array, length n, or None
        """
        return column

    def unframed(self, column: pa.Array, headers: pa.Array | None) -> tuple[pa.Array, pa.Array | None]:
        """Split the result of `encode_rows` into the bytes and the headers of the records: the inverse of `framed`."""
        return column, headers

    def encode_rows(self, values: list[T | None]) -> pa.Array:
        """Return the bytes of many values as a binary array."""
        serialize = self.serialize
        return pa.array([None if v is None else serialize(v) for v in values], pa.binary())

    def decode_rows(self, column: pa.Array) -> list[T | None]:
        """Return the values of a binary array."""
        deserialize = self.deserialize
        return [None if v is None else deserialize(v) for v in column.to_pylist()]

    def decode_column(self, column: pa.Array) -> pa.Array:
        """Decode a binary array to `arrow_type`. Raises SerdeError or ArrowException if a value does not decode."""
        return pa.array(self.decode_rows(column), self.arrow_type)

    def encode_column(self, column: pa.Array) -> pa.Array:
        """Encode an array of `arrow_type`. The bytes are those that `serialize` returns for each value."""
        return self.encode_rows(column.to_pylist())

    def field_columns(self, fields: Sequence[str]) -> FieldColumns:
        """Return a reader of some fields only.

        Raises
        ------
        SerdeError
            If the fields have no columnar form. The message has the reason.
        """
        raise SerdeError(f"{self!r} has no fields that can be read as columns")

    def field_writer(self, kind: object, fields: Sequence[str]) -> FieldWriter | None:
        """Return an encoder of objects from the columns of their fields, or None if the objects have to be created.

        Parameters
        ----------
        kind : type or None
            The class of the objects. None for dicts.
        fields : sequence of str
        """
        return None

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


S = TypeVar("S", bound=Serde[Any])


def of_topic_within(serde: S, attribute: str, use: SerdeUse) -> S:
    """Return a copy of `serde` whose inner serde, at `attribute`, is bound to a topic."""
    inner: Serde = getattr(serde, attribute)
    bound = inner.of_topic(use)
    if bound is inner:
        return serde
    bound_copy = copy(serde)
    setattr(bound_copy, attribute, bound)
    return bound_copy


def without_none(kind: object) -> object:
    """Return `T` for `T | None`, and any other type unchanged.

    Examples
    --------
    >>> without_none(int | None)
    <class 'int'>
    """
    if typing.get_origin(kind) not in {types.UnionType, typing.Union}:
        return kind
    kinds = [member for member in typing.get_args(kind) if member is not type(None)]
    return kinds[0] if len(kinds) == 1 else kind


def decode_error(description: str, data: bytes, cause: object) -> SerdeError:
    """Return the error for bytes that do not decode.

    Parameters
    ----------
    description : str
        The expected content, with an article: "a boolean".
    data : bytes
    cause : object
        The reason. It stands at the end of the message.
    """
    prefix = data[:40]
    return SerdeError(f"{prefix!r}{'…' if len(data) > 40 else ''} is not {description}: {cause}")
