"""`arranged`: where the items of a graph without circles stand, and by which points its edges go."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from kstreams.diagram.crossings import untangle
from kstreams.diagram.layers import Edge, Item, Layers, Neighbour, layers_of, ranks_of

_ROUNDS = 24
_STRAIGHT = 6.0  # how much more an edge between two passages is worth than others

Point = tuple[float, float]


class Arrangement(NamedTuple):
    """A layout.

    Parameters
    ----------
    places : dict of str to (float, float)
        By item: the middle of its top.
    routes : dict of str to list of (float, float)
        By edge: its points; curves and vertical lines take turns between them, and it begins and ends with a curve.
    width, height : float
    """

    places: dict[str, Point]
    routes: dict[str, list[Point]]
    width: float
    height: float


def arranged(
    items: Sequence[Item],
    edges: Sequence[Edge],
    *,
    gap: float,
    rank_gap: float,
    first: Collection[str] = (),
    last: Collection[str] = (),
) -> Arrangement:
    """Place items in ranks from top to bottom, as Sugiyama does; the same for the same input.

    Parameters
    ----------
    items : sequence of Item
    edges : sequence of Edge
        Without circles.
    gap, rank_gap : float
        Space between two items of a rank, and between two ranks.
    first, last : collection of str
        What stands in the first and in the last rank.

    Examples
    --------
    >>> found = arranged([Item("a", 10, 4), Item("b", 10, 4)], [Edge("ab", "a", "b")], gap=2, rank_gap=6)
    >>> found.places, found.routes, found.height
    ({'a': (5, 0.0), 'b': (5, 10.0)}, {'ab': [(5.0, 4.0), (5.0, 10.0)]}, 14.0)
    """
    layers = layers_of(items, edges, ranks_of(items, edges, first, last))
    untangle(layers)
    across = _across(layers, gap)
    tops, height = _downwards(layers, rank_gap)
    width = max((across[slot] + item.width / 2 for slot, item in enumerate(layers.items)), default=0)
    slots = {item.id: slot for slot, item in enumerate(layers.items) if item.id}
    places = {name: (across[slot], tops[slot][0]) for name, slot in slots.items()}
    routes = {edge.id: _route(edge, layers, slots, across, tops) for edge in edges}
    return Arrangement(places, routes, width, height)


def _downwards(layers: Layers, rank_gap: float) -> tuple[dict[int, tuple[float, float]], float]:
    """Top and bottom of the rank of each slot, and the height of all."""
    tops: dict[int, tuple[float, float]] = {}
    top = 0.0
    for rank in layers.order:
        deepest = max((layers.items[slot].height for slot in rank), default=0)
        tops |= {slot: (top, top + deepest) for slot in rank}
        top += deepest + rank_gap
    return tops, max(0, top - rank_gap)


def _across(layers: Layers, gap: float) -> dict[int, float]:
    """The middle of each slot: near to its neighbours above and below, in turn, and far enough from those beside it."""
    positions: dict[int, float] = {}
    for rank in layers.order:
        positions |= zip(rank, _apart([0.0] * len(rank), [1.0] * len(rank), _distances(layers, rank, gap)), strict=True)
    for number in range(_ROUNDS):
        is_last = number >= _ROUNDS - 2
        down = number % 2 == 0
        sides = (layers.above, layers.below) if is_last else (layers.above if down else layers.below,)
        for rank in layers.order if down else reversed(layers.order):
            neighbours = [[neighbour for side in sides for neighbour in side[slot]] for slot in rank]
            positions |= _moved(layers, rank, neighbours, positions, gap)
    left = min((positions[slot] - item.width / 2 for slot, item in enumerate(layers.items)), default=0)
    return {slot: round(place - left) for slot, place in positions.items()}


def _moved(
    layers: Layers,
    rank: Sequence[int],
    neighbours: Sequence[Sequence[Neighbour]],
    positions: Mapping[int, float],
    gap: float,
) -> dict[int, float]:
    """Return new positions of a rank: as near to its neighbours as the distances within the rank allow."""
    wishes = [_wish(layers, slot, near, positions) for slot, near in zip(rank, neighbours, strict=True)]
    wished_positions = [position for position, _ in wishes]
    weights = [weight for _, weight in wishes]
    return dict(zip(rank, _apart(wished_positions, weights, _distances(layers, rank, gap)), strict=True))


def _distances(layers: Layers, rank: Sequence[int], gap: float) -> list[float]:
    widths = [layers.items[slot].width for slot in rank]
    return [(left + right) / 2 + gap for left, right in pairwise(widths)]


def _wish(layers: Layers, slot: int, near: Sequence[Neighbour], positions: Mapping[int, float]) -> tuple[float, float]:
    """Where a slot would like to be, and how much that is worth."""
    is_passage = layers.is_passage(slot)
    worth = [_STRAIGHT if is_passage and layers.is_passage(neighbour.slot) else 1.0 for neighbour in near]
    if not worth:
        return positions[slot], 0.05
    total = sum(worth)
    ends = (positions[neighbour.slot] + neighbour.there - neighbour.here for neighbour in near)
    return sum(end * neighbour for end, neighbour in zip(ends, worth, strict=True)) / total, total


def _apart(wished_positions: Sequence[float], weights: Sequence[float], distances: Sequence[float]) -> list[float]:
    """Places nearest to what is wanted, by weighted squares, that keep their distances: isotonic regression.

    Examples
    --------
    >>> _apart([0, 0, 50], [1, 1, 1], [10, 10])
    [-5.0, 5.0, 50.0]
    """
    shifts = [0.0]
    for distance in distances:
        shifts.append(shifts[-1] + distance)
    blocks: list[tuple[float, float, int]] = []  # mean, weight, how many
    for want, weight, shift in zip(wished_positions, weights, shifts, strict=False):
        mean = want - shift
        heavy = weight
        count = 1
        while blocks and blocks[-1][0] >= mean:
            before, other, more = blocks.pop()
            mean = (mean * heavy + before * other) / (heavy + other)
            heavy = heavy + other
            count = count + more
        blocks.append((mean, heavy, count))
    means = [mean for mean, _, count in blocks for _ in range(count)]
    return [mean + shift for mean, shift in zip(means, shifts, strict=False)]


def _route(
    edge: Edge,
    layers: Layers,
    slots: Mapping[str, int],
    across: Mapping[int, float],
    tops: Mapping[int, tuple[float, float]],
) -> list[Point]:
    source = slots[edge.source]
    target = slots[edge.target]
    begin = (across[source] + edge.leaves, tops[source][0] + layers.items[source].height)
    passed = [(across[slot], side) for slot in layers.chains[edge.id] for side in tops[slot]]
    return [begin, *passed, (across[target] + edge.enters, tops[target][0])]
