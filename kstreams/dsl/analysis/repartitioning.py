"""Whether records are still in the partition of their key; if not, grouping or joining must repartition."""

from __future__ import annotations

from collections.abc import Mapping

from kstreams.dsl.graph.node import Keys, Node


def repartition_required(nodes: Mapping[str, Node], node: Node) -> bool:
    """Whether a key was changed on any path to `node` since keys were last in place.

    Parameters
    ----------
    nodes : mapping of str to Node
        The graph so far.
    node : Node
        Whose output is to be grouped or joined.
    """
    pending = [node]
    visited = {node.name}
    while pending:
        current = pending.pop()
        if current.keys is Keys.CHANGED:
            return True
        if current.keys is Keys.KEPT:
            parents = [nodes[name] for name in current.parents if name not in visited]
            visited.update(parent.name for parent in parents)
            pending.extend(parents)
    return False
