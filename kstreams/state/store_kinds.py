"""The kinds of stores that come with the package."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from kstreams.serdes import Serde, SessionWindowedSerde, WindowRowSerde
from kstreams.state.column_family import ColumnFamily
from kstreams.state.kinds.buffer import LiveTimeOrderedBuffer
from kstreams.state.kinds.custom import LiveCustomStore
from kstreams.state.kinds.key_value import LiveKeyValueStore
from kstreams.state.kinds.keyed_window_store import JoinWindowStore, SparseWindowStore
from kstreams.state.kinds.live_store import LiveStore
from kstreams.state.kinds.lru import LruMap
from kstreams.state.kinds.outer_join import LiveOuterJoinStore
from kstreams.state.kinds.record_buffer import LiveRecordBuffer
from kstreams.state.kinds.session import LiveSessionStore
from kstreams.state.kinds.versioned import LiveVersionedStore
from kstreams.state.kinds.waiting_records import WaitingRecordStore
from kstreams.state.kinds.window import LiveWindowStore
from kstreams.state.live_budget import LiveBudget
from kstreams.state.read_only_store import (
    ReadOnlyBuffer,
    ReadOnlyKeyValueStore,
    ReadOnlySessionStore,
    ReadOnlyStore,
    ReadOnlyVersionedStore,
    ReadOnlyWindowStore,
)
from kstreams.state.row_readers import KEY_VALUE_ROWS, SESSION_ROWS, VERSION_ROWS, WINDOW_ROWS
from kstreams.state.rows.version_rows import in_rows
from kstreams.state.store_builder import StoreBuilder, StoreKind, Written, register_store_kind
from kstreams.state.tables import store_tables
from kstreams.state.timed_store import (
    Places,
    Times,
    taken_aggregation,
    taken_bound,
    taken_session,
    taken_time,
    taken_value,
    taken_value_with_headers,
)

DAY_MS = 86_400_000
"""The time that the retention of a changelog exceeds that of its store, as in Kafka Streams."""


def _key_value_store(builder: StoreBuilder, family: ColumnFamily, budget: LiveBudget) -> LiveStore:
    return (LiveKeyValueStore if builder.max_entries is None else LruMap)(builder, family, budget)


def _window_store(builder: StoreBuilder, family: ColumnFamily, budget: LiveBudget) -> LiveStore:
    if builder.retain_duplicates:
        return JoinWindowStore(builder, family, budget)
    return (SparseWindowStore if builder.sparse else LiveWindowStore)(builder, family, budget)


def _pair(key: object, value: object, *place: int) -> tuple[object, object]:
    return key, value


def _timestamped_pair(key: Any, value: Any, *place: int) -> tuple[Any, Any]:
    return key, None if value is None else value[0]


def _session_pair(session: Any, value: Any, record_ms: int | None = None) -> tuple[Any, Any]:
    return session[0], value


def _session_pair_with_headers(session: Any, value: Any, record_ms: int | None = None) -> tuple[Any, Any]:
    return session[0], None if value is None else value[0]


def _key_value_writes(pair: Written) -> Mapping[str, Written | None]:
    return {"put": pair, "put_if_absent": pair, "put_all": None, "put_many": None, "delete": None}


def _window_writes(pair: Written) -> Mapping[str, Written | None]:
    return {"put": pair, "put_many": None}


_ONE_START: Places = {1: taken_time}
_SPAN: Places = {1: taken_time, 2: taken_time}
_WINDOW_READS: Times = {
    "get": _ONE_START,
    "fetch": _SPAN,
    "backward_fetch": _SPAN,
    "fetch_all": {0: taken_time, 1: taken_time},
    "backward_fetch_all": {0: taken_time, 1: taken_time},
}
_VERSION_TIMES: Times = {
    "put": {2: taken_time},
    "delete": {1: taken_time},
    "get": {1: taken_bound},
    "history": {1: taken_bound, 2: taken_bound},
}
_SESSION_TIMES: Times = {
    "put": {0: taken_session},
    "remove": {0: taken_session},
    "fetch_session": _SPAN,
    "find_sessions": _SPAN,
    "backward_find_sessions": _SPAN,
}


def _plain_key(builder: StoreBuilder) -> Serde[object] | None:
    return builder.key


def _window_key(builder: StoreBuilder) -> Serde | None:
    return None if builder.key is None else WindowRowSerde(builder.key, builder.window_size_ms or 0)


def _session_key(builder: StoreBuilder) -> Serde | None:
    return None if builder.key is None else SessionWindowedSerde(builder.key)


def _deleted_after_retention(builder: StoreBuilder) -> Mapping[str, str]:
    if builder.retention_ms is None:
        return {"cleanup.policy": "compact"}
    policy = "delete" if builder.retain_duplicates else "compact,delete"
    return {"cleanup.policy": policy, "retention.ms": str(builder.retention_ms + DAY_MS)}


KEY_VALUE = StoreKind(
    name="key-value",
    open=_key_value_store,
    view=ReadOnlyKeyValueStore,
    writes=_key_value_writes(_pair),
    changelog_key=_plain_key,
    reads_committed=True,
    rows=KEY_VALUE_ROWS,
    table=store_tables.key_values,
)
TIMESTAMPED_KEY_VALUE = StoreKind(
    name="timestamped-key-value",
    open=_key_value_store,
    view=ReadOnlyKeyValueStore,
    writes=_key_value_writes(_timestamped_pair),
    times={"put": {1: taken_value}, "put_if_absent": {1: taken_value}},
    timestamped=True,
    changelog_key=_plain_key,
    reads_committed=True,
    rows=KEY_VALUE_ROWS,
    table=store_tables.key_values,
)
WINDOW = StoreKind(
    name="window",
    open=_window_store,
    view=ReadOnlyWindowStore,
    writes=_window_writes(_pair),
    times={"put": {2: taken_time}, **_WINDOW_READS},
    changelog_key=_window_key,
    changelog_config=_deleted_after_retention,
    time_in_key=-12,
    reads_committed=True,
    rows=WINDOW_ROWS,
    table=store_tables.windows,
)
TIMESTAMPED_WINDOW = StoreKind(
    name="timestamped-window",
    open=_window_store,
    view=ReadOnlyWindowStore,
    writes=_window_writes(_timestamped_pair),
    times={"put": {1: taken_value, 2: taken_time}, **_WINDOW_READS},
    timestamped=True,
    changelog_key=_window_key,
    changelog_config=_deleted_after_retention,
    time_in_key=-12,
    reads_committed=True,
    rows=WINDOW_ROWS,
    table=store_tables.windows,
)
SESSION = StoreKind(
    name="session",
    open=LiveSessionStore,
    view=ReadOnlySessionStore,
    writes={"put": _session_pair, "remove": None},
    times=_SESSION_TIMES,
    changelog_key=_session_key,
    changelog_config=_deleted_after_retention,
    time_in_key=-16,
    reads_committed=True,
    rows=SESSION_ROWS,
    table=store_tables.sessions,
)
TIMESTAMPED_KEY_VALUE_WITH_HEADERS = replace(
    TIMESTAMPED_KEY_VALUE,
    name="timestamped-key-value-with-headers",
    times={"put": {1: taken_value_with_headers}, "put_if_absent": {1: taken_value_with_headers}},
    headers=True,
)
TIMESTAMPED_WINDOW_WITH_HEADERS = replace(
    TIMESTAMPED_WINDOW,
    name="timestamped-window-with-headers",
    times={"put": {1: taken_value_with_headers, 2: taken_time}, **_WINDOW_READS},
    headers=True,
)
SESSION_WITH_HEADERS = replace(
    SESSION,
    name="session-with-headers",
    writes={"put": _session_pair_with_headers, "remove": None},
    times={**_SESSION_TIMES, "put": {0: taken_session, 1: taken_aggregation}},
    headers=True,
)
VERSIONED = StoreKind(
    name="versioned",
    open=LiveVersionedStore,
    view=ReadOnlyVersionedStore,
    writes={"put": _pair, "delete": None},
    times=_VERSION_TIMES,
    current_form=in_rows,
    reads_committed=True,
    rows=VERSION_ROWS,
    table=store_tables.versions,
)
TIME_ORDERED_BUFFER = StoreKind(  # of suppressions
    name="time-ordered-buffer", open=LiveTimeOrderedBuffer, view=ReadOnlyBuffer, extra_families=("order",)
)
RECORD_BUFFER = StoreKind(name="record-buffer", open=LiveRecordBuffer, view=ReadOnlyBuffer)  # joins with grace
OUTER_JOIN = StoreKind(name="outer-join", open=LiveOuterJoinStore, view=ReadOnlyStore)  # rows without a partner
WAITING_RECORDS = StoreKind(name="waiting-records", open=WaitingRecordStore, view=ReadOnlyStore)  # retries, delays
CUSTOM = StoreKind(name="custom", open=LiveCustomStore, view=ReadOnlyKeyValueStore)  # implemented by the user

for _kind in (
    KEY_VALUE,
    TIMESTAMPED_KEY_VALUE,
    WINDOW,
    TIMESTAMPED_WINDOW,
    SESSION,
    TIMESTAMPED_KEY_VALUE_WITH_HEADERS,
    TIMESTAMPED_WINDOW_WITH_HEADERS,
    SESSION_WITH_HEADERS,
    VERSIONED,
    TIME_ORDERED_BUFFER,
    RECORD_BUFFER,
    OUTER_JOIN,
    WAITING_RECORDS,
    CUSTOM,
):
    register_store_kind(_kind)
