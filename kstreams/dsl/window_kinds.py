"""`WindowKind`: the descriptor of a kind of windows; `register_window_kind` adds one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from kstreams.errors import TopologyError
from kstreams.expressions import Aggregation
from kstreams.kernel.source_line import declared_at
from kstreams.processor.context.table_view import TableView
from kstreams.processor.operators.aggregation.rows import Aggregator
from kstreams.processor.operators.session.rows import Merger
from kstreams.processor.operators.tables.rows import MaterializedRows
from kstreams.processor.topology.operator import ColumnForm, Operator
from kstreams.serdes import Serde
from kstreams.state.api import StoreKind
from kstreams.windows import Windows

MakeOperator: TypeAlias = Callable[[Aggregator, Merger | None, MaterializedRows, Any, bool], Operator]
"""`(aggregator, merger, table rows, windows, emits on close) -> operator`; the merger is None unless windows merge."""


def _no_settings(windows: object, retention_ms: int, on_close: bool) -> Mapping[str, Any]:
    return {"retention_ms": retention_ms}


def _own_retention(windows: Any) -> int:
    retention_ms: int = windows.retention_ms
    return retention_ms


def _no_columns(aggregation: Aggregation, windows: object, on_close: bool) -> ColumnForm | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowKind:
    """The descriptor of a kind of windows.

    Parameters
    ----------
    windows : type
        The class by which users declare windows, with their arithmetic. It needs `retention_ms` (how long a store
        retains a window) and `closes_after_ms` (how long after its end a window takes records).
    key_serde : callable
        `(serde of the key, windows) -> Serde` of windowed keys, usually a `WindowedSerde`. Its `type` is the type of
        the keys of the table.
    store : StoreKind
        The kind of the store of the aggregates.
    operator : callable
        `(aggregator, merger, table rows, windows, emits on close) -> Operator` that adds each record to its windows.
    view : callable
        `(name of the store) -> TableView` by which a join looks up the row of a windowed key.
    store_settings : callable, default the retention alone
        `(windows, retention_ms, emits on close) -> mapping` of further fields of the `StoreBuilder`.
    needed_retention_ms : callable, default `windows.retention_ms`
        `(windows) -> int`: the least retention that a user may set.
    columns : callable, optional
        `(aggregation, windows, emits on close) -> ColumnForm or None`: the operator on Arrow columns.
    size_ms : callable, optional
        `(windows) -> int`: the length of every window; None if lengths differ.
    merges : bool
        True if windows of one key may merge: then `windowed_by` returns a `SessionWindowedKStream`, whose `aggregate`
        takes a merger, else a `TimeWindowedKStream`.
    closes : bool
        True if windows close, so that they can be emitted on close.
    caches_on_close : bool
        True if the record cache also holds updates of windows that are emitted on close.
    numbers_counts : bool
        True if a count that is described but not named takes one more number, as in Kafka Streams.
    """

    windows: type
    key_serde: Callable[[Serde, Any], Serde]
    store: StoreKind
    operator: MakeOperator
    view: Callable[[str], TableView]
    store_settings: Callable[[Any, int, bool], Mapping[str, Any]] = _no_settings
    needed_retention_ms: Callable[[Any], int] = _own_retention
    columns: Callable[[Aggregation, Any, bool], ColumnForm | None] = _no_columns
    size_ms: Callable[[Any], int] | None = None
    merges: bool = False
    closes: bool = True
    caches_on_close: bool = False
    numbers_counts: bool = True


_KINDS: dict[type, WindowKind] = {}


def register_window_kind(kind: WindowKind) -> None:
    """Register a kind of windows; `windowed_by` then takes them.

    Parameters
    ----------
    kind : WindowKind

    Raises
    ------
    TopologyError
        If its type is registered already.
    """
    if kind.windows in _KINDS:
        raise TopologyError(f"{kind.windows.__name__} are registered already")
    _KINDS[kind.windows] = kind


def window_kind(windows: Windows) -> WindowKind:
    """Return the descriptor of the kind of some windows.

    Raises
    ------
    TopologyError
        If their type is not registered.

    Examples
    --------
    >>> from kstreams.dsl.builder import StreamsBuilder
    >>> from kstreams.windows import TimeWindows
    >>> window_kind(TimeWindows(size=10)).store
    <StoreKind timestamped-window>
    """
    window_kind = _KINDS.get(type(windows))
    if window_kind is None:
        kinds = ", ".join(kind.__name__ for kind in _KINDS)
        raise TopologyError(f"windowed_by() at {declared_at()} takes {kinds}, not {windows!r}")
    return window_kind
