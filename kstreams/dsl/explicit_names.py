"""Refuses topologies in which stores or repartition topics have generated names (KIP-1111).

A generated name holds a number that counts operators: whoever inserts an operator renames all that follow, and their
state is lost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from kstreams.dsl.operator import operators
from kstreams.errors import TopologyError
from kstreams.processor.topology.nodes import ProcessorNode, SinkNode
from kstreams.processor.topology.topology import Topology

_ENDINGS = ("-store", "-repartition", "-topic", "-Buffer")


def check_explicit_names(topology: Topology, generated: Collection[str]) -> None:
    """Check that the user named everything that outlives a run.

    Parameters
    ----------
    topology : Topology
    generated : collection of str
        The names that were made up.

    Raises
    ------
    TopologyError
        Lists every store and repartition topic without a name, its operator and the line to name it at.
    """
    unnamed = [*_unnamed_stores(topology, generated), *_unnamed_topics(topology, generated)]
    if unnamed:
        listed = "\n".join(f"  {line}" for line in unnamed)
        raise TopologyError(
            "ensure.explicit.internal.resource.naming is set, but these have generated names, which change with the "
            f"topology:\n{listed}"
        )


def _unnamed_stores(topology: Topology, generated: Collection[str]) -> Iterator[str]:
    for store in topology.stores:
        if _is_generated(store, generated):
            owner = next(
                node for node in topology.nodes.values() if isinstance(node, ProcessorNode) and store in node.stores
            )
            operator = topology.graph[topology.origin[owner.name]]
            yield f"state store {store} of {operator}: give {operators.of(operator).store_named_by}"


def _unnamed_topics(topology: Topology, generated: Collection[str]) -> Iterator[str]:
    for topic in (topic.name for topic in topology.repartition_topics):
        if _is_generated(topic, generated):
            sinks = (node for node in topology.nodes.values() if isinstance(node, SinkNode) and node.topic == topic)
            operator = topology.graph[topology.origin[next(sinks).name]]
            yield f"repartition topic {topic} of {operator}: give name= to the grouping, join or repartition"


def _is_generated(name: str, generated: Collection[str]) -> bool:
    return name in generated or any(name.removesuffix(ending) in generated for ending in _ENDINGS)
