"""The reader of a topic: the source that names it, or the only source whose pattern matches it."""

from __future__ import annotations

from collections.abc import Iterable

from kstreams.errors import TopologyError
from kstreams.kernel.source_line import operator_at
from kstreams.processor.topology.nodes import SourceNode


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
