"""Merges the repartitions after one key-changing operator into one, directly after it (`merge.repartition.topics`).

Operators between the key change and a repartition then read the merged topic. An operator between them that changes
values prevents the merge, since the topic would hold other values. `repartition()` of the user is never merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from kstreams.dsl.graph import (
    GlobalTableJoin,
    Keys,
    LogicalGraph,
    Merge,
    Node,
    Repartition,
    StreamTableJoin,
    reads_current_record,
)

_MERGED = ""
"""The temporary name of the merged repartition, which takes the name of a repartition that is still in the graph."""

Groups = dict[str, list[str]]
"""The names of repartitions, in order of declaration, by the node after which they are merged."""


def merge_repartitions(graph: LogicalGraph) -> LogicalGraph:
    """Return the graph with at most one implicit repartition after each key-changing operator."""
    flow = _Flow(graph)
    for start, repartitions in _after_merges(flow, _by_key_change(flow)).items():
        remaining = [name for name in repartitions if name in flow.nodes]  # an earlier merge may have replaced them
        if remaining:
            flow.replace(start, remaining)
    return LogicalGraph(flow.nodes.values())


class _Flow:
    """A graph whose edges the pass changes."""

    def __init__(self, graph: LogicalGraph) -> None:
        self.nodes = {node.name: node for node in graph}

    def parents(self, name: str) -> tuple[str, ...]:
        """Return the streams that a node reads, without tables in which it looks up rows."""
        node = self.nodes[name]
        return node.parents[:1] if isinstance(node, StreamTableJoin | GlobalTableJoin) else node.parents

    def find(self, name: str, predicate: Callable[[str], bool]) -> str | None:
        """Return the first node before `name` for which the predicate holds; first parents are searched first.

        Kafka Streams searches in this order, so the first one of several merged streams decides.
        """
        pending = [name]
        visited = set[str]()
        while pending:
            current = pending.pop()
            if predicate(current):
                return current
            if current not in visited:
                visited.add(current)
                pending.extend(reversed(self.parents(current)))
        return None

    def find_child(self, name: str, above: str) -> str | None:
        """Return the child of `above` on the path to `name`."""
        return self.find(name, lambda other: above in self.parents(other))

    def replace(self, start: str, repartitions: list[str]) -> None:
        """Insert one repartition after `start`, and remove the repartitions that it replaces.

        For each removed repartition, the path from `start` to it is redirected; if that path is redirected already,
        another path.
        """
        merged = _merged(start, [self.nodes[name] for name in repartitions])
        self.nodes[_MERGED] = replace(merged, parents=())
        for name in repartitions:
            child = self.find_child(name, start)
            if child is not None:
                self._rewire(child, start, _MERGED)
            (parent,) = self.nodes.pop(name).parents
            self._rewire_children(name, parent)
        self._rewire_children(_MERGED, merged.name)
        del self.nodes[_MERGED]
        self.nodes = dict(self._with_merged(start, merged))

    def _rewire_children(self, old: str, new: str) -> None:
        for child in [other.name for other in self.nodes.values() if old in other.parents]:
            self._rewire(child, old, new)

    def _rewire(self, child: str, old: str, new: str) -> None:
        node = self.nodes[child]
        self.nodes[child] = replace(node, parents=tuple(new if parent == old else parent for parent in node.parents))

    def _with_merged(self, start: str, merged: Repartition) -> Iterable[tuple[str, Node]]:
        for name, node in self.nodes.items():
            yield name, node
            if name == start:
                yield merged.name, merged


def _by_key_change(flow: _Flow) -> Groups:
    """Return the repartitions by the key-changing operator before them, unless an operator between prevents a merge."""
    groups: Groups = {name: [] for name, node in flow.nodes.items() if node.keys is Keys.CHANGED}
    for name, node in flow.nodes.items():
        if isinstance(node, Repartition) and not node.explicit:
            nearest = flow.find(name, lambda other: other in groups or _blocks_repartitions(flow.nodes[other]))
            if nearest in groups and nearest == flow.find(name, groups.__contains__):
                groups[nearest].append(name)
    return groups


def _blocks_repartitions(node: Node) -> bool:
    """Return whether no repartition may move before a node."""
    return node.changes_values or reads_current_record(node)


def _after_merges(flow: _Flow, groups: Groups) -> Groups:
    """Group repartitions after a merge of streams by the merge, not by the key-changing operators before it."""
    changes_before = {
        merge: _changes_before(flow, merge, groups) for merge in flow.nodes if _is_merge(flow.nodes[merge])
    }
    merged_changes = {change for changes in changes_before.values() for change in changes}
    other_groups = {change: names for change, names in groups.items() if change not in merged_changes}
    after_merges = {
        merge: [name for change in changes for name in groups[change]] for merge, changes in changes_before.items()
    }
    return other_groups | {merge: list(dict.fromkeys(names)) for merge, names in after_merges.items()}


def _changes_before(flow: _Flow, merge: str, groups: Groups) -> list[str]:
    return [
        change
        for change, repartitions in groups.items()
        if all(flow.find_child(name, merge) for name in repartitions) and flow.find_child(merge, change)
    ]


def _is_merge(node: Node) -> bool:
    return isinstance(node, Merge)


def _merged(start: str, replaced: list[Node]) -> Repartition:
    """Return one repartition for several; it has the topic of the first one."""
    repartitions = [node for node in replaced if isinstance(node, Repartition)]
    first = repartitions[0]
    return replace(
        first,
        name=f"{first.topic}-source",
        parents=(start,),
        filter=f"{first.topic}-filter",
        sink=f"{first.topic}-sink",
        key=next((node.key for node in repartitions if node.key is not None), None),
        value=next((node.value for node in repartitions if node.value is not None), None),
    )
