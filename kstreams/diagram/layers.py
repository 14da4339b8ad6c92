"""`Layers`: the items of an acyclic graph in ranks from top to bottom, with slots for edges that pass ranks."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple


class Item(NamedTuple):
    """A rectangle of the layout."""

    id: str
    width: float
    height: float


class Edge(NamedTuple):
    """A connection from the bottom of an item to the top of another, at offsets from their middles."""

    id: str
    source: str
    target: str
    leaves: float = 0.0
    enters: float = 0.0


class Neighbour(NamedTuple):
    """A neighbour of a slot, with the offsets of the edge at the neighbour (`there`) and at the slot (`here`)."""

    slot: int
    there: float
    here: float


@dataclass(slots=True)
class Layers:
    """Slots, numbered by their index in `items`: all items, then a slot for each rank that an edge passes.

    Parameters
    ----------
    items : list of Item
        Slots of edges have no id and no height.
    order : list of list of int
        The slots of each rank from left to right.
    above, below : list of list of Neighbour
        The neighbours of each slot.
    chains : dict of str to list of int
        The slots at which each edge passes ranks.
    """

    items: list[Item]
    order: list[list[int]]
    above: list[list[Neighbour]] = field(default_factory=list)
    below: list[list[Neighbour]] = field(default_factory=list)
    chains: dict[str, list[int]] = field(default_factory=dict)

    def is_passage(self, slot: int) -> bool:
        """Return whether the slot is that of an edge."""
        return not self.items[slot].id


_PASSAGE = Item("", 8.0, 0.0)


def ranks_of(
    items: Sequence[Item], edges: Sequence[Edge], first: Collection[str] = (), last: Collection[str] = ()
) -> dict[str, int]:
    """Return the rank of each item: below all its parents, and close to its children.

    Parameters
    ----------
    items : sequence of Item
    edges : sequence of Edge
        Without cycles.
    first, last : collection of str
        The ids of the items in the first rank, and in the last rank.

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
    """Return the slots of each rank, in the order of the items."""
    layers = Layers(list(items), [[] for _ in range(max(ranks.values(), default=-1) + 1)])
    slots = {item.id: number for number, item in enumerate(items)}
    for item in items:
        layers.order[ranks[item.id]].append(slots[item.id])
    for edge in edges:
        passed_ranks = range(ranks[edge.source] + 1, ranks[edge.target])
        layers.chains[edge.id] = [_add_passage(layers, rank) for rank in passed_ranks]
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


def _add_passage(layers: Layers, rank: int) -> int:
    layers.items.append(_PASSAGE)
    layers.order[rank].append(len(layers.items) - 1)
    return len(layers.items) - 1
