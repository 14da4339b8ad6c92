"""`SchemaSerde`: the base class of serdes with a schema registry."""

from __future__ import annotations

import logging
from copy import copy
from typing import Any, Self

import pyarrow as pa

from kstreams.errors import RegistryError, RegistryUnavailableError
from kstreams.serdes.base import Serde, SerdeUse, T
from kstreams.serdes.schemas.frame import (
    by_frame,
    first_rows,
    frame_of,
    header_name,
    only_frame,
    with_frames,
    without_frames,
    without_header,
)
from kstreams.serdes.schemas.options import SchemaOptions
from kstreams.serdes.schemas.topic_schemas import NoSchemas, RegistrationPreview, SchemaFormat, Schemas, TopicSchemas

logger = logging.getLogger(__name__)

_FEW = 64  # up to this number of rows, Python is faster than Arrow


class SchemaSerde(SchemaFormat, Serde[T]):
    """Values as bytes that begin with the id of a schema.

    A subclass declares a schema and creates readers and writers of schemas. Before `of_topic`, a serde has no registry
    and can neither read nor write.

    Parameters
    ----------
    options : SchemaOptions
    """

    def __init__(self, options: SchemaOptions) -> None:
        self.options = options
        self._schemas: Schemas = NoSchemas(self)

    def header_length(self, data: bytes) -> int:
        """Return the number of first bytes that belong into the header, if frames are written to headers."""
        return len(frame_of(data))

    # binding to a topic

    def of_topic(self, use: SerdeUse) -> Self:
        bound = copy(self)
        bound._schemas = TopicSchemas(self, use)
        return bound

    def __getstate__(self) -> dict[str, object]:
        """Leave out readers and writers, which are created again from the settings of the topic."""
        return {**vars(self), "_schemas": self._schemas.portable_use()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        use = state["_schemas"]
        self._schemas = NoSchemas(self) if use is None else TopicSchemas(self, use)

    @property
    def asks_registry(self) -> bool:
        return True

    def preview(self) -> RegistrationPreview:
        """Return what would happen to the declared schema at the first write, without registering it."""
        return self._schemas.preview()

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
        only = only_frame(column) if len(rows) > _FEW else None
        if only is not None:
            return self._schemas.reader(only).many(rows)
        places: dict[bytes, list[int]] = by_frame(rows)
        decoded: list[T | None] = [None] * len(rows)
        for frame, of_frame in places.items():
            reader = self._schemas.reader(frame)
            if len(of_frame) == len(rows):
                return reader.many(rows)
            for place, value in zip(of_frame, reader.many([rows[place] for place in of_frame]), strict=True):
                decoded[place] = value
        return decoded

    def missing_schema(self, column: pa.Array) -> tuple[int, RegistryUnavailableError] | None:
        for frame, row in first_rows(column):
            try:
                self._schemas.reader(frame)
            except RegistryUnavailableError as error:
                return row, error
            except RegistryError:
                raise
            except Exception:
                logger.debug("a schema cannot be read: its records are reported when they are decoded", exc_info=True)
        return None

    def framed(self, column: pa.Array, headers: pa.Array | None) -> pa.Array:
        return with_frames(column, headers, header_name(is_key=self._schemas.is_key))

    def unframed(self, column: pa.Array, headers: pa.Array | None) -> tuple[pa.Array, pa.Array | None]:
        name = header_name(is_key=self._schemas.is_key)
        if self._schemas.in_header:
            return without_frames(column, headers, name, self.header_length)
        return column, without_header(headers, name)
