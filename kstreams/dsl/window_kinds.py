"""`WindowKind`: all that is known of one kind of windows, found by its type."""

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
"""`(aggregator, merger, kept rows, windows, emits on close) -> operator`; a merger only where windows merge."""


def _no_settings(windows: object, retention_ms: int, on_close: bool) -> Mapping[str, Any]:
    return {"retention_ms": retention_ms}


def _own_retention(windows: Any) -> int:
    retention_ms: int = windows.retention_ms
    return retention_ms


def _no_columns(aggregation: Aggregation, windows: object, on_close: bool) -> ColumnForm | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowKind:
    """One kind of windows: all that the package knows of it.

    Parameters
    ----------
    windows : type
        The class by which users declare windows; it holds their arithmetic. It needs `retention_ms` (how long a store
        must keep a window) and `closes_after_ms` (how long after its end a window still takes records).
    key_serde : callable
        `(serde of the key, windows) -> Serde`: of windowed keys; mostly a `WindowedSerde`. Its `type` is the type of
        the key behind the aggregation.
    store : StoreKind
        Of the store that keeps the aggregates.
    operator : callable
        `(aggregator, merger, kept rows, windows, emits on close) -> Operator`: takes each record into its windows.
    view : callable
        `(name of the store) -> TableView`: how a join looks up the row of a windowed key.
    store_settings : callable, default the retention alone
        `(windows, retention_ms, emits on close) -> mapping`: further fields of the `StoreBuilder`.
    needed_retention_ms : callable, default `windows.retention_ms`
        `(windows) -> int`: the least retention that a user may ask for.
    columns : callable, optional
        `(aggregation, windows, emits on close) -> ColumnForm or None`: the form that works on Arrow columns.
    size_ms : callable, optional
        `(windows) -> int`: the length of every window; None where lengths differ.
    merges : bool
        Whether windows of one key may become one: then `windowed_by` gives a `SessionWindowedKStream`, whose
        `aggregate` takes a merger, else a `TimeWindowedKStream`.
    closes : bool
        Whether windows end, so that they can be emitted at their close.
    caches_on_close : bool
        Whether the record cache takes part where results are emitted on close.
    numbers_counts : bool
        Whether a count that is described but not named takes one number more for its name, as in Kafka Streams.
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
    """Make a kind of windows known: `windowed_by` then takes them.

    Parameters
    ----------
    kind : WindowKind

    Raises
    ------
    TopologyError
        When its type is registered already.
    """
    if kind.windows in _KINDS:
        raise TopologyError(f"{kind.windows.__name__} are registered already")
    _KINDS[kind.windows] = kind


def window_kind(windows: Windows) -> WindowKind:
    """The kind of some windows.

    Raises
    ------
    TopologyError
        When it is not registered.

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
