"""`SinkTarget`: where a region writes to a topic, columns in and columns out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from kstreams.errors import SerdeError
from kstreams.expressions import Operation
from kstreams.processor.columns.evaluation import columns_needed
from kstreams.processor.columns.plan import Target
from kstreams.processor.columns.selection import Selected
from kstreams.processor.nodes import Sink, Source
from kstreams.processor.outputs import Outputs
from kstreams.serdes import BytesSerde, Serde


class SinkTarget:
    """One way through a region to a sink.

    Parameters
    ----------
    target : Target
        What arrives at the sink.
    source : Source
        Where the records come from.
    outputs : Outputs
        Of the task.
    """

    takes_headers = True

    def __init__(self, target: Target, source: Source, outputs: Outputs) -> None:
        sink = target.node
        assert isinstance(sink, Sink)
        self._sink, self._view, self._outputs = sink, target.view, outputs
        self._key, self._value = sink.key or BytesSerde(), sink.value or BytesSerde()
        self._source_value = source.value or BytesSerde()
        self._parts = columns_needed(self._view.value)
        self._make: Any = self._view.result or dict

    def prepare(self, selected: Selected) -> Callable[[], None]:
        """Encode what arrives; the answer hands it over. Raises when something does not encode."""
        keys = _encoded(self._key, selected.of(self._view.key))
        values, topic = self._values(selected), str(self._sink.topic)
        timestamps, headers = selected.of_timestamps(), selected.headers()
        return lambda: self._outputs.send_columns(topic, keys, values, timestamps, headers)

    def settle(self) -> None:
        """Nothing is held back."""

    def _values(self, selected: Selected) -> pa.Array:
        if self._view.value.operation is Operation.STRUCT:
            return self._value.encode_rows(self._built(selected))
        column = selected.of(self._parts[0])
        if self._view.value.operation is Operation.VALUE and self._source_value.arrow_type is None:
            return self._value.encode_rows(self._source_value.decode_rows(column))
        return _encoded(self._value, column)

    def _built(self, selected: Selected) -> list[Any]:
        try:
            return self._rows(selected)
        except Exception as error:
            raise SerdeError(f"{self._make!r} cannot be built: {error}") from error

    def _rows(self, selected: Selected) -> list[Any]:
        columns = [selected.of(part).to_pylist() for part in self._parts]
        names, make = self._view.value.detail, self._make
        if getattr(make, "__struct_fields__", None) == names and not make.__struct_config__.kw_only:
            return list(map(make, *columns))
        return [make(**dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)]


def _encoded(serde: Serde[Any], column: pa.Array) -> pa.Array:
    if column.type == serde.arrow_type:
        return serde.encode_column(column)
    return serde.encode_rows(column.to_pylist())
