"""What is not exact when the input of an application is cut into steps, by operator: `explain` says it. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from kstreams.kernel.timestamps import TimestampExtractor
from kstreams.processor.topology.nodes import SourceNode, SubTopology
from kstreams.processor.topology.processing_order import Upstream, in_cycles
from kstreams.processor.topology.reach import feeding
from kstreams.processor.topology.topology import Topology
from kstreams.runtime.spark.coupling import admissions

SHARES = (
    "a function tells the times of these records, or of some that they meet: each step takes a share of every "
    "partition, in order of time within the step only"
)
AFTER_OTHERS = (
    "it takes what comes from a foreign-key join, or from a topic of yours that the topology writes, beside records of "
    "another topic, or repartitioned again: these are in no order across tasks, and a step may have taken later ones "
    "already"
)


def step_differences(topology: Topology, default: TimestampExtractor | None) -> dict[str, str]:
    """What is not exact, by the name of the operator.

    Parameters
    ----------
    topology : Topology
    default : callable or None
        The timestamp extractor of sources that have none.
    """
    subs = [sub for sub in topology.sub_topologies if not sub.is_global]
    read = {sub.id: {topic for source in sub.sources for topic in _topics(source)} for sub in subs}
    written = {sub.id: {str(sink.topic) for sink in sub.sinks} for sub in subs}
    within = {topic for topics in read.values() for topic in topics if any(topic in of for of in written.values())}
    upstream = {number: {w for w in written if written[w] & topics & within} for number, topics in read.items()}
    cut = admissions(subs, read, upstream, within, default)
    shared = {topic for admission in cut if not admission.by_time for topic in admission.topics}
    differences = {
        source.name: SHARES for sub in subs for source in sub.sources if shared.intersection(_topics(source))
    }
    unordered = within - _ordered(topology, written, upstream)
    twice = {topic for sub in subs if read[sub.id] & unordered for topic in written[sub.id]} & within
    differences |= {name: AFTER_OTHERS for sub in subs for name in _after_others(sub, unordered, twice)}
    return {topology.origin.get(name, name): difference for name, difference in differences.items()}


def _ordered(topology: Topology, written: Mapping[int, Collection[str]], upstream: Upstream) -> set[str]:
    """The repartition topics whose records stand in the order of their times: no circle writes them."""
    circles = in_cycles(upstream)
    straight = {topic for sub, topics in written.items() if sub not in circles for topic in topics}
    return straight.intersection(topic.name for topic in topology.repartition_topics)


def _after_others(sub: SubTopology, unordered: Collection[str], twice: Collection[str]) -> Iterator[str]:
    """The nodes with stores that take records of a topic without an order across tasks, and of another topic.

    And those that take records of a topic in `twice`, which follow from those of such a topic.
    """
    topics = {source.name: set(_topics(source)) for source in sub.sources}
    for node in (node for node in sub.nodes if getattr(node, "stores", ())):
        topics_read = {topic for source in feeding(sub, node.name) for topic in topics[source]}
        if not topics_read.isdisjoint(unordered if len(topics_read) > 1 else twice):
            yield node.name


def _topics(source: SourceNode) -> list[str]:
    """The topics of a source; a pattern stands for all that it matches."""
    return [*source.topics, *([] if source.pattern is None else [source.pattern.pattern])]
