"""`Serde`: how values of one type become bytes and Arrow columns."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

import pyarrow as pa

from kstreams.errors import RegistryUnavailableError, SerdeError

if TYPE_CHECKING:
    from kstreams.config import Config
    from kstreams.schemas import SchemaRegistry
from collections.abc import Iterator

from kstreams.errors import RegistryError


def failing_rows(convert: Callable[[Any], Any], rows: Any, first: int = 0) -> Iterator[tuple[int, Exception]]:
    """The places of the rows that fail by themselves, and why; found by halves, since mostly they are few.

    Parameters
    ----------
    convert : callable
        `decode_rows` or `encode_rows` of a serde.
    rows : sequence or pyarrow array
    first : int
        The place of the first one.

    Examples
    --------
    >>> [(row, str(error)) for row, error in failing_rows(lambda rows: [1 // row for row in rows], [1, 0, 2, 0])]
    [(1, 'integer division or modulo by zero'), (3, 'integer division or modulo by zero')]
    """
    try:
        convert(rows)
    except RegistryError:
        raise  # says nothing about a row
    except Exception as cause:
        half = len(rows) // 2
        if not half:
            yield first, cause
            return
        yield from failing_rows(convert, rows[:half], first)
        yield from failing_rows(convert, rows[half:], first + half)


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SerdeUse:
    """What a serde is used for.

    Parameters
    ----------
    topic : str
        The topic whose records it reads or writes; of a store its changelog topic.
    is_key : bool
        Whether it is for keys, not for values.
    config : Config
        The configuration of the application.
    registry : callable
        `() -> SchemaRegistry`: the one that the configuration names; the same one for all serdes of an application.
    """

    topic: str
    is_key: bool
    config: Config
    registry: Callable[[], SchemaRegistry]


class FieldColumns(Protocol):
    """Reads fields of values into Arrow columns."""

    def decode(self, column: pa.Array) -> dict[str, pa.Array]:
        """The fields of the values of a binary array, by name; null where the value is null.

        Raises
        ------
        SerdeError
            When a value does not decode; which one, the record path tells.
        """
        ...


FieldWriter: TypeAlias = "Callable[[Mapping[str, pa.Array]], pa.Array]"
"""Makes a binary array of columns; raises SerdeError where columns cannot say what objects would be written as."""


class Serde(Generic[T]):
    """Turns values into bytes and back; `None` never reaches it (null stays null).

    A subclass needs `serialize` and `deserialize`. The other methods work on many values at once and are
    overridden where columns are faster than rows.

    Examples
    --------
    >>> from kstreams.serdes import IntSerde
    >>> IntSerde().serialize(7)
    b'\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x07'
    """

    type: Any = None
    """The Python type it stands for, where there is one."""

    arrow_type: pa.DataType | None = None
    """The Arrow type of its columns; None when it has no columnar form."""

    def serialize(self, value: T) -> bytes:
        """Bytes of one value; raises SerdeError when the value does not fit."""
        raise NotImplementedError

    def deserialize(self, data: bytes) -> T:
        """The value of bytes; raises SerdeError when they do not decode."""
        raise NotImplementedError

    def of_topic(self, use: SerdeUse) -> Serde[T]:
        """The serde for the keys or values of one topic; itself, unless it asks a schema registry.

        Kafka Streams: `configure(configs, isKey)` and the topic that its methods are given.
        """
        return self

    @property
    def asks_registry(self) -> bool:
        """Whether it, or a serde within it, needs a schema registry."""
        return False

    def missing_schema(self, column: pa.Array) -> tuple[int, RegistryUnavailableError] | None:
        """Fetch all schemas that values name; if the registry is away, the first row without one and the error.

        Parameters
        ----------
        column : pyarrow binary array, length n
            As `framed` gives it.
        """
        return None

    def framed(self, column: pa.Array, headers: pa.Array | None) -> pa.Array:
        """The bytes of records as `decode_rows` takes them.

        A serde that writes a part of them in the headers of a record puts it in front again.

        Parameters
        ----------
        column : pyarrow binary array, length n
            Keys or values as they lie in a topic.
        headers : pyarrow list<struct<name, value>> array, length n, or None
        """
        return column

    def unframed(self, column: pa.Array, headers: pa.Array | None) -> tuple[pa.Array, pa.Array | None]:
        """What is written of bytes that `encode_rows` gave, and the headers beside it; `framed` puts both together."""
        return column, headers

    def encode_rows(self, values: list[T | None]) -> pa.Array:
        """Many values, as an Arrow binary array."""
        serialize = self.serialize
        return pa.array([None if v is None else serialize(v) for v in values], pa.binary())

    def decode_rows(self, column: pa.Array) -> list[T | None]:
        """The values of an Arrow binary array."""
        deserialize = self.deserialize
        return [None if v is None else deserialize(v) for v in column.to_pylist()]

    def decode_column(self, column: pa.Array) -> pa.Array:
        """A binary array as one of `arrow_type`; raises SerdeError or ArrowException when bytes do not decode."""
        return pa.array(self.decode_rows(column), self.arrow_type)

    def encode_column(self, column: pa.Array) -> pa.Array:
        """An Arrow array of `arrow_type` as a binary one: the bytes that `serialize` gives for each value."""
        return self.encode_rows(column.to_pylist())

    def field_columns(self, fields: Sequence[str]) -> FieldColumns:
        """What reads fields of values into Arrow columns, and nothing else of them.

        Raises
        ------
        SerdeError
            When they have no columnar form; says why.
        """
        raise SerdeError(f"{self!r} has no fields that columns can read")

    def field_writer(self, kind: Any, fields: Sequence[str]) -> FieldWriter | None:
        """What writes objects of a kind of the columns of their fields; None where objects have to be made.

        Parameters
        ----------
        kind : type or None
            What they are objects of; None: dicts.
        fields : sequence of str
        """
        return None

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def of_topic_within(serde: Serde[Any], attribute: str, use: SerdeUse) -> Any:
    """A serde that holds another one under an attribute, with that one for a topic."""
    inner: Serde[Any] = getattr(serde, attribute)
    bound = inner.of_topic(use)
    if bound is inner:
        return serde
    made = copy(serde)
    setattr(made, attribute, bound)
    return made


def without_none(kind: Any) -> Any:
    """`T` of `T | None`; any other type as it is.

    Examples
    --------
    >>> without_none(int | None)
    <class 'int'>
    """
    if typing.get_origin(kind) not in {types.UnionType, typing.Union}:
        return kind
    kinds = [member for member in typing.get_args(kind) if member is not type(None)]
    return kinds[0] if len(kinds) == 1 else kind


def decode_error(what: str, data: bytes, cause: object) -> SerdeError:
    """The error for bytes that are not a `what`."""
    shown = data[:40]
    return SerdeError(f"{shown!r}{'…' if len(data) > 40 else ''} is not {what}: {cause}")
