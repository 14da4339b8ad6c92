"""`arranged`: the layout of an acyclic graph, with the positions of its items and the routes of its edges."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from kstreams.diagram.crossings import untangle
from kstreams.diagram.layers import Edge, Item, Layers, Neighbour, layers_of, ranks_of

_ROUNDS = 24
_STRAIGHT = 6.0  # the weight of an edge between two passages; other edges have the weight 1

Point = tuple[float, float]


class Arrangement(NamedTuple):
    """A layout.

    Parameters
    ----------
    places : dict of str to (float, float)
        The middle of the top edge of each item.
    routes : dict of str to list of (float, float)
        The points of each edge. Curves and vertical lines alternate between them; the first and the last are curves.
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
    """Place items in ranks from top to bottom, by the method of Sugiyama. Equal inputs have equal layouts.

    Parameters
    ----------
    items : sequence of Item
    edges : sequence of Edge
        Without cycles.
    gap, rank_gap : float
        The space between two items of a rank, and between two ranks.
    first, last : collection of str
        The ids of the items in the first rank, and in the last rank.

    Examples
    --------
    >>> layout = arranged([Item("a", 10, 4), Item("b", 10, 4)], [Edge("ab", "a", "b")], gap=2, rank_gap=6)
    >>> layout.places, layout.routes, layout.height
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
    """Return the top and bottom of the rank of each slot, and the height of all ranks."""
    tops: dict[int, tuple[float, float]] = {}
    top = 0.0
    for rank in layers.order:
        height = max((layers.items[slot].height for slot in rank), default=0)
        tops |= {slot: (top, top + height) for slot in rank}
        top += height + rank_gap
    return tops, max(0, top - rank_gap)


def _across(layers: Layers, gap: float) -> dict[int, float]:
    """Return the middle of each slot: close to its neighbours above and below, apart from those in its rank."""
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
    return {slot: round(position - left) for slot, position in positions.items()}


def _moved(
    layers: Layers,
    rank: Sequence[int],
    neighbours: Sequence[Sequence[Neighbour]],
    positions: Mapping[int, float],
    gap: float,
) -> dict[int, float]:
    """Return new positions of a rank, as close to the neighbours as the distances within the rank allow."""
    targets = [
        _target(layers, slot, slot_neighbours, positions)
        for slot, slot_neighbours in zip(rank, neighbours, strict=True)
    ]
    target_positions = [position for position, _ in targets]
    weights = [weight for _, weight in targets]
    return dict(zip(rank, _apart(target_positions, weights, _distances(layers, rank, gap)), strict=True))


def _distances(layers: Layers, rank: Sequence[int], gap: float) -> list[float]:
    widths = [layers.items[slot].width for slot in rank]
    return [(left + right) / 2 + gap for left, right in pairwise(widths)]


def _target(
    layers: Layers, slot: int, neighbours: Sequence[Neighbour], positions: Mapping[int, float]
) -> tuple[float, float]:
    """Return the weighted mean of the positions at which a slot's edges are vertical, and the sum of the weights."""
    is_passage = layers.is_passage(slot)
    weights = [_STRAIGHT if is_passage and layers.is_passage(neighbour.slot) else 1.0 for neighbour in neighbours]
    if not weights:
        return positions[slot], 0.05
    total = sum(weights)
    vertical = (positions[neighbour.slot] + neighbour.there - neighbour.here for neighbour in neighbours)
    return sum(position * weight for position, weight in zip(vertical, weights, strict=True)) / total, total


def _apart(target_positions: Sequence[float], weights: Sequence[float], distances: Sequence[float]) -> list[float]:
    """Return the positions nearest to the targets, by weighted squares, that keep the distances (isotonic regression).

    Examples
    --------
    >>> _apart([0, 0, 50], [1, 1, 1], [10, 10])
    [-5.0, 5.0, 50.0]
    """
    shifts = [0.0]
    for distance in distances:
        shifts.append(shifts[-1] + distance)
    blocks: list[tuple[float, float, int]] = []  # mean, weight and number of positions that moved together
    for target, weight, shift in zip(target_positions, weights, shifts, strict=False):
        mean = target - shift
        block_weight = weight
        count = 1
        while blocks and blocks[-1][0] >= mean:
            other_mean, other_weight, other_count = blocks.pop()
            mean = (mean * block_weight + other_mean * other_weight) / (block_weight + other_weight)
            block_weight = block_weight + other_weight
            count = count + other_count
        blocks.append((mean, block_weight, count))
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
    passages = [(across[slot], side) for slot in layers.chains[edge.id] for side in tops[slot]]
    return [begin, *passages, (across[target] + edge.enters, tops[target][0])]
