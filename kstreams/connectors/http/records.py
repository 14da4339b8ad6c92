"""`RecordFormat`: bodies of HTTP messages as records: JSON, lines of JSON, or bytes as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import msgspec
import pyarrow as pa

from kstreams.connectors.api import Position, SourceBatch, UnreadableRow
from kstreams.connectors.columns import ValueColumns
from kstreams.connectors.source_columns import without_rows
from kstreams.errors import ConnectorError, SerdeError
from kstreams.expressions.types import fields_of
from kstreams.kernel.decoders import decode_json
from kstreams.serdes.base import failing_rows
from kstreams.serdes.of_type import json_serde

BodyFormat: TypeAlias = Literal["json", "lines", "raw"]
"""`json`: an array of records, or one record. `lines`: a record a line. `raw`: the whole body is one record."""

_RAW_TYPES = {str: pa.string(), bytes: pa.binary()}
_ADVICE = "declare value=bytes to take every record as it is, and decode it in the stream, where errors have handlers"


@dataclass(frozen=True, slots=True)
class RecordFormat:
    """How bodies become records.

    Parameters
    ----------
    value : type
        The type of values. With `bytes` and `str`, a record is its text.
    body : {"json", "lines", "raw"}
    path : str
        For JSON: the fields, joined by dots, that lead to the records. Empty if the body itself holds them.
    key, timestamp : str
        The fields of keys and of event times. Empty for none.

    Examples
    --------
    >>> format = RecordFormat(dict, "json", path="data.trades", key="symbol")
    >>> rows = format.rows(b'{"data": {"trades": [{"symbol": "A", "price": 1.5}]}}')
    >>> batch = format.batch(rows, position=1)
    >>> batch.keys.to_pylist(), batch.values.to_pylist()
    (['A'], [b'{"symbol": "A", "price": 1.5}'])
    """

    value: Any
    body: BodyFormat
    path: str = ""
    key: str = ""
    timestamp: str = ""

    @property
    def key_type(self) -> Any:
        """The type of keys: that of their field. The keys of dicts are text."""
        if not self.key:
            return bytes
        fields = fields_of(self.value)
        if fields is None:
            return str
        if self.key not in fields:
            raise ConnectorError(
                f"{self.value.__name__} has no field {self.key!r} for keys; it has {', '.join(fields)}"
            )
        return fields[self.key]

    def rows(self, body: bytes) -> list[bytes]:
        """Return the text of each record in a body.

        Raises
        ------
        ConnectorError
            If the body is no JSON, or has no such path.
        """
        if self.body == "raw":
            return [body]
        if self.body == "lines":
            return [line for line in body.splitlines() if line.strip()]
        records = text_at(body, self.path)
        if records[:1] != b"[":
            return [records]
        return [bytes(record) for record in _decoded(records, list[msgspec.Raw])]

    def batch(self, rows: Sequence[bytes], position: Position) -> SourceBatch:
        """Return records as columns, and apart those that do not fit the type of values.

        Raises
        ------
        ConnectorError
            If the type has no such field for keys or event times.
        """
        self._require_fields()
        texts = pa.array(rows, pa.binary())
        try:
            return self._converted(texts, position)
        except (SerdeError, pa.ArrowException, ConnectorError):
            errors = dict(failing_rows(lambda part: self._converted(part, position), texts))
            unreadable = [UnreadableRow(rows[number], position, self._misfit(errors[number])) for number in errors]
            return replace(self._converted(without_rows(texts, errors), position), unreadable=unreadable)

    def _require_fields(self) -> None:
        fields = fields_of(self.value)
        for name in filter(None, (self.key, self.timestamp)):
            if fields is not None and name not in fields:
                raise ConnectorError(
                    f"the type of values has no field {name!r}, which is declared for keys or event times"
                )

    def _misfit(self, error: Exception) -> Exception:
        """Return an error with the type that a record does not fit."""
        if isinstance(error, ConnectorError):
            return error
        return ConnectorError(
            f"a record does not fit {getattr(self.value, '__name__', self.value)}: {error}; {_ADVICE}"
        )

    def _converted(self, texts: pa.Array, position: Position) -> SourceBatch:
        if self.body == "raw" or self.value is bytes:
            return SourceBatch(values=texts.cast(_RAW_TYPES.get(self.value, pa.binary())), position=position)
        columns = ValueColumns(json_serde(self.value))
        if columns.type is None:
            return self._untyped(texts, position)
        values = columns.decode(texts)
        return SourceBatch(
            values=values,
            position=position,
            keys=values.field(self.key) if self.key else None,
            timestamps=_times(values.field(self.timestamp)) if self.timestamp else None,
        )

    def _untyped(self, texts: pa.Array, position: Position) -> SourceBatch:
        """Return rows of any form as JSON. Keys are text: a key that is a number or the like is written as text."""
        rows = json_serde(self.value).decode_rows(texts)
        keys = [None if key is None else str(key) for key in _field(rows, self.key)] if self.key else None
        return SourceBatch(
            values=texts,
            position=position,
            keys=None if keys is None else pa.array(keys, pa.string()),
            timestamps=_times(pa.array(_field(rows, self.timestamp))) if self.timestamp else None,
        )


def body_format(value: object) -> BodyFormat:
    """Return the usual format for a type of values.

    Examples
    --------
    >>> body_format(bytes), body_format(dict)
    ('raw', 'json')
    """
    return "raw" if value in (bytes, str) else "json"


def text_at(body: bytes, path: str) -> bytes:
    """Return the JSON text of a field of a document. `path` joins the names of fields by dots.

    Examples
    --------
    >>> text_at(b'{"paging": {"next": "/2"}}', "paging.next")
    b'"/2"'
    """
    text = body.strip()
    for name in filter(None, path.split(".")):
        fields = _decoded(text, dict[str, msgspec.Raw])
        if name not in fields:
            raise ConnectorError(f"the response has no field {path!r}: it has {', '.join(fields) or 'none'}")
        text = bytes(fields[name])
    return text


def _decoded(text: bytes, kind: object) -> Any:
    try:
        return decode_json(text, kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConnectorError(f"{text[:40]!r} is not the JSON that was expected: {error}; {_ADVICE}") from error


def _field(rows: Sequence[Any], name: str) -> list[Any]:
    try:
        return [row[name] for row in rows]
    except (KeyError, TypeError):
        raise ConnectorError(f"a record has no field {name!r}, which is declared for keys or event times") from None


def _times(times: pa.Array) -> pa.Array:
    """Return event times: milliseconds, datetimes, or text in ISO 8601."""
    try:
        return times.cast(pa.timestamp("us", "UTC")) if pa.types.is_string(times.type) else times
    except pa.ArrowException as error:
        raise ConnectorError(f"an event time is no time with a zone in ISO 8601: {error}") from error
