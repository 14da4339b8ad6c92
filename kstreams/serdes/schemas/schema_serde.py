"""`SchemaSerde`: what the formats with a schema registry have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from typing import ClassVar, Self, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from kstreams.schemas import RegisteredSchema, Schema, SchemaReference, SchemaRegistry, SchemaType
from kstreams.schemas.compatibility.rules import incompatibilities, resolved_by
from kstreams.serdes.base import Serde, SerdeUse
from kstreams.serdes.schemas.codecs import Reader, Writer
from kstreams.serdes.schemas.frame import by_frame, frame_of
from kstreams.serdes.schemas.options import SchemaOptions
from kstreams.serdes.schemas.record_headers import header_name, with_frames, without_frames, without_header
from kstreams.serdes.schemas.topic_schemas import NoSchemas, Schemas, TopicSchemas

T = TypeVar("T")

_FEW = 64  # rows of which Arrow is not faster than Python


class SchemaSerde(Serde[T]):
    """Bytes that begin with the id of a schema in a registry.

    A subclass says what its schema is, and makes readers and writers of schemas. It reads and writes nothing before
    `of_topic` has told it of a registry.

    Parameters
    ----------
    options : SchemaOptions
    """

    schema_type: ClassVar[SchemaType]

    def __init__(self, options: SchemaOptions) -> None:
        self.options = options
        self._schemas: Schemas = NoSchemas(self)

    # what a format adds

    @abstractmethod
    def declared_schema(self) -> Schema | None:
        """The schema of what it writes; None where none was declared."""

    def imported(self, registry: SchemaRegistry, *, register: bool) -> tuple[SchemaReference, ...]:
        """References to schemas that the declared one imports; with `register` they are registered before it."""
        return ()

    @abstractmethod
    def record_name(self, schema: Schema) -> str:
        """The full name of the record of a schema, by which subjects may go."""

    @abstractmethod
    def reader_of(self, written: RegisteredSchema, registry: SchemaRegistry, start: int) -> Reader:
        """What reads bytes of a schema; the first `start` of them are the frame.

        Raises
        ------
        SerdeError
            When nothing of this schema can be read as what the serde declares.
        """

    @abstractmethod
    def writer_of(self, registered: RegisteredSchema, registry: SchemaRegistry, frame: bytes) -> Writer:
        """What writes with a schema, `frame` in front."""

    def unreadable(self, latest: RegisteredSchema, declared: Schema, registry: SchemaRegistry) -> Sequence[str]:
        """Why a schema cannot read what was written with the declared one, in words."""
        reasons = incompatibilities(resolved_by(registry, latest.schema), resolved_by(registry, declared))
        return list(map(str, reasons))

    def header_length(self, data: bytes) -> int:
        """How many of some bytes belong into the header when the frame is there."""
        return len(frame_of(data))

    # what it is used for

    def of_topic(self, use: SerdeUse) -> Self:
        bound = copy(self)
        bound._schemas = TopicSchemas(self, use)
        return bound

    @property
    def asks_registry(self) -> bool:
        return True

    # bytes

    def serialize(self, value: T) -> bytes:
        return self._schemas.writer().one(value)

    def deserialize(self, data: bytes) -> T:
        value: T = self._schemas.reader(frame_of(data)).one(data)
        return value

    def encode_rows(self, values: list[T | None]) -> pa.Array:
        present = [value for value in values if value is not None]
        rows = iter(self._schemas.writer().many(present) if present else ())
        if len(present) == len(values):
            return pa.array(list(rows), pa.binary())
        return pa.array([None if value is None else next(rows) for value in values], pa.binary())

    def decode_rows(self, column: pa.Array) -> list[T | None]:
        rows = column.to_pylist()
        if len(rows) > _FEW and not column.null_count and _begin_alike(column, frame_of(rows[0])):
            return self._schemas.reader(frame_of(rows[0])).many(rows)
        places: dict[bytes, list[int]] = by_frame(rows)
        decoded: list[T | None] = [None] * len(rows)
        for frame, of_frame in places.items():
            reader = self._schemas.reader(frame)
            if len(of_frame) == len(rows):
                return reader.many(rows)
            for place, value in zip(of_frame, reader.many([rows[place] for place in of_frame]), strict=True):
                decoded[place] = value
        return decoded

    def framed(self, column: pa.Array, headers: pa.Array | None) -> pa.Array:
        return with_frames(column, headers, header_name(is_key=self._schemas.is_key))

    def unframed(self, column: pa.Array, headers: pa.Array | None) -> tuple[pa.Array, pa.Array | None]:
        name = header_name(is_key=self._schemas.is_key)
        if self._schemas.in_header:
            return without_frames(column, headers, name, self.header_length)
        return column, without_header(headers, name)


def _begin_alike(column: pa.Array, frame: bytes) -> bool:
    """Whether all values of a binary array begin with a frame."""
    return bool(pc.all(pc.starts_with(column, pattern=frame)).as_py())
