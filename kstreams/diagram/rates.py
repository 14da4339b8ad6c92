"""`rate_places`: the position of each wire's number, beside the wire and apart from cards, titles and other numbers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from kstreams.diagram.arrangement import Point
from kstreams.diagram.cards import STORE_WIRE, TOPIC_WIRE
from kstreams.diagram.picture import Drawn, Picture, title_places

# the size of a number such as 12.3k/s, from the start of its baseline
_WIDTH = 48.0
_ABOVE = 10.0
_BELOW = 2.0
_ASIDE = 7.0
_STEEP = 20.0


class RatePlace(NamedTuple):
    """The start of a number's baseline, or its end if the number is left of its wire."""

    x: float
    y: float
    at_left: bool

    def area(self) -> Area:
        """Return the area of the number."""
        left = self.x - _WIDTH if self.at_left else self.x
        return Area(left, self.y - _ABOVE, left + _WIDTH, self.y + _BELOW)


class Area(NamedTuple):
    """A rectangle: left, top, right, bottom."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: Area) -> bool:
        """Return whether two areas overlap."""
        beside = self.right <= other.left or other.right <= self.left
        return not (beside or self.bottom <= other.top or other.bottom <= self.top)


def rate_places(picture: Picture) -> dict[str, RatePlace]:
    """Return the position of the number of each wire. Wires to stores have none.

    Examples
    --------
    >>> rate_places(Picture((), (), (), 0, 0))
    {}
    """
    areas = [Area(card.left, card.top, card.left + card.width, card.top + card.height) for card in picture.cards]
    areas += [Area(left, top, left + width, top + height) for left, top, width, height in title_places(picture)]
    places: dict[str, RatePlace] = {}
    for drawn in picture.wires:
        if drawn.wire.kind != STORE_WIRE:
            candidates = list(_candidates(drawn))
            free = (place for place in candidates if not any(place.area().overlaps(other) for other in areas))
            place = next(free, candidates[0])
            places[drawn.wire.id] = place
            areas.append(place.area())
    return places


def _candidates(drawn: Drawn) -> Iterator[RatePlace]:
    """Yield positions at both sides of a wire, from its last part to its first, and close to the end of a curve."""
    is_line = drawn.wire.kind == TOPIC_WIRE
    parts = []
    for start, end in pairwise(drawn.points):
        if end[1] > start[1]:
            parts.append((start, end, is_line))
        is_line = not is_line
    for start, end, straight in reversed(parts):
        is_steep = abs(end[0] - start[0]) < _STEEP
        comes_from_right = not is_steep and start[0] > end[0]
        for at_left in (comes_from_right, not comes_from_right):
            for along in (0.5, 0.8, 0.2) if is_steep else (0.8, 0.5, 0.2):
                x, y = _point(start, end, along, straight)
                yield RatePlace(x - _ASIDE if at_left else x + _ASIDE, y + 4, at_left)


def _point(start: Point, end: Point, along: float, straight: bool) -> Point:
    """Return a point of a line, or of a curve with vertical ends."""
    (x, y) = start
    (to_x, to_y) = end
    bent = 3 * along**2 - 2 * along**3
    down = along if straight else 1.5 * along * (1 - along) + along**3
    return x + (to_x - x) * (along if straight else bent), y + (to_y - y) * down
