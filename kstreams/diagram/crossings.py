"""`untangle`: reorders the slots of each rank so that few edges cross."""

from __future__ import annotations

from bisect import bisect_left, insort

from kstreams.diagram.layers import Layers, Neighbour

_ROUNDS = 12
Positions = dict[int, float]


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
    positions = _positions(layers)
    count = 0
    for rank in layers.order:
        earlier_ends: list[float] = []
        ends = sorted(
            (_end(layers, slot, neighbour.here, positions), _end(layers, neighbour.slot, neighbour.there, positions))
            for slot in rank
            for neighbour in layers.below[slot]
        )
        for _, lower in ends:
            count += len(earlier_ends) - bisect_left(earlier_ends, lower + 1e-9)
            insort(earlier_ends, lower)
    return count


def _positions(layers: Layers) -> Positions:
    return {slot: float(index) for rank in layers.order for index, slot in enumerate(rank)}


def _end(layers: Layers, slot: int, offset: float, positions: Positions) -> float:
    """Return the position of the end of an edge in the order of a rank: within the slot, by the offset."""
    return positions[slot] + 0.9 * offset / max(layers.items[slot].width, 1.0)


def _sweep(layers: Layers, *, down: bool) -> None:
    positions = _positions(layers)
    neighbours = layers.above if down else layers.below
    for rank in layers.order if down else reversed(layers.order):
        middles = {slot: _middle(layers, neighbours[slot], positions, positions[slot]) for slot in rank}
        rank.sort(key=lambda slot: (middles[slot], positions[slot]))
        positions |= {slot: float(index) for index, slot in enumerate(rank)}


def _middle(layers: Layers, neighbours: list[Neighbour], positions: Positions, default: float) -> float:
    ends = [_end(layers, neighbour.slot, neighbour.there, positions) for neighbour in neighbours]
    return sum(ends) / len(ends) if ends else default


def _swap_neighbours(layers: Layers) -> None:
    positions = _positions(layers)
    for rank in layers.order:
        for index in range(len(rank) - 1):
            left = rank[index]
            right = rank[index + 1]
            if _crossings_of(layers, right, left, positions) < _crossings_of(layers, left, right, positions):
                rank[index] = right
                rank[index + 1] = left
                positions[left], positions[right] = positions[right], positions[left]


def _crossings_of(layers: Layers, left: int, right: int, positions: Positions) -> int:
    """Return how many edges of two slots cross if `left` is left of `right`."""
    count = 0
    for neighbours in (layers.above, layers.below):
        ends = [
            sorted(_end(layers, neighbour.slot, neighbour.there, positions) for neighbour in neighbours[slot])
            for slot in (left, right)
        ]
        count += sum(bisect_left(ends[1], end) for end in ends[0])
    return count
