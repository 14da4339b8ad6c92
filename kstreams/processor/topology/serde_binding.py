"""`SerdeBinding`: binds each serde of a topology to its topic and to the schema registry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

from kstreams.config import Config
from kstreams.errors import ConfigError
from kstreams.log.schema_registries import has_registry
from kstreams.processor.topology.feeds import Feed
from kstreams.processor.topology.nodes import ProcessorNode, SinkNode, SourceNode, TopologyNode
from kstreams.processor.topology.operator import Operator
from kstreams.schemas import SchemaRegistry
from kstreams.serdes import Serde
from kstreams.serdes.base import SerdeUse
from kstreams.state.store_builder import StoreBuilder

Part = TypeVar("Part", SourceNode, SinkNode, StoreBuilder)
AnySerde = TypeVar("AnySerde", Serde, Serde | None)


@dataclass(frozen=True, slots=True)
class SerdeBinding:
    """The topics and the registry to which serdes are bound. Parts whose serdes need no binding stay the same objects.

    Parameters
    ----------
    config : Config
        The configuration of the application.
    registry : callable
        `() -> SchemaRegistry`; called when a serde first needs it.
    internal : frozenset of str
        Names of internal topics, to which the application's id is prepended.
    """

    config: Config
    registry: Callable[[], SchemaRegistry]
    internal: frozenset[str] = frozenset()

    def serde(self, serde: AnySerde, topic: str, *, is_key: bool) -> AnySerde:
        """Return a serde bound to the keys or values of a topic, by its name in the topology."""
        if serde is None:
            return None
        if serde.asks_registry and not has_registry(self.config):
            raise ConfigError(
                f"topic {topic} is read or written with {serde!r}, and schema.registry.url is not set: give the URL of "
                "a schema registry, such as http://localhost:8081, or `local:`, which keeps schemas in the embedded "
                "log and needs no server"
            )
        name = f"{self.config.application_id}-{topic}" if topic in self.internal else topic
        return serde.of_topic(SerdeUse(name, is_key, self.config, self.registry))

    def node(self, node: TopologyNode) -> TopologyNode:
        """Return a node with bound serdes."""
        return _BY_TYPE[type(node)](self, node)

    def source(self, source: SourceNode) -> SourceNode:
        """Bind a source. If it reads several topics, its serdes get the first: the records name their schemas."""
        pattern = source.pattern.pattern if source.pattern is not None else ""
        return self._both(source, source.topics[0] if source.topics else pattern)

    def sink(self, sink: SinkNode) -> SinkNode:
        """Bind a sink. A sink that chooses a topic for each record gets the function that binds its serdes."""
        if isinstance(sink.topic, str):
            return self._both(sink, sink.topic)
        return sink if self._both(sink, "") is sink else replace(sink, bind=self._both)

    def processor(self, node: ProcessorNode) -> ProcessorNode:
        """Bind an operator. The bytes that its serdes write are never records of a topic."""
        operator: Any = node.operator
        if not is_dataclass(operator) or isinstance(operator, type):
            return node
        topic = f"{self.config.application_id}-{node.name}"
        values = {field.name: getattr(operator, field.name) for field in fields(operator)}
        serdes = {name: value for name, value in values.items() if isinstance(value, Serde)}
        bound = {name: self.serde(value, topic, is_key="key" in name) for name, value in serdes.items()}
        changed = {name: serde for name, serde in bound.items() if serde is not serdes[name]}
        return replace(node, operator=_replaced(operator, changed)) if changed else node

    def store(self, store: StoreBuilder) -> StoreBuilder:
        """Bind a store to its changelog, or to the topic from which it is restored."""
        topic = store.source_topic or f"{store.name}-changelog"
        if store.source_topic is None and topic not in self.internal:  # also without a changelog
            topic = f"{self.config.application_id}-{topic}"
        bound = self._both(store, topic)
        right = self.serde(store.right_value, topic, is_key=False)
        return bound if right is store.right_value else replace(bound, right_value=right)

    def feed(self, feed: Feed) -> Feed:
        """Bind the serdes that write the rows of a DataFrame."""
        old_key, old_value = feed.serdes
        key = self.serde(old_key, feed.topic, is_key=True)
        value = self.serde(old_value, feed.topic, is_key=False)
        return feed if key is old_key and value is old_value else replace(feed, serdes=(key, value))

    def _both(self, part: Part, topic: str) -> Part:
        """Bind both serdes of a node or store to a topic."""
        key = self.serde(part.key, topic, is_key=True)
        value = self.serde(part.value, topic, is_key=False)
        return part if key is part.key and value is part.value else replace(part, key=key, value=value)


def _replaced(operator: Any, changed: dict[str, Any]) -> Operator:
    bound: Operator = replace(operator, **changed)
    return bound


_BY_TYPE: dict[type, Callable[[SerdeBinding, Any], TopologyNode]] = {
    SourceNode: SerdeBinding.source,
    SinkNode: SerdeBinding.sink,
    ProcessorNode: SerdeBinding.processor,
}
