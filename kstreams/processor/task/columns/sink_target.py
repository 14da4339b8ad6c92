"""`SinkTarget`: writes the columns of a region to a topic."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from kstreams.expressions import Operation
from kstreams.expressions.exactness import Inexact
from kstreams.processor.columns.evaluation import is_struct
from kstreams.processor.columns.projected_rows import ProjectedRows
from kstreams.processor.columns.selected_rows import SelectedRows
from kstreams.processor.columns.target import Target
from kstreams.processor.context.current_record import CurrentRecord
from kstreams.processor.context.encoded_rows import EncodedRows
from kstreams.processor.task.outputs import OutputBuffers
from kstreams.processor.task.sink_rows import unframed
from kstreams.processor.topology.nodes import SinkNode, SourceNode
from kstreams.serdes import BytesSerde, Serde


class SinkTarget:
    """The end of a path through a region at a sink.

    Parameters
    ----------
    target : Target
        The columns that arrive at the sink.
    source : SourceNode
        The source of the region.
    outputs : OutputBuffers
    current : CurrentRecord
        The current record of the task.
    """

    takes_headers = True

    def __init__(self, target: Target, source: SourceNode, outputs: OutputBuffers, current: CurrentRecord) -> None:
        sink = target.node
        assert isinstance(sink, SinkNode)
        self._sink = sink
        self._view = target.view
        self._outputs = outputs
        self._current = current
        self._merges = outputs.merges(str(sink.topic))
        self._key = sink.key or BytesSerde()
        self._value = sink.value or BytesSerde()
        self._is_opaque = (source.value or BytesSerde()).arrow_type is None
        self._rows = ProjectedRows(self._view, source)
        self._write_fields = None
        if is_struct(self._view.value):
            self._write_fields = self._value.field_writer(self._view.value_class, self._view.value.detail)

    def prepare(self, selected: SelectedRows) -> Callable[[], None]:
        """Encode the arriving columns; the returned function hands them over. Raises if a value does not encode."""
        topic = str(self._sink.topic)
        columns = unframed(
            self._sink,
            EncodedRows(self._keys(selected), self._values(selected), selected.of_timestamps(), selected.headers()),
        )
        if not self._outputs.accepts_columns(topic, columns):
            raise Inexact("a record that its topic refuses")
        reached = selected.reached(self._current.reached) if self._merges else None
        return lambda: self._outputs.send_columns(topic, columns, reached)

    def complete(self) -> None:
        """Do nothing: no rows are buffered."""

    def _keys(self, selected: SelectedRows) -> pa.Array:
        if is_struct(self._view.key):
            return self._key.encode_rows(self._rows.keys(selected))
        return _encoded(self._key, selected.of(self._view.key))

    def _values(self, selected: SelectedRows) -> pa.Array:
        if self._write_fields is not None:
            fields = zip(self._view.value.detail, self._view.value.inputs, strict=True)
            return self._write_fields({name: selected.of(part) for name, part in fields})
        if is_struct(self._view.value) or (self._view.value.operation is Operation.VALUE and self._is_opaque):
            return self._value.encode_rows(self._rows.values(selected))
        return _encoded(self._value, selected.of(self._view.value))


def _encoded(serde: Serde, column: pa.Array) -> pa.Array:
    if column.type == serde.arrow_type:
        return serde.encode_column(column)
    return serde.encode_rows(column.to_pylist())
