"""`ColumnHandle`: what the closure of an operator and its columnar form share in one task."""

from __future__ import annotations

from typing import TypeVar

H = TypeVar("H", bound="ColumnHandle")


class ColumnHandle:
    """The base of what an operator shares with its columnar form: its store, its time, how it emits."""

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
        """Keep the handle of an operator."""
        self._by_node[node] = handle

    def of(self, node: str, kind: type[H]) -> H:
        """The handle of an operator, which is of this kind; raises TypeError when it is not."""
        handle = self._by_node[node]
        if not isinstance(handle, kind):
            raise TypeError(f"{node} shares a {type(handle).__name__} with its columns, not a {kind.__name__}")
        return handle
