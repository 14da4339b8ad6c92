"""`picture_of`: the layout of a drawing, first inside each box, then of boxes and topics together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from kstreams.diagram.arrangement import Arrangement, Point, arranged
from kstreams.diagram.cards import Box, Card, Drawing, Wire
from kstreams.diagram.labels import text_width
from kstreams.diagram.layers import Edge, Item

CARD_HEIGHT = 40.0
LABEL_SIZE = 12.5
DETAIL_SIZE = 10.5
_PADDING = 18.0
_TITLE = 30.0
_MARGIN = 12.0
_LEAST_WIDTH = 96.0
_ROW_WIDTH = 1_500.0
TITLE_INSET = 14.0
_TITLE_SIZE = 14.0  # larger than the font, because bold letters are wider
_TITLE_BESIDE = "12 tasks · 12 threads · 3 instances"  # the longest text that the page shows beside the title of a box


class Placed(NamedTuple):
    """A card or box with its position and size."""

    content: Card | Box
    left: float
    top: float
    width: float
    height: float

    def moved(self, right: float, down: float) -> Placed:
        """Return a copy at another position."""
        return self._replace(left=self.left + right, top=self.top + down)


class Drawn(NamedTuple):
    """A wire with its points (see `Arrangement`)."""

    wire: Wire
    points: tuple[Point, ...]

    def moved(self, right: float, down: float) -> Drawn:
        """Return a copy at another position."""
        return self._replace(points=tuple((x + right, y + down) for x, y in self.points))


class Picture(NamedTuple):
    """The boxes, cards and wires of a drawing, with positions."""

    boxes: tuple[Placed, ...]
    cards: tuple[Placed, ...]
    wires: tuple[Drawn, ...]
    width: float
    height: float

    def moved(self, right: float, down: float) -> Picture:
        """Return a copy at another position."""
        boxes, cards = (tuple(placed.moved(right, down) for placed in part) for part in (self.boxes, self.cards))
        return Picture(boxes, cards, tuple(placed.moved(right, down) for placed in self.wires), self.width, self.height)


def picture_of(drawing: Drawing) -> Picture:
    """Return the layout of a drawing. Parts without a connection are side by side, in rows.

    Examples
    --------
    >>> picture_of(Drawing((), (), ())).cards
    ()
    """
    parts = [_part(part) for part in _connected(drawing)]
    return _in_rows(parts)


def _connected(drawing: Drawing) -> list[Drawing]:
    """Return the connected parts of a drawing, in the order of their boxes."""
    part = {f"box:{box.number}": {f"box:{box.number}"} for box in drawing.boxes}
    part |= {topic.id: {topic.id} for topic in drawing.topics}
    home = _homes(drawing)
    for wire in drawing.wires:
        joined = part[home.get(wire.source, wire.source)] | part[home.get(wire.target, wire.target)]
        part |= dict.fromkeys(joined, joined)
    parts = {id(ids): ids for ids in part.values()}.values()
    return [
        Drawing(
            tuple(box for box in drawing.boxes if f"box:{box.number}" in ids),
            tuple(topic for topic in drawing.topics if topic.id in ids),
            tuple(wire for wire in drawing.wires if home.get(wire.source, wire.source) in ids),
        )
        for ids in parts
    ]


def _homes(drawing: Drawing) -> dict[str, str]:
    return {card.id: f"box:{box.number}" for box in drawing.boxes for card in box.cards}


def _part(drawing: Drawing) -> Picture:
    inside = {f"box:{box.number}": _inside(box) for box in drawing.boxes}
    home = _homes(drawing)
    ports = {
        placed.content.id: placed.left + placed.width / 2 - picture.width / 2
        for picture in inside.values()
        for placed in picture.cards
        if isinstance(placed.content, Card)
    }
    items = [Item(name, picture.width, picture.height) for name, picture in inside.items()]
    items += [_item(topic) for topic in drawing.topics]
    edges = [
        Edge(
            wire.id,
            home.get(wire.source, wire.source),
            home.get(wire.target, wire.target),
            ports.get(wire.source, 0.0),
            ports.get(wire.target, 0.0),
        )
        for wire in drawing.wires
    ]
    return _composed(drawing, inside, arranged(items, edges, gap=28, rank_gap=46))


def _inside(box: Box) -> Picture:
    """Return the layout of a box, with its upper left corner at 0, 0."""
    kinds = {kind: {card.id for card in box.cards if card.kind == kind} for kind in ("source", "sink")}
    arrangement = arranged(
        [_item(card) for card in box.cards],
        [Edge(wire.id, wire.source, wire.target) for wire in box.wires],
        gap=22,
        rank_gap=40,
        first=kinds["source"],
        last=kinds["sink"],
    )
    entered = [arrangement.places[card][0] for card in kinds["source"]]
    left, right = _beside_titles(box.title, entered, arrangement.width)
    width = 2 * round((left + arrangement.width + right) / 2)
    height = arrangement.height + _TITLE + _PADDING
    cards = tuple(_placed(card, arrangement.places[card.id]).moved(left, _TITLE) for card in box.cards)
    wires = tuple(Drawn(wire, tuple(arrangement.routes[wire.id])).moved(left, _TITLE) for wire in box.wires)
    return Picture((Placed(box, 0.0, 0.0, width, height),), cards, wires, width, height)


def title_places(picture: Picture) -> Iterator[tuple[float, float, float, float]]:
    """Yield left, top, width and height of the texts at the top of boxes."""
    live = text_width(_TITLE_BESIDE, DETAIL_SIZE)
    for placed in picture.boxes:
        assert isinstance(placed.content, Box)
        title = text_width(placed.content.title, _TITLE_SIZE)
        yield placed.left + TITLE_INSET, placed.top, title, _TITLE
        yield placed.left + placed.width - TITLE_INSET - live, placed.top, live, _TITLE


def _beside_titles(title: str, entered: Sequence[float], width: float) -> tuple[float, float]:
    """Return the space left and right of a box's contents, so that wires into the box pass between its two titles."""
    title_width = text_width(title, _TITLE_SIZE)
    live_width = text_width(_TITLE_BESIDE, DETAIL_SIZE)
    first = min(entered, default=width / 2)
    last = max(entered, default=width / 2)
    left = 2 * TITLE_INSET + title_width - first
    right = 2 * TITLE_INSET + live_width - (width - last)
    return max(_PADDING, left), max(_PADDING, right)


def _composed(drawing: Drawing, inside: Mapping[str, Picture], arrangement: Arrangement) -> Picture:
    moved = [
        picture.moved(arrangement.places[name][0] - picture.width / 2, arrangement.places[name][1])
        for name, picture in inside.items()
    ]
    topics = [_placed(topic, arrangement.places[topic.id]) for topic in drawing.topics]
    boxes = [box for picture in moved for box in picture.boxes]
    cards = [*(card for picture in moved for card in picture.cards), *topics]
    tops = {card.content.id: card for card in cards if isinstance(card.content, Card)}
    between = [Drawn(wire, _to_cards(wire, arrangement.routes[wire.id], tops)) for wire in drawing.wires]
    wires = [*(wire for picture in moved for wire in picture.wires), *between]
    return Picture(tuple(boxes), tuple(cards), tuple(wires), arrangement.width, arrangement.height)


def _to_cards(wire: Wire, points: Sequence[Point], cards: Mapping[str, Placed]) -> tuple[Point, ...]:
    """Return a route that continues inside the boxes to the cards, with a vertical line at both ends."""
    source = cards[wire.source]
    target = cards[wire.target]
    begin = points[0][0], source.top + source.height
    return (begin, *points, (points[-1][0], target.top))


def _in_rows(parts: Sequence[Picture]) -> Picture:
    """Place parts side by side, in rows of similar width."""
    limit = max((_ROW_WIDTH, *(part.width for part in parts)))
    left = 0.0
    top = 0.0
    height = 0.0
    right = 0.0
    moved = []
    for part in parts:
        if left and left + part.width > limit:
            left = 0.0
            top = top + height + 40
            height = 0.0
        moved.append(part.moved(left + _MARGIN, top + _MARGIN))
        right = max(right, left + part.width)
        left = left + part.width + 40
        height = max(height, part.height)
    return Picture(*_combined(moved), right + 2 * _MARGIN, top + height + 2 * _MARGIN)


def _combined(parts: Iterable[Picture]) -> tuple[tuple[Placed, ...], tuple[Placed, ...], tuple[Drawn, ...]]:
    parts = list(parts)
    return (
        tuple(box for part in parts for box in part.boxes),
        tuple(card for part in parts for card in part.cards),
        tuple(drawn for part in parts for drawn in part.wires),
    )


def _item(card: Card) -> Item:
    width = max(text_width(card.label, LABEL_SIZE), text_width(card.detail, DETAIL_SIZE))
    return Item(card.id, 2 * round(max(_LEAST_WIDTH, width + 26) / 2), CARD_HEIGHT)


def _placed(card: Card, place: Point) -> Placed:
    item = _item(card)
    return Placed(card, place[0] - item.width / 2, place[1], item.width, item.height)
