"""What a topology is made of: source, processor and sink nodes, internal topics, and sub-topologies."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeAlias

from kstreams.kernel.timestamps import TimestampExtractor
from kstreams.processor.topology.operator import ColumnForm, Operator
from kstreams.serdes import Serde
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


@dataclass(frozen=True, slots=True)
class SourceNode:
    """Reads topics (or all that match a pattern)."""

    name: str
    topics: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None
    key: Serde[Any] | None = None
    value: Serde[Any] | None = None
    timestamp_extractor: TimestampExtractor | None = None
    offset_reset: str | timedelta | None = None
    declared_at: str | None = None
    idle_ms: tuple[int | None, ...] = (None,)
    """After how long without records each topic of the user is idle that feeds it; None: as the application says."""


@dataclass(frozen=True, slots=True)
class ProcessorNode:
    """One operator between sources and sinks. Kafka Streams: `ProcessorNode`."""

    name: str
    parents: tuple[str, ...]
    operator: Operator
    stores: tuple[str, ...] = ()
    columns: ColumnForm | None = None
    declared_at: str | None = None


@dataclass(frozen=True, slots=True)
class SinkNode:
    """Writes to a topic, fixed or chosen per record by `topic(key, value, RecordContext)`."""

    name: str
    parents: tuple[str, ...]
    topic: str | Callable[..., str]
    key: Serde[Any] | None = None
    value: Serde[Any] | None = None
    partitioner: Callable[..., Any] | None = None
    declared_at: str | None = None
    bind: Callable[[SinkNode, str], SinkNode] | None = None
    """Of a sink that chooses topics: gives it with the serdes of one topic, where that makes a difference."""

    def of_topic(self, topic: str) -> SinkNode:
        """The sink for a topic that it has chosen."""
        return self if self.bind is None else self.bind(self, topic)


TopologyNode: TypeAlias = SourceNode | ProcessorNode | SinkNode


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """A topic that the application owns; `name` lacks the `<application.id>-` in front."""

    name: str
    kind: str  # "repartition" or "changelog"
    partitions: int | None = None  # enforced number, else derived
    config: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SubTopology:
    """A connected part of the topology: what one task runs for one partition.

    Parameters
    ----------
    id : int
    nodes : tuple of TopologyNode
        Parents before children.
    stores : tuple of StoreBuilder
    is_global : bool
        Whether it fills a global table.
    place : int
        In the order of processing: all that feed it come before.
    """

    id: int
    nodes: tuple[TopologyNode, ...]
    stores: tuple[StoreBuilder, ...]
    is_global: bool = False
    place: int = 0

    @property
    def sources(self) -> tuple[SourceNode, ...]:
        return tuple(node for node in self.nodes if isinstance(node, SourceNode))

    @property
    def sinks(self) -> tuple[SinkNode, ...]:
        return tuple(node for node in self.nodes if isinstance(node, SinkNode))


def parents_of(node: TopologyNode) -> tuple[str, ...]:
    """The names of a node's parents; a source has none."""
    return () if isinstance(node, SourceNode) else node.parents


def processor_nodes(sub_topology: SubTopology) -> Iterator[ProcessorNode]:
    """The nodes that run a processor of the user, which may schedule punctuators of stream time."""
    nodes = (node for node in sub_topology.nodes if isinstance(node, ProcessorNode))
    return (node for node in nodes if node.operator.runs_processor)
