"""`untangle`: reorders the slots of each rank so that few edges cross."""

from __future__ import annotations

from bisect import bisect_left, insort

from kstreams.diagram.layers import Layers, Neighbour

_ROUNDS = 12
Places = dict[int, float]


def untangle(layers: Layers) -> None:
    """Order the slots of each rank by their neighbours above and below, and use the order with the fewest crossings."""
    best = [list(rank) for rank in layers.order]
    fewest = crossings(layers)
    for number in range(_ROUNDS):
        if fewest == 0:
            break
        _sweep(layers, down=number % 2 == 0)
        _swap_neighbours(layers)
        count = crossings(layers)
        if count < fewest:
            best = [list(rank) for rank in layers.order]
            fewest = count
    layers.order[:] = best


def crossings(layers: Layers) -> int:
    """Return the number of pairs of edges that cross.

    Examples
    --------
    >>> from kstreams.diagram.layers import Edge, Item, layers_of
    >>> items, edges = [Item(name, 1, 1) for name in "abxy"], [Edge("1", "a", "y"), Edge("2", "b", "x")]
    >>> crossings(layers_of(items, edges, {"a": 0, "b": 0, "x": 1, "y": 1}))
    1
    """
    places = _places(layers)
    count = 0
    for rank in layers.order:
        earlier_ends: list[float] = []
        ends = sorted(
            (_end(layers, slot, near.here, places), _end(layers, near.slot, near.there, places))
            for slot in rank
            for near in layers.below[slot]
        )
        for _, lower in ends:
            count += len(earlier_ends) - bisect_left(earlier_ends, lower + 1e-9)
            insort(earlier_ends, lower)
    return count


def _places(layers: Layers) -> Places:
    return {slot: float(place) for rank in layers.order for place, slot in enumerate(rank)}


def _end(layers: Layers, slot: int, offset: float, places: Places) -> float:
    """Return the position of the end of an edge in the order of a rank: within the slot, by the offset."""
    return places[slot] + 0.9 * offset / max(layers.items[slot].width, 1.0)


def _sweep(layers: Layers, *, down: bool) -> None:
    places = _places(layers)
    neighbours = layers.above if down else layers.below
    for rank in layers.order if down else reversed(layers.order):
        middles = {slot: _middle(layers, neighbours[slot], places, places[slot]) for slot in rank}
        rank.sort(key=lambda slot: (middles[slot], places[slot]))
        places |= {slot: float(place) for place, slot in enumerate(rank)}


def _middle(layers: Layers, near: list[Neighbour], places: Places, default: float) -> float:
    ends = [_end(layers, neighbour.slot, neighbour.there, places) for neighbour in near]
    return sum(ends) / len(ends) if ends else default


def _swap_neighbours(layers: Layers) -> None:
    places = _places(layers)
    for rank in layers.order:
        for place in range(len(rank) - 1):
            left = rank[place]
            right = rank[place + 1]
            if _between(layers, right, left, places) < _between(layers, left, right, places):
                rank[place] = right
                rank[place + 1] = left
                places[left], places[right] = places[right], places[left]


def _between(layers: Layers, left: int, right: int, places: Places) -> int:
    """Return how many edges of two slots cross if `left` stands left of `right`."""
    count = 0
    for near in (layers.above, layers.below):
        ends = [
            sorted(_end(layers, neighbour.slot, neighbour.there, places) for neighbour in near[slot])
            for slot in (left, right)
        ]
        count += sum(bisect_left(ends[1], end) for end in ends[0])
    return count
