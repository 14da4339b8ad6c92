"""The topics an application owns, and the settings Kafka Streams gives them."""

from __future__ import annotations

from kstreams.processor.topology.nodes import InternalTopic
from kstreams.state.api import StoreBuilder

SEGMENT_BYTES = 50 * 1024 * 1024


def changelog_topic(store: StoreBuilder) -> InternalTopic:
    """The changelog of a store; the store's own settings override the defaults."""
    config = {"message.timestamp.type": "CreateTime", **store.kind.changelog_config(store), **store.changelog_config}
    return InternalTopic(f"{store.name}-changelog", "changelog", config=config)


def repartition_topic(name: str, partitions: int | None = None) -> InternalTopic:
    """A topic between two sub-topologies; what was processed is deleted after a commit."""
    config = {
        "cleanup.policy": "delete",
        "message.timestamp.type": "CreateTime",
        "retention.ms": "-1",
        "segment.bytes": str(SEGMENT_BYTES),
    }
    return InternalTopic(name, "repartition", partitions, config)
