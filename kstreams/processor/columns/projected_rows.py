"""`ProjectedRows`: keys and values that leave a region as live objects, the same that the record path would hold."""

from __future__ import annotations

import inspect
from typing import Any

from kstreams.errors import SerdeError
from kstreams.expressions import Operation
from kstreams.processor.columns.evaluation import columns_needed
from kstreams.processor.columns.projection import SourceProjection
from kstreams.processor.columns.selected_rows import SelectedRows
from kstreams.processor.topology.nodes import SourceNode
from kstreams.serdes import BytesSerde


def _positional(make: Any) -> tuple[str, ...] | None:
    """The fields that a Struct takes by position; None for other types."""
    if getattr(make, "__struct_fields__", None) is None:
        return None
    parameters = inspect.signature(make).parameters.values()
    return tuple(given.name for given in parameters if given.kind is given.POSITIONAL_OR_KEYWORD)


class ProjectedRows:
    """Makes the rows of a view.

    Keys and values that no step changed are decoded by the source's serdes, for the rows that come through alone.

    Parameters
    ----------
    view : SourceProjection
    source : SourceNode
        Names the serdes.
    """

    def __init__(self, view: SourceProjection, source: SourceNode) -> None:
        self._view = view
        self._source_key, self._source_value = source.key or BytesSerde(), source.value or BytesSerde()
        self._parts = columns_needed(view.value)
        self._make: Any = view.result or dict
        self._by_position = _positional(self._make) == view.value.detail

    def keys(self, selected: SelectedRows) -> list[Any]:
        """The key of every row."""
        if self._view.key.operation is Operation.KEY:
            return self._source_key.decode_rows(selected.raw_keys())
        found: list[Any] = selected.of(self._view.key).to_pylist()
        return found

    def values(self, selected: SelectedRows) -> list[Any]:
        """The value of every row; raises SerdeError when the type of a `ks.struct` refuses its fields."""
        if self._view.value.operation is Operation.VALUE:
            return self._source_value.decode_rows(selected.raw_values())
        if self._view.value.operation is Operation.STRUCT:
            return self._built(selected)
        found: list[Any] = selected.of(self._view.value).to_pylist()
        return found

    def _built(self, selected: SelectedRows) -> list[Any]:
        try:
            return self._structs(selected)
        except Exception as error:
            raise SerdeError(f"{self._make!r} cannot be built: {error}") from error

    def _structs(self, selected: SelectedRows) -> list[Any]:
        columns = [selected.of(part).to_pylist() for part in self._parts]
        names, make = self._view.value.detail, self._make
        if self._by_position:
            return list(map(make, *columns))
        return [make(**dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True)]
