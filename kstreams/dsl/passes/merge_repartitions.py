"""Repartitions that follow from one change of keys become one, right behind it (`merge.repartition.topics`).

What stands between the change and a repartition then runs behind the topic. An operator that changes values
between the two prevents it: the topic would hold other values. `repartition()` of the user is never merged.
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
"""Stands for the new repartition as long as those are there that it may take its name from."""

Groups = dict[str, list[str]]
"""By the node behind which they are merged: names of repartitions, in order of declaration."""


def merge_repartitions(graph: LogicalGraph) -> LogicalGraph:
    """The graph with one repartition behind each change of keys that needs some."""
    flow = _Flow(graph)
    for start, repartitions in _behind_merges(flow, _by_change_of_keys(flow)).items():
        remaining = [name for name in repartitions if name in flow.nodes]  # of two merges, the first has taken them
        if remaining:
            flow.replace(start, remaining)
    return LogicalGraph(flow.nodes.values())


class _Flow:
    """A graph that is being rewired."""

    def __init__(self, graph: LogicalGraph) -> None:
        self.nodes = {node.name: node for node in graph}

    def parents(self, name: str) -> tuple[str, ...]:
        """The streams a node reads; a table that is only looked into is none."""
        node = self.nodes[name]
        return node.parents[:1] if isinstance(node, StreamTableJoin | GlobalTableJoin) else node.parents

    def find(self, name: str, predicate: Callable[[str], bool]) -> str | None:
        """The first node that is wanted from `name` upwards: all behind a node's first parent comes before its second.

        Kafka Streams looks in this order, so the first of several streams merged decides.
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
        """The child of `above` on the path down to `name`."""
        return self.find(name, lambda other: above in self.parents(other))

    def replace(self, start: str, repartitions: list[str]) -> None:
        """Put one repartition behind `start`, and take away those that it stands for.

        Each in turn redirects the path that leads to it; where a path was redirected already, another one is taken.
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
        self.nodes = dict(self._with_behind(start, merged))

    def _rewire_children(self, old: str, new: str) -> None:
        for child in [other.name for other in self.nodes.values() if old in other.parents]:
            self._rewire(child, old, new)

    def _rewire(self, child: str, old: str, new: str) -> None:
        node = self.nodes[child]
        self.nodes[child] = replace(node, parents=tuple(new if parent == old else parent for parent in node.parents))

    def _with_behind(self, start: str, merged: Repartition) -> Iterable[tuple[str, Node]]:
        for name, node in self.nodes.items():
            yield name, node
            if name == start:
                yield merged.name, merged


def _by_change_of_keys(flow: _Flow) -> Groups:
    """Repartitions by the change of keys before them, if nothing between the two prevents that they move there."""
    groups: Groups = {name: [] for name, node in flow.nodes.items() if node.keys is Keys.CHANGED}
    for name, node in flow.nodes.items():
        if isinstance(node, Repartition) and not node.explicit:
            nearest = flow.find(name, lambda other: other in groups or _stands_behind(flow.nodes[other]))
            if nearest in groups and nearest == flow.find(name, groups.__contains__):
                groups[nearest].append(name)
    return groups


def _stands_behind(node: Node) -> bool:
    """Whether no repartition may move before a node."""
    return node.changes_values or reads_current_record(node)


def _behind_merges(flow: _Flow, groups: Groups) -> Groups:
    """Repartitions behind a merge of streams stand behind the merge, not behind changes of keys before it."""
    changes_before = {
        merge: _changes_before(flow, merge, groups) for merge in flow.nodes if _is_merge(flow.nodes[merge])
    }
    gone = {change for changes in changes_before.values() for change in changes}
    remaining = {change: repartitions for change, repartitions in groups.items() if change not in gone}
    behind = {
        merge: [name for change in changes for name in groups[change]] for merge, changes in changes_before.items()
    }
    return remaining | {merge: list(dict.fromkeys(names)) for merge, names in behind.items()}


def _changes_before(flow: _Flow, merge: str, groups: Groups) -> list[str]:
    return [
        change
        for change, repartitions in groups.items()
        if all(flow.find_child(name, merge) for name in repartitions) and flow.find_child(merge, change)
    ]


def _is_merge(node: Node) -> bool:
    return isinstance(node, Merge)


def _merged(start: str, replaced: list[Node]) -> Repartition:
    """One repartition for several: the topic of the first of them."""
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
