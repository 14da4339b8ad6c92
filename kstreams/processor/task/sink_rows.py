"""`SinkRows`: buffered records of a sink, as columns of objects; and their encoding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, TypeAlias

import pyarrow as pa

from kstreams.errors import RegistryError, SerdeError
from kstreams.kernel.batch import headers_column
from kstreams.kernel.source_line import operator_at
from kstreams.processor.context.encoded_rows import EncodedRows
from kstreams.processor.context.record_cursor import Origin
from kstreams.processor.topology.nodes import SinkNode
from kstreams.record import Headers
from kstreams.serdes import BytesSerde, Serde
from kstreams.serdes.base import failing_rows

Side: TypeAlias = Literal["key", "value"]

_NOWHERE: Origin = (None, 0, ())


class SinkRows:
    """Consecutive records of one sink. Plain lists, because many small objects slow down the garbage collection."""

    __slots__ = ("headers", "keys", "origins", "reached", "sink", "timestamps", "values")

    def __init__(self, sink: SinkNode) -> None:
        self.sink = sink
        self.keys: list[Any] = []
        self.values: list[Any] = []
        self.timestamps: list[int] = []
        self.headers: dict[int, Origin] = {}  # by row, with the input record of the row
        self.origins: list[Origin] = []  # the input record of every row, if a handler may need it
        self.reached: dict[int, int] = {}  # by row: `CurrentRecord.reached`, if it differs from the timestamp

    def headers_of_rows(self) -> list[Headers]:
        """Return the headers of every row; an empty list if no row has headers."""
        return [self.headers.get(row, _NOWHERE)[2] for row in range(len(self.keys))] if self.headers else []

    def origin(self, row: int) -> Origin:
        """Return the input record of a row, if it is known."""
        return self.origins[row] if self.origins else self.headers.get(row, _NOWHERE)

    def record(self, row: int) -> tuple[object, object, int, Headers]:
        """Return key, value, timestamp and headers of one row."""
        return self.keys[row], self.values[row], self.timestamps[row], self.headers.get(row, _NOWHERE)[2]

    def keep(self, rows: list[int]) -> None:
        """Keep only these rows, each as often as it occurs. The lists and dicts stay the same objects."""
        by_row: tuple[dict[int, Any], ...] = (self.headers, self.reached)
        for values in by_row:
            moved_values = {new: values[old] for new, old in enumerate(rows) if old in values}
            values.clear()
            values.update(moved_values)
        columns: tuple[list[Any], ...] = (self.keys, self.values, self.timestamps, self.origins)
        for column in filter(None, columns):
            column[:] = [column[row] for row in rows]

    def clear(self) -> None:
        """Remove all rows."""
        self.keys.clear()
        self.values.clear()
        self.timestamps.clear()
        self.headers.clear()
        self.origins.clear()
        self.reached.clear()


def encoded(rows: SinkRows, topic: str) -> EncodedRows:
    """Encode rows."""
    return unframed(
        rows.sink,
        EncodedRows(
            _encoded_side(rows, topic, "key", rows.sink.key, rows.keys),
            _encoded_side(rows, topic, "value", rows.sink.value, rows.values),
            pa.array(rows.timestamps, pa.int64()),
            headers_column(rows.headers_of_rows()),
        ),
    )


def unframed(sink: SinkNode, rows: EncodedRows) -> EncodedRows:
    """Move the parts of encoded rows that the serdes of a sink write in headers."""
    keys, headers = (sink.key or BytesSerde()).unframed(rows.keys, rows.headers)
    values, headers = (sink.value or BytesSerde()).unframed(rows.values, headers)
    return rows._replace(keys=keys, values=values, headers=headers)


def _encoded_side(rows: SinkRows, topic: str, side: Side, serde: Serde | None, column: list[Any]) -> pa.Array:
    serde = serde or BytesSerde()
    try:
        return serde.encode_rows(column)
    except RegistryError:
        raise  # not the fault of a record, which a handler must not drop for it
    except Exception as error:
        for _, failure in unencodable(rows, topic, side):
            raise failure from error
        raise SerdeError(f"{rows.sink.name} cannot encode the {side}s for topic {topic}: {error}") from error


def unencodable(rows: SinkRows, topic: str, side: Side) -> Iterator[tuple[int, SerdeError]]:
    """Yield the rows whose key or value does not encode, with the error."""
    serde, column = (rows.sink.key, rows.keys) if side == "key" else (rows.sink.value, rows.values)
    sink = operator_at(rows.sink.name, rows.sink.declared_at)
    for row, cause in failing_rows((serde or BytesSerde()).encode_rows, column):
        yield (
            row,
            SerdeError(
                f"{sink} cannot write {described(rows, row)} to topic {topic}: "
                f"{serde or BytesSerde()} does not take its {side}, a {type(column[row]).__name__}: {cause}. "
                f"Declare the right type with {side}=."
            ),
        )


def unwritable(rows: SinkRows) -> Iterator[tuple[int, str]]:
    """Yield the rows that no topic can hold, with the reason."""
    for row, cause in failing_rows(lambda times: pa.array(times, pa.int64()), rows.timestamps):
        yield row, f"has a time that does not fit into 64 bits ({cause}): times are milliseconds since 1970."
    for row, cause in failing_rows(headers_column, rows.headers_of_rows()):
        yield row, f"has headers that cannot be written ({cause}): a header is a text and bytes or None."


def described(rows: SinkRows, row: int) -> str:
    """Describe a row for an error message."""
    key = shown(rows.keys[row])
    value = shown(rows.values[row])
    return f"the record with key {key}, value {value} and timestamp {rows.timestamps[row]}"


def shown(value: object) -> str:
    """Return the `repr` of a value, in at most 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
