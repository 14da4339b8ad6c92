"""The descriptors of the windows of the package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from kstreams.dsl.window_kinds import WindowKind, register_window_kind
from kstreams.errors import TopologyError
from kstreams.expressions import Aggregation
from kstreams.processor.columns.forms import AggregateForm, SessionForm
from kstreams.processor.operators.aggregation.aggregator import Aggregator
from kstreams.processor.operators.aggregation.emission import MaterializedRows
from kstreams.processor.operators.session.rows import SessionAggregateOperator, SessionStoreView
from kstreams.processor.operators.windowed.rows import WindowedAggregateOperator, WindowStoreView
from kstreams.processor.operators.windowed.sliding import SlidingAggregateOperator
from kstreams.processor.topology.operator import Operator
from kstreams.serdes import Serde, SessionWindowedSerde, TimeWindowedSerde
from kstreams.state import store_kinds
from kstreams.windows import SessionWindows, SlidingWindows, TimeWindows, UnlimitedWindows

FixedWindows: TypeAlias = TimeWindows | SlidingWindows | UnlimitedWindows
"""Windows with a size, whose keys hold their starts only."""


def _session(aggregator: Aggregator, table_rows: MaterializedRows, windows: SessionWindows, on_close: bool) -> Operator:
    if aggregator.merge is None:
        raise TopologyError("an aggregation over sessions needs a merger, since sessions may become one")
    return SessionAggregateOperator(aggregator, aggregator.merge, table_rows, windows, on_close)


def _with_start(inner: Serde, windows: FixedWindows) -> Serde:
    return TimeWindowedSerde(inner, windows.size_ms)


def _with_end_and_start(inner: Serde, windows: object) -> Serde:
    return SessionWindowedSerde(inner)


def _by_start(windows: FixedWindows, retention_ms: int, on_close: bool) -> Mapping[str, int]:
    """Return the settings; for emission on close one more millisecond, since Kafka Streams still reads that window."""
    return {"retention_ms": retention_ms + on_close, "window_size_ms": windows.size_ms}


def _session_retention(windows: object, retention_ms: int, on_close: bool) -> Mapping[str, int]:
    """Return the settings; for emission on close one more millisecond, so that open sessions are not expired."""
    return {"retention_ms": retention_ms + on_close, "time_ordered": on_close}


def _sparse(windows: SlidingWindows, retention_ms: int, on_close: bool) -> Mapping[str, int]:
    return {**_by_start(windows, retention_ms, on_close), "sparse": True, "time_ordered": on_close}


def _form(aggregation: Aggregation, windows: TimeWindows, on_close: bool) -> AggregateForm:
    return AggregateForm(aggregation, windows, on_close)


def _session_form(aggregation: Aggregation, windows: SessionWindows, on_close: bool) -> SessionForm:
    return SessionForm(aggregation, windows, on_close)


BUILTIN = (
    WindowKind(
        windows=TimeWindows,
        key_serde=_with_start,
        store=store_kinds.TIMESTAMPED_WINDOW,
        operator=WindowedAggregateOperator,
        view=WindowStoreView,
        store_settings=_by_start,
        columns=_form,
        members=store_kinds.WINDOW,
    ),
    WindowKind(
        windows=SlidingWindows,
        key_serde=_with_start,
        store=store_kinds.TIMESTAMPED_WINDOW,
        operator=SlidingAggregateOperator,
        view=WindowStoreView,
        store_settings=_sparse,
    ),
    WindowKind(
        windows=SessionWindows,
        key_serde=_with_end_and_start,
        store=store_kinds.SESSION,
        operator=_session,
        view=SessionStoreView,
        store_settings=_session_retention,
        columns=_session_form,
    ),
    WindowKind(
        windows=UnlimitedWindows,
        key_serde=_with_start,
        store=store_kinds.TIMESTAMPED_WINDOW,
        operator=WindowedAggregateOperator,
        view=WindowStoreView,
        store_settings=_by_start,
        members=store_kinds.WINDOW,
    ),
)

for _kind in BUILTIN:
    register_window_kind(_kind)
