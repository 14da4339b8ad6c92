"""`WindowKind`: the descriptor of a kind of windows; `register_window_kind` adds one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from kstreams.errors import TopologyError
from kstreams.expressions import Aggregation
from kstreams.kernel.source_line import declared_at
from kstreams.processor.context.table_view import TableView
from kstreams.processor.operators.aggregation.aggregator import Aggregator
from kstreams.processor.operators.aggregation.emission import MaterializedRows
from kstreams.processor.topology.operator import ColumnForm, Operator
from kstreams.serdes import Serde
from kstreams.state.api import StoreKind
from kstreams.windows import Windows

MakeOperator: TypeAlias = Callable[[Aggregator, MaterializedRows, Any, bool], Operator]
"""`(aggregator, table rows, windows, emits on close) -> operator`."""


def _retention_and_order(windows: object, retention_ms: int, on_close: bool) -> Mapping[str, Any]:
    return {"retention_ms": retention_ms, "time_ordered": on_close}


def _no_columns(aggregation: Aggregation, windows: object, on_close: bool) -> ColumnForm | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowKind:
    """The descriptor of a kind of windows.

    Parameters
    ----------
    windows : type
        The subclass of `Windows` by which users declare windows, with their arithmetic.
    key_serde : callable
        `(serde of the key, windows) -> Serde` of windowed keys, usually a `WindowedSerde`. Its `type` is the type of
        the keys of the table.
    store : StoreKind
        The kind of the store of the aggregates.
    operator : callable
        `(aggregator, table rows, windows, emits on close) -> Operator` that adds each record to its windows.
    view : callable
        `(name of the store) -> TableView` by which a join looks up the row of a windowed key.
    store_settings : callable, default the retention, and the order of time for emission on close
        `(windows, retention_ms, emits on close) -> mapping` of further fields of the `StoreBuilder`. There is no
        record cache before a `time_ordered` store.
    columns : callable, optional
        `(aggregation, windows, emits on close) -> ColumnForm or None`: the operator on Arrow columns.
    members : StoreKind, optional
        The kind of the store of the members of windows, such as the distinct values of `n_unique()`: a window store. By
        default they are part of the aggregate, as they must be if windows merge or split.
    """

    windows: type[Windows]
    key_serde: Callable[[Serde, Any], Serde]
    store: StoreKind
    operator: MakeOperator
    view: Callable[[str], TableView]
    store_settings: Callable[[Any, int, bool], Mapping[str, Any]] = _retention_and_order
    columns: Callable[[Aggregation, Any, bool], ColumnForm | None] = _no_columns
    members: StoreKind | None = None


_KINDS: dict[type[Windows], WindowKind] = {}


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
