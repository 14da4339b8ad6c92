"""The types of the records that a topology writes, by topic."""

from __future__ import annotations

from collections.abc import Iterable

from kstreams.log.topic_types import MIXED, TopicTypes
from kstreams.processor.topology.nodes import SinkNode, SubTopology
from kstreams.serdes import type_name
from kstreams.state.api import StoreBuilder


def types_written(sub_topologies: Iterable[SubTopology]) -> dict[str, TopicTypes]:
    """Return the types by the topics' names in the topology, without topics that are chosen per record.

    If sinks write different types to a topic, the type is `mixed`.
    """
    of_topic: dict[str, TopicTypes] = {}
    for sink in (sink for sub in sub_topologies for sink in sub.sinks):
        if isinstance(sink.topic, str):
            types = _types_of_sink(sink)
            of_topic[sink.topic] = _common(of_topic.get(sink.topic, types), types)
    return of_topic


def types_in_changelog(store: StoreBuilder) -> TopicTypes:
    """Return the types of a changelog's records; unknown for buffers, and for stores of the user."""
    key = store.kind.changelog_key(store)
    return TopicTypes() if key is None else TopicTypes(type_name(key), type_name(store.value))


def _types_of_sink(sink: SinkNode) -> TopicTypes:
    return TopicTypes(type_name(sink.key), type_name(sink.value))


def _common(first: TopicTypes, other: TopicTypes) -> TopicTypes:
    return TopicTypes(
        first.key if first.key == other.key else MIXED, first.value if first.value == other.value else MIXED
    )
