"""`meters_of`: the counter of the records that pass each wire of a diagram.

Sources count the records that they read, and sinks those that they write. An operator that forwards every record, after
a source or before a sink, needs no counter of its own. The records that leave a filter, an aggregation or a join are
counted at `metrics.recording.level=DEBUG`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from kstreams.processor.context.chain import StatementOperator
from kstreams.processor.topology.nodes import ProcessorNode, SinkNode, SourceNode, TopologyNode, parents_of
from kstreams.processor.topology.topology import Topology


class Meter(NamedTuple):
    """A counter.

    Parameters
    ----------
    kind : str
        `read` and `passed`: the records that a source has read, and has forwarded. `consumed`: the records of one topic
        of a source that reads several. `written` and `repartitioned`: the records written to a topic, and to a
        repartition topic. `forwarded`: the records that an operator has forwarded to a child, which are counted at
        `metrics.recording.level=DEBUG`.
    of : str
        The source, the topic, or `PARENT>CHILD`.
    """

    kind: str
    of: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.of}"


def meters_of(topology: Topology) -> dict[tuple[str, str], Meter]:
    """Return the counter of each wire, by the names of its ends, which are nodes or topics.

    Examples
    --------
    >>> topology = Topology().add_source("in", "words", key=str, value=str)
    >>> for ends, meter in meters_of(topology.add_sink("out", "copy", "in", key=str, value=str)).items():
    ...     print(ends, meter)
    ('words', 'in') read:in
    ('in', 'out') passed:in
    ('out', 'copy') written:copy
    """
    entering = _entering(topology)
    leaving = _leaving(topology, entering)
    meters: dict[tuple[str, str], Meter] = {}
    for node in topology.nodes.values():
        if isinstance(node, SourceNode):
            meters |= _read(node)
        for parent in parents_of(node):
            meter = leaving.get(parent) or entering.get(node.name)
            meters[parent, node.name] = meter or Meter("forwarded", f"{parent}>{node.name}")
        if isinstance(node, SinkNode) and isinstance(node.topic, str) and _has_one_parent(topology, node.name):
            meters[node.name, node.topic] = entering.get(node.name) or meters[node.parents[0], node.name]
    return meters


def _read(source: SourceNode) -> dict[tuple[str, str], Meter]:
    if len(source.topics) == 1:
        return {(source.topics[0], source.name): Meter("read", source.name)}
    return {(topic, source.name): Meter("consumed", topic) for topic in source.topics}


def _leaving(topology: Topology, entering: Mapping[str, Meter]) -> dict[str, Meter]:
    """Return the counter of the records that leave each node that forwards to all its children."""
    meters: dict[str, Meter] = {}
    for node in topology.nodes.values():  # parents before children
        child_meter = next(
            (entering[child.name] for child in topology.children(node.name) if child.name in entering), None
        )
        if isinstance(node, SourceNode):
            meters[node.name] = Meter("passed", node.name)
        elif _passes_all(node) and len(parents_of(node)) == 1 and parents_of(node)[0] in meters:
            meters[node.name] = meters[parents_of(node)[0]]
        elif _is_simple(node) and child_meter is not None:
            meters[node.name] = child_meter  # the node forwards the same records to all children
    return meters


def _entering(topology: Topology) -> dict[str, Meter]:
    """Return the counter of the records that enter each node with one parent."""
    meters = _meters_of_sinks(topology)
    for node in reversed(list(topology.nodes.values())):
        children = [child.name for child in topology.children(node.name)]
        child_meter = next(
            (meters[child] for child in children if child in meters and _has_one_parent(topology, child)), None
        )
        if _passes_all(node) and child_meter is not None:
            meters[node.name] = child_meter
    return {name: meter for name, meter in meters.items() if _has_one_parent(topology, name)}


def _meters_of_sinks(topology: Topology) -> dict[str, Meter]:
    """Return the counter of each sink that is the only one of its topic."""
    sinks = [node for node in topology.nodes.values() if isinstance(node, SinkNode)]
    internal = {topic.name for topic in topology.internal_topics}
    writers = Counter(sink.topic for sink in sinks)
    return {
        sink.name: Meter("repartitioned" if sink.topic in internal else "written", sink.topic)
        for sink in sinks
        if isinstance(sink.topic, str) and writers[sink.topic] == 1
    }


def _has_one_parent(topology: Topology, name: str) -> bool:
    return len(parents_of(topology.nodes[name])) == 1


def _is_simple(node: TopologyNode) -> bool:
    """Return whether a node is one statement, which forwards a record to all its children or to none."""
    return isinstance(node, ProcessorNode) and isinstance(node.operator, StatementOperator)


def _passes_all(node: TopologyNode) -> bool:
    """Return whether a node forwards one record per input record: no part of its statement drops records."""
    if not isinstance(node, ProcessorNode) or not isinstance(node.operator, StatementOperator):
        return False
    text = node.operator.statement().text
    return "return" not in text and "{dropped}" not in text
