"""Where relational sub-topologies and those in tasks hand records to each other, and why they part there. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from kstreams.processor.topology.topology import Topology

Borders = Mapping[tuple[int, str], str]
"""By sub-topology and operator: what to say of the topic that the operator writes or reads."""


def borders(topology: Topology, reasons: Mapping[int, str], relational: Collection[int]) -> Borders:
    """The borders of a topology.

    Parameters
    ----------
    reasons : mapping of int to str
        The path of each sub-topology, and why.
    relational : collection of int
        Those on the relational path.
    """
    borders_of_nodes: dict[tuple[int, str], str] = {}
    for topic, sink, writer, source, reader in _meetings(topology):
        if (writer in relational) != (reader in relational):
            borders_of_nodes[writer, sink] = f"{topic} goes to sub-topology {reader}, which {reasons[reader]}"
            borders_of_nodes[reader, source] = f"{topic} comes from sub-topology {writer}, which {reasons[writer]}"
    return borders_of_nodes


def _meetings(topology: Topology) -> Iterator[tuple[str, str, int, str, int]]:
    """Each topic within the application: who writes it, who reads it."""
    written = [(sink.topic, sink.name, sub.id) for sub in topology.sub_topologies for sink in sub.sinks]
    for sub in topology.sub_topologies:
        for source in sub.sources:
            for topic, sink, writer in written:
                if topic in source.topics:
                    yield str(topic), _operator(topology, sink), writer, _operator(topology, source.name), sub.id


def _operator(topology: Topology, name: str) -> str:
    return topology.origin.get(name, name)
