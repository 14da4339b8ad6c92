"""`ProjectedRows`: keys and values that leave a region as objects, equal to those of the record path."""

from __future__ import annotations

import inspect
from typing import Any

from kstreams.errors import SerdeError
from kstreams.expressions import Expr, Operation
from kstreams.processor.columns.evaluation import is_struct
from kstreams.processor.columns.projection import SourceProjection
from kstreams.processor.columns.selected_rows import SelectedRows
from kstreams.processor.topology.nodes import SourceNode
from kstreams.serdes import BytesSerde


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
