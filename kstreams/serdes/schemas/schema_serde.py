"""`SchemaSerde`: the base class of serdes with a schema registry."""

from __future__ import annotations

import logging
from copy import copy
from typing import Any, Self

import pyarrow as pa

from kstreams.errors import RegistryError, RegistryUnavailableError
from kstreams.serdes.base import Serde, SerdeUse, T
from kstreams.serdes.schemas.frame import (
    common_frame,
    first_row_of_frames,
    frame_of,
    header_name,
    rows_by_frame,
    with_frames,
    without_frames,
    without_header,
)
from kstreams.serdes.schemas.options import SchemaOptions
from kstreams.serdes.schemas.topic_schemas import NoSchemas, RegistrationPreview, SchemaFormat, Schemas, TopicSchemas

logger = logging.getLogger(__name__)

_FEW_ROWS = 64  # up to this number, Python is faster than Arrow


class SchemaSerde(SchemaFormat, Serde[T]):
    """Values as bytes that begin with the id of a schema.

    A subclass declares a schema and creates readers and writers. Before `of_topic`, a serde has no registry and can
    neither read nor write.

    Parameters
    ----------
    options : SchemaOptions
    """

    def __init__(self, options: SchemaOptions) -> None:
        self.options = options
        self._schemas: Schemas = NoSchemas(self)

    def header_length(self, data: bytes) -> int:
        """Return the number of first bytes that belong in the header, if frames are written to headers."""
        return len(frame_of(data))

    def of_topic(self, use: SerdeUse) -> Self:
        bound = copy(self)
        bound._schemas = TopicSchemas(self, use)
        return bound

    def __getstate__(self) -> dict[str, object]:
        """Leave out readers and writers. Another process creates them again from the settings of the topic."""
        return {**vars(self), "_schemas": self._schemas.portable_use()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        use = state["_schemas"]
        self._schemas = NoSchemas(self) if use is None else TopicSchemas(self, use)

    @property
    def asks_registry(self) -> bool:
        return True

    def preview(self) -> RegistrationPreview:
        """Return what the first write would do with the declared schema. The schema is not registered."""
        return self._schemas.preview()

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
        frame_of_all = common_frame(column) if len(rows) > _FEW_ROWS else None
        if frame_of_all is not None:
            return self._schemas.reader(frame_of_all).many(rows)
        values: list[T | None] = [None] * len(rows)
        for frame, row_numbers in rows_by_frame(rows).items():
            reader = self._schemas.reader(frame)
            if len(row_numbers) == len(rows):
                return reader.many(rows)
            values_of_frame = reader.many([rows[row] for row in row_numbers])
            for row, value in zip(row_numbers, values_of_frame, strict=True):
                values[row] = value
        return values

    def missing_schema(self, column: pa.Array) -> tuple[int, RegistryUnavailableError] | None:
        for frame, row in first_row_of_frames(column):
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
        if self._schemas.is_in_header:
            return without_frames(column, headers, name, self.header_length)
        return column, without_header(headers, name)
