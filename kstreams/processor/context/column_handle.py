"""`ColumnHandle`: the state that the closure of an operator and its columnar form share in one task."""

from __future__ import annotations

from typing import TypeVar

H = TypeVar("H", bound="ColumnHandle")


class ColumnHandle:
    """The base of shared state: an operator's store, its time, how it emits."""

    __slots__ = ()


class ColumnHandles:
    """The handles of one task, by the name of the operator.

    Examples
    --------
    >>> class Sum(ColumnHandle):
    ...     total = 0
    >>> handles = ColumnHandles()
    >>> handles.add("SUM", Sum())
    >>> handles.of("SUM", Sum).total
    0
    """

    __slots__ = ("_by_node",)

    def __init__(self) -> None:
        self._by_node: dict[str, ColumnHandle] = {}

    def add(self, node: str, handle: ColumnHandle) -> None:
        """Add the handle of an operator."""
        self._by_node[node] = handle

    def of(self, node: str, kind: type[H]) -> H:
        """Return the handle of an operator. Raises TypeError if it is not of this kind."""
        handle = self._by_node[node]
        if not isinstance(handle, kind):
            raise TypeError(f"{node} shares a {type(handle).__name__} with its columns, not a {kind.__name__}")
        return handle
