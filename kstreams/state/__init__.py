"""State stores: the state of a task, in memory or in RocksDB, and its changelog records."""

import kstreams.errors  # noqa: F401 (tells whose files these are)
from kstreams.state.api import (
    NOT_PUT,
    VALID_TO_UNDEFINED,
    Changes,
    CustomStore,
    StoreBuilder,
    StoreKind,
    TaskState,
    VersionedRecord,
    register_store_kind,
)
from kstreams.state.live_budget import StateLimits
from kstreams.state.stores import Stores
from kstreams.state.task_state import open_task_state

__all__ = [
    "NOT_PUT",
    "VALID_TO_UNDEFINED",
    "Changes",
    "CustomStore",
    "StateLimits",
    "StoreBuilder",
    "StoreKind",
    "Stores",
    "TaskState",
    "VersionedRecord",
    "open_task_state",
    "register_store_kind",
]
