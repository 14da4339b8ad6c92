"""The topics an application owns, and the settings Kafka Streams gives them."""

from __future__ import annotations

from kstreams.processor.topology.nodes import InternalTopic
from kstreams.state.api import StoreBuilder, StoreKind

DAY_MS = 86_400_000
SEGMENT_BYTES = 50 * 1024 * 1024

_WINDOWED = {StoreKind.WINDOW, StoreKind.TIMESTAMPED_WINDOW, StoreKind.SESSION}


def changelog_topic(store: StoreBuilder) -> InternalTopic:
    """The changelog of a store; the store's own settings override the defaults."""
    config = {"message.timestamp.type": "CreateTime", **_cleanup(store), **store.changelog_config}
    return InternalTopic(f"{store.name}-changelog", "changelog", config=config)


def _cleanup(store: StoreBuilder) -> dict[str, str]:
    if store.kind is StoreKind.VERSIONED and store.history_retention_ms is not None:
        lag_ms = store.history_retention_ms + DAY_MS
        return {"cleanup.policy": "compact", "min.compaction.lag.ms": str(lag_ms)}
    if store.kind in _WINDOWED and store.retention_ms is not None:
        policy = "delete" if store.retain_duplicates else "compact,delete"
        return {"cleanup.policy": policy, "retention.ms": str(store.retention_ms + DAY_MS)}
    return {"cleanup.policy": "compact"}


def repartition_topic(name: str, partitions: int | None = None) -> InternalTopic:
    """A topic between two sub-topologies; what was processed is deleted after a commit."""
    config = {
        "cleanup.policy": "delete",
        "message.timestamp.type": "CreateTime",
        "retention.ms": "-1",
        "segment.bytes": str(SEGMENT_BYTES),
    }
    return InternalTopic(name, "repartition", partitions, config)
