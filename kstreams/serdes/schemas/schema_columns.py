"""`SchemaColumns`: the fields of records with schemas as Arrow columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import pyarrow as pa

from kstreams.errors import SerdeError
from kstreams.serdes.class_fields import FieldType
from kstreams.serdes.schemas.frame import common_frame, rows_by_frame
from kstreams.serdes.schemas.topic_schemas import Schemas


class SchemaColumns:
    """Reader of some fields as columns and writer of all fields. The records may have different schemas.

    Parameters
    ----------
    schemas : Schemas
        The readers and the writer of a topic.
    types : mapping of str to FieldType
        The types of the fields in the class.
    """

    def __init__(self, schemas: Schemas, types: Mapping[str, FieldType]) -> None:
        self._schemas = schemas
        self._types = types
        self._readers: dict[bytes, Callable[[pa.Array], dict[str, pa.Array]]] = {}

    def decode(self, column: pa.Array) -> dict[str, pa.Array]:
        """Return one column per field of a binary array. A null value gives null fields.

        Raises
        ------
        SerdeError
            If a value does not decode or does not fit the class. Decoding the records one by one then finds the value.
        """
        frame = common_frame(column)
        if frame is not None:
            return self._decode_frame(frame, column)
        rows_of_frames = {frame: np.array(rows) for frame, rows in rows_by_frame(column.to_pylist()).items()}
        parts = [self._decode_frame(frame, column.take(pa.array(rows))) for frame, rows in rows_of_frames.items()]
        positions = np.full(len(column), -1)  # the position of each value in the concatenated parts; -1 for null
        row_numbers = [row for rows in rows_of_frames.values() for row in rows]
        positions[row_numbers] = np.arange(len(column) - column.null_count)
        indices = pa.array(positions, mask=positions < 0)
        return {name: self._concatenated(name, parts).take(indices) for name in self._types}

    def encode(self, columns: Mapping[str, pa.Array]) -> pa.Array:
        """Encode the columns of all fields as a binary array.

        Raises
        ------
        SerdeError
            If the columns do not fit the class, or the schema has no columnar form.
        """
        for name, column in columns.items():
            self._require_declared_type(name, column)
        return self._schemas.writer().columns(columns)

    def _decode_frame(self, frame: bytes, column: pa.Array) -> dict[str, pa.Array]:
        read = self._readers.get(frame) or self._new_reader(frame)
        columns = {name: values.cast(self._types[name].type) for name, values in read(column).items()}
        for name, values in columns.items():
            self._require_declared_type(name, values)
        return columns

    def _new_reader(self, frame: bytes) -> Callable[[pa.Array], dict[str, pa.Array]]:
        try:
            read = self._schemas.reader(frame).fields(list(self._types))
        except SerdeError as error:
            read = partial(_refuse, str(error))  # all records of this schema raise the same error
        self._readers[frame] = read
        return read

    def _require_declared_type(self, name: str, column: pa.Array) -> None:
        declared = self._types[name]
        if column.type != declared.type or (column.null_count and not declared.is_optional):
            raise SerdeError(f"the field {name!r} holds values that its class does not allow")

    def _concatenated(self, name: str, parts: list[dict[str, pa.Array]]) -> pa.Array:
        return pa.concat_arrays([part[name] for part in parts]) if parts else pa.array([], self._types[name].type)


def _refuse(reason: str, column: pa.Array) -> dict[str, pa.Array]:
    raise SerdeError(reason)
