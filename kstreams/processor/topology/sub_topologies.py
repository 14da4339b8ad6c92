"""The sub-topologies of a topology: nodes connected by an edge or a shared store, numbered as in Kafka Streams."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from kstreams.processor.topology.barriers import processing_order
from kstreams.processor.topology.nodes import ProcessorNode, SourceNode, SubTopology, TopologyNode, parents_of
from kstreams.state.api import StoreBuilder


class TaskId(NamedTuple):
    """The id of a task: its sub-topology and its partition; as text `<sub-topology>_<partition>`."""

    sub_topology: int
    partition: int

    def __str__(self) -> str:
        return f"{self.sub_topology}_{self.partition}"

    @classmethod
    def parse(cls, text: str) -> TaskId:
        """Parse the text of a task id.

        Examples
        --------
        >>> TaskId.parse("1_3")
        TaskId(sub_topology=1, partition=3)
        """
        sub_topology, _, partition = text.partition("_")
        return cls(int(sub_topology), int(partition))


def split_into_sub_topologies(
    nodes: Mapping[str, TopologyNode], stores: Mapping[str, StoreBuilder], global_stores: Collection[str]
) -> tuple[SubTopology, ...]:
    """Return the connected parts of a topology.

    Parameters
    ----------
    nodes : mapping of str to TopologyNode
        Parents before children.
    stores : mapping of str to StoreBuilder
        All stores by name.
    global_stores : collection of str
        The stores that connect no nodes, since every task may read them.
    """
    group_of = _groups(nodes, set(global_stores))
    members: dict[str, list[TopologyNode]] = {}  # in the order in which their first nodes were added
    for name, node in nodes.items():
        members.setdefault(group_of[name], []).append(node)
    parts = [_sub_topology(number, part, stores, global_stores) for number, part in enumerate(members.values())]
    places = _places(parts)
    return tuple(replace(part, place=places[part.id]) for part in parts)


def _places(parts: Collection[SubTopology]) -> dict[int, int]:
    """Return the position of each part in the order of processing; parts that feed each other have the same one."""
    read = {part.id: {topic for source in part.sources for topic in source.topics} for part in parts}
    written = {part.id: {sink.topic for sink in part.sinks} for part in parts}
    upstream = {number: {part for part in written if written[part] & topics} for number, topics in read.items()}
    return {part: place for place, group in enumerate(processing_order(upstream)) for part in group}


def _groups(nodes: Mapping[str, TopologyNode], global_stores: Collection[str]) -> dict[str, str]:
    """Return the representative of each node's part (union-find)."""
    leader = {name: name for name in nodes}

    def root(name: str) -> str:
        while leader[name] != name:
            leader[name] = leader[leader[name]]
            name = leader[name]
        return name

    for first, other in _edges(nodes, global_stores):
        leader[root(other)] = root(first)
    return {name: root(name) for name in nodes}


def _edges(nodes: Mapping[str, TopologyNode], global_stores: Collection[str]) -> Iterator[tuple[str, str]]:
    owner: dict[str, str] = {}
    for name, node in nodes.items():
        for parent in parents_of(node):
            yield parent, name
        stores = node.stores if isinstance(node, ProcessorNode) else ()
        for store in stores:
            if store not in global_stores:
                yield owner.setdefault(store, name), name


def _sub_topology(
    number: int, nodes: list[TopologyNode], stores: Mapping[str, StoreBuilder], global_stores: Collection[str]
) -> SubTopology:
    used = dict.fromkeys(store for node in nodes if isinstance(node, ProcessorNode) for store in node.stores)
    # A join reads a global table without owning it: only the part that writes the table is global.
    steps = [node for node in nodes if not isinstance(node, SourceNode)]
    is_global = bool(steps) and all(_writes_global(node, global_stores) for node in steps)
    own = tuple(stores[name] for name in used if is_global or name not in global_stores)
    return SubTopology(number, tuple(nodes), own, is_global)


def _writes_global(node: TopologyNode, global_stores: Collection[str]) -> bool:
    return (
        isinstance(node, ProcessorNode) and bool(node.stores) and all(store in global_stores for store in node.stores)
    )
