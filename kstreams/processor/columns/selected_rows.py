"""`SelectedRows`: the rows of a batch that pass the filters of one path through a region.

`ProjectedRows` are their keys and values as objects, which leave the region, equal to those of the record path.
"""

from __future__ import annotations

import inspect
from typing import Any

import pyarrow as pa

from kstreams.errors import SerdeError
from kstreams.expressions import Expr, Operation
from kstreams.kernel.batch import Batch, Integers, rows_of_headers
from kstreams.kernel.timestamps import stream_times
from kstreams.processor.columns.projection import SourceProjection
from kstreams.processor.columns.source_columns import Columns, is_struct
from kstreams.processor.topology.nodes import SourceNode
from kstreams.record import Headers
from kstreams.serdes import BytesSerde


class SelectedRows:
    """The columns of a batch, filtered when they are read.

    Parameters
    ----------
    batch : Batch
        The unfiltered records.
    columns : dict
        The computed columns of the batch.
    where : Expr or None
        The expression whose column selects the rows; None selects all rows.
    """

    __slots__ = ("_columns", "_mask", "batch")

    def __init__(self, batch: Batch, columns: Columns, where: Expr | None) -> None:
        self.batch = batch
        self._columns = columns
        self._mask: pa.Array | None = None
        if where is not None:
            self._mask = columns[repr(where)].fill_null(False)

    def __len__(self) -> int:
        return len(self.batch) if self._mask is None else self._mask.true_count

    def of(self, expr: Expr) -> pa.Array:
        """Return the values of an expression; a literal has one value for every row."""
        return self._selected_column(self._columns[repr(expr)])

    def of_timestamps(self) -> pa.Array:
        """Return the event times in milliseconds."""
        return self._selected_column(self.batch.timestamps)

    def times(self) -> Integers:
        """Return the event times in milliseconds as a numpy array."""
        times: Integers = self.of_timestamps().to_numpy()
        return times

    def stream_times(self, before: int) -> Integers:
        """Return the stream time (ms) at each row; it is `before` at the start, and filtered rows advance it too."""
        return self._selected(stream_times(self.batch.timestamps.to_numpy(), before))

    def reached(self, before: int) -> Integers:
        """Return the progress of the task at each row (`CurrentRecord.reached`); it is `before` at the start."""
        return self._selected(stream_times(self.batch.places, before))

    def ranks(self) -> Integers | None:
        """Return the rank of each row (`Batch.ranks`); None if the records have none."""
        return None if self.batch.ranks is None else self._selected(self.batch.ranks)

    def headers(self) -> pa.Array | None:
        """Return the headers; None if no record of the batch has any."""
        return None if self.batch.headers is None else self._selected_column(self.batch.headers)

    def header_rows(self) -> list[Headers] | None:
        """Return the headers as tuples; None if no record of the batch has any."""
        headers = self.headers()
        return None if headers is None else rows_of_headers(headers)

    def offsets(self) -> Integers:
        """Return the offset of each row."""
        return self._selected(self.batch.offsets)

    def raw_keys(self) -> pa.Array:
        """Return the serialized keys."""
        return self._selected_column(self.batch.keys)

    def raw_values(self) -> pa.Array:
        """Return the serialized values."""
        return self._selected_column(self.batch.values)

    def _selected(self, numbers: Integers) -> Integers:
        return numbers if self._mask is None else numbers[self._mask.to_numpy(zero_copy_only=False)]

    def _selected_column(self, column: pa.Array) -> pa.Array:
        return column if self._mask is None else column.filter(self._mask)


class _Structs:
    """The constructor of the objects of a `ks.struct`.

    Parameters
    ----------
    struct : Expr
    cls : type or None
        The class of the objects; None builds dicts.
    """

    def __init__(self, struct: Expr, cls: Any) -> None:
        self._parts = struct.inputs
        self._names = struct.detail
        self._class = cls or dict
        self._by_position = _positional(self._class) == self._names

    def built(self, selected: SelectedRows) -> list[object]:
        """Return the object of every row. Raises SerdeError if the class refuses its fields."""
        try:
            return self._objects([selected.of(part).to_pylist() for part in self._parts])
        except Exception as error:
            raise SerdeError(f"{self._class!r} cannot be built: {error}") from error

    def _objects(self, columns: list[list[Any]]) -> list[object]:
        if self._by_position:
            return list(map(self._class, *columns))
        return [self._class(**dict(zip(self._names, row, strict=True))) for row in zip(*columns, strict=True)]


def _positional(cls: Any) -> tuple[str, ...] | None:
    """Return the fields that a Struct takes by position; None for other types."""
    if getattr(cls, "__struct_fields__", None) is None:
        return None
    parameters = inspect.signature(cls).parameters.values()
    return tuple(parameter.name for parameter in parameters if parameter.kind is parameter.POSITIONAL_OR_KEYWORD)


class ProjectedRows:
    """The keys and values of the selected rows of a view.

    Keys and values that no step changed are decoded by the source's serdes, only for the selected rows.

    Parameters
    ----------
    view : SourceProjection
    source : SourceNode
        The source with the serdes.
    """

    def __init__(self, view: SourceProjection, source: SourceNode) -> None:
        self._view = view
        self._source_key = source.key or BytesSerde()
        self._source_value = source.value or BytesSerde()
        self._key_structs = _Structs(view.key, view.key_class) if is_struct(view.key) else None
        self._value_structs = _Structs(view.value, view.value_class) if is_struct(view.value) else None

    def keys(self, selected: SelectedRows) -> list[Any]:
        """Return the key of every row. Raises SerdeError if the class of a `ks.struct` refuses its fields."""
        if self._view.key.operation is Operation.KEY:
            return self._source_key.decode_rows(self._source_key.framed(selected.raw_keys(), selected.headers()))
        return _objects(self._view.key, self._key_structs, selected)

    def values(self, selected: SelectedRows) -> list[Any]:
        """Return the value of every row. Raises SerdeError if the class of a `ks.struct` refuses its fields."""
        if self._view.value.operation is Operation.VALUE:
            return self._source_value.decode_rows(self._source_value.framed(selected.raw_values(), selected.headers()))
        return _objects(self._view.value, self._value_structs, selected)


def _objects(struct: Expr, structs: _Structs | None, selected: SelectedRows) -> list[object]:
    if structs is not None:
        return structs.built(selected)
    objects: list[object] = selected.of(struct).to_pylist()
    return objects
