"""`Layers`: items of a graph without circles, rank by rank from top to bottom, and slots for edges that pass ranks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple


class Item(NamedTuple):
    """Something with a size that is placed."""

    id: str
    width: float
    height: float


class Edge(NamedTuple):
    """Leads from the bottom of an item to the top of another, at offsets from their middles."""

    id: str
    source: str
    target: str
    leaves: float = 0.0
    enters: float = 0.0


class Neighbour(NamedTuple):
    """A neighbour of a slot: where the edge is at the neighbour, and at the slot itself."""

    slot: int
    there: float
    here: float


@dataclass(slots=True)
class Layers:
    """Slots, the numbers of which are their places in `items`: first all items, then one for each rank an edge passes.

    Parameters
    ----------
    items : list of Item
        Slots of edges have no id and no height.
    order : list of list of int
        The slots of each rank from left to right.
    above, below : list of list of Near
        The neighbours of each slot.
    chains : dict of str to list of int
        The slots by which each edge passes ranks.
    """

    items: list[Item]
    order: list[list[int]]
    above: list[list[Neighbour]] = field(default_factory=list)
    below: list[list[Neighbour]] = field(default_factory=list)
    chains: dict[str, list[int]] = field(default_factory=dict)

    def is_passage(self, slot: int) -> bool:
        """Whether only an edge is there."""
        return not self.items[slot].id


_PASSAGE = Item("", 8.0, 0.0)


def ranks_of(
    items: Sequence[Item], edges: Sequence[Edge], first: Collection[str] = (), last: Collection[str] = ()
) -> dict[str, int]:
    """The rank of each item: below all from which an edge leads to it, and near to those to which one leads.

    Parameters
    ----------
    items : sequence of Item
    edges : sequence of Edge
        Without circles.
    first, last : collection of str
        What stands at the top and at the bottom.

    Examples
    --------
    >>> a, b, c = (Item(name, 1, 1) for name in "abc")
    >>> ranks_of([a, b, c], [Edge("1", "a", "b"), Edge("2", "b", "c")])
    {'a': 0, 'b': 1, 'c': 2}
    """
    parents: dict[str, list[str]] = {item.id: [] for item in items}
    children: dict[str, list[str]] = {item.id: [] for item in items}
    for edge in edges:
        parents[edge.target].append(edge.source)
        children[edge.source].append(edge.target)
    ranks: dict[str, int] = {}
    for name in _parents_first(parents):
        ranks[name] = max((ranks[parent] + 1 for parent in parents[name]), default=0)
    for name in ranks:
        if not parents[name] and children[name] and name not in first:
            ranks[name] = min(ranks[child] for child in children[name]) - 1
    lowest = max(ranks.values(), default=0)
    return {item.id: lowest if item.id in last else ranks[item.id] for item in items}


def _parents_first(parents: Mapping[str, Sequence[str]]) -> list[str]:
    finished: dict[str, None] = {}
    pending = [(name, False) for name in reversed(list(parents))]
    while pending:
        name, parents_done = pending.pop()
        if name in finished:
            continue
        if parents_done:
            finished[name] = None
        else:
            pending.append((name, True))
            pending += ((parent, False) for parent in reversed(parents[name]) if parent not in finished)
    return list(finished)


def layers_of(items: Sequence[Item], edges: Sequence[Edge], ranks: Mapping[str, int]) -> Layers:
    """The slots, in the order in which items are named."""
    layers = Layers(list(items), [[] for _ in range(max(ranks.values(), default=-1) + 1)])
    slots = {item.id: number for number, item in enumerate(items)}
    for item in items:
        layers.order[ranks[item.id]].append(slots[item.id])
    for edge in edges:
        passed = range(ranks[edge.source] + 1, ranks[edge.target])
        layers.chains[edge.id] = [_passage(layers, rank) for rank in passed]
    layers.above += ([] for _ in layers.items)
    layers.below += ([] for _ in layers.items)
    for edge in edges:
        path = [slots[edge.source], *layers.chains[edge.id], slots[edge.target]]
        for upper, lower in pairwise(path):
            out = edge.leaves if upper == path[0] else 0.0
            into = edge.enters if lower == path[-1] else 0.0
            layers.below[upper].append(Neighbour(lower, into, out))
            layers.above[lower].append(Neighbour(upper, out, into))
    return layers


def _passage(layers: Layers, rank: int) -> int:
    layers.items.append(_PASSAGE)
    layers.order[rank].append(len(layers.items) - 1)
    return len(layers.items) - 1
