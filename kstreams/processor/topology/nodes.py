"""The parts of a topology: source, processor and sink nodes, internal topics, and sub-topologies."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeAlias

from kstreams.errors import TopologyError
from kstreams.kernel.source_line import operator_at
from kstreams.kernel.timestamps import TimestampExtractor
from kstreams.processor.topology.operator import ColumnForm, Operator
from kstreams.serdes import Serde
from kstreams.state.api import StoreBuilder

SEGMENT_BYTES = 50 * 1024 * 1024


def changelog_topic(store: StoreBuilder) -> InternalTopic:
    """Return the changelog of a store; the store's own settings override the defaults."""
    config = {"message.timestamp.type": "CreateTime", **store.kind.changelog_config(store), **store.changelog_config}
    return InternalTopic(f"{store.name}-changelog", "changelog", config=config)


def repartition_topic(name: str, partitions: int | None = None) -> InternalTopic:
    """Return a topic between two sub-topologies; processed records are deleted after a commit."""
    config = {
        "cleanup.policy": "delete",
        "message.timestamp.type": "CreateTime",
        "retention.ms": "-1",
        "segment.bytes": str(SEGMENT_BYTES),
    }
    return InternalTopic(name, "repartition", partitions, config)


@dataclass(frozen=True, slots=True)
class SourceNode:
    """A reader of topics, or of all topics that match a pattern. Kafka Streams: `SourceNode`."""

    name: str
    topics: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None
    key: Serde | None = None
    value: Serde | None = None
    timestamp_extractor: TimestampExtractor | None = None
    offset_reset: str | timedelta | None = None
    declared_at: str | None = None
    idle_ms: tuple[int | None, ...] = (None,)
    """The idle timeout (ms) of each topic of the user that feeds the source; None for the application's setting."""


@dataclass(frozen=True, slots=True)
class ProcessorNode:
    """An operator between sources and sinks. Kafka Streams: `ProcessorNode`."""

    name: str
    parents: tuple[str, ...]
    operator: Operator
    stores: tuple[str, ...] = ()
    columns: ColumnForm | None = None
    declared_at: str | None = None


@dataclass(frozen=True, slots=True)
class SinkNode:
    """A writer to a topic, fixed or chosen per record by `topic(key, value, RecordContext)`."""

    name: str
    parents: tuple[str, ...]
    topic: str | Callable[..., str]
    key: Serde | None = None
    value: Serde | None = None
    partitioner: Callable[..., Any] | None = None
    declared_at: str | None = None
    bind: Callable[[SinkNode, str], SinkNode] | None = None
    """For a sink that chooses topics, the function that binds its serdes to one topic; None if they need no binding."""

    def of_topic(self, topic: str) -> SinkNode:
        """Return the sink with the serdes for a topic that it has chosen."""
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
    """A connected part of the topology, which a task runs for one partition.

    Parameters
    ----------
    id : int
    nodes : tuple of TopologyNode
        Parents before children.
    stores : tuple of StoreBuilder
    is_global : bool
        True if it fills a global table.
    place : int
        The position in the order of processing, after all sub-topologies that feed it.
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
    """Yield the nodes that run a processor of the user, which may schedule punctuators of stream time."""
    nodes = (node for node in sub_topology.nodes if isinstance(node, ProcessorNode))
    return (node for node in nodes if node.operator.runs_processor)


def reads(source: SourceNode, topic: str) -> bool:
    """Return whether a source names a topic, or its pattern matches it."""
    return topic in source.topics or matches(source, topic)


def matches(source: SourceNode, topic: str) -> bool:
    """Return whether the pattern of a source matches a topic."""
    return source.pattern is not None and source.pattern.fullmatch(topic) is not None


def reader_of(sources: Iterable[SourceNode], topic: str) -> SourceNode | None:
    """Return the source that reads a topic; None if there is none.

    Raises
    ------
    TopologyError
        If the patterns of several sources match it: its records could go to only one of them.
    """
    readers = [source for source in sources if reads(source, topic)]
    if len(readers) > 1:
        first, other = readers[:2]
        raise TopologyError(
            f"Topic {topic!r} is read by {_described(first)} and by {_described(other)}: a topic has one source. Let "
            "no topic match both patterns, or read the topics once and use that stream twice."
        )
    return readers[0] if readers else None


def _described(source: SourceNode) -> str:
    pattern = "" if source.pattern is None else f" with the pattern {source.pattern.pattern!r}"
    return f"{operator_at(source.name, source.declared_at)}{pattern}"
