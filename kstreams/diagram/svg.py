"""`as_svg`: a topology as an SVG picture, light or dark like the reader's system, with names for screen readers.

The page with live numbers selects cards by `data-id` and wires by `data-wire`, and fills empty texts with numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from itertools import pairwise
from typing import TypeAlias
from xml.sax.saxutils import escape, quoteattr

from kstreams.diagram.cards import STORE_WIRE, TOPIC_WIRE, Box, Card, drawing_of
from kstreams.diagram.meters import Meter, meters_of
from kstreams.diagram.picture import TITLE_INSET, Drawn, Picture, Placed, picture_of
from kstreams.diagram.rates import RatePlace, rate_places
from kstreams.processor.topology.topology import Topology

Meters: TypeAlias = Mapping[tuple[str, str], Meter]
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ROUND = {"topic": 20, "source": 6, "processor": 6, "sink": 6}


def stylesheet() -> str:
    """Return the stylesheet of the picture, which is also part of the page."""
    return files("kstreams.diagram").joinpath("diagram.css").read_text(encoding="utf-8")


def as_svg(topology: Topology, title: str = "Topology") -> str:
    """Return a topology as an SVG document.

    Parameters
    ----------
    topology : Topology
    title : str

    Examples
    --------
    >>> topology = Topology().add_source("in", "words", key=str, value=str)
    >>> print(as_svg(topology)[:4])
    <svg
    """
    picture = picture_of(drawing_of(topology))
    meters = meters_of(topology)
    return "\n".join(_document(picture, meters, title, _about(topology))) + "\n"


def _about(topology: Topology) -> str:
    parts = topology.sub_topologies
    nodes = sum(len(part.nodes) for part in parts)
    return f"{len(parts)} sub-topologies with {nodes} nodes and {len(topology.stores)} stores"


def _document(picture: Picture, meters: Meters, title: str, about: str) -> Iterator[str]:
    width, height = (f"{length:.0f}" for length in (picture.width, picture.height))
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="topology" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="group" aria-labelledby="topology-title topology-about">'
    )
    yield f'<title id="topology-title">{_text(title)}</title><desc id="topology-about">{_text(about)}</desc>'
    yield f"<style>\n{stylesheet()}</style>"
    yield (
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'orient="auto"><path class="arrow" d="M0 .8 7 4 0 7.2z"/></marker></defs>'
    )
    for kind, parts in (("boxes", map(_box, picture.boxes)), ("wires", map(_wire, picture.wires))):
        yield f'<g class="{kind}">'
        yield from parts
        yield "</g>"
    yield '<g class="titles">'
    yield from map(_title, picture.boxes)
    yield '</g>\n<g class="cards">'
    yield from map(_card, picture.cards)
    yield '</g>\n<g class="rates" aria-hidden="true">'
    places = rate_places(picture)
    yield from (_rate(drawn, places[drawn.wire.id], meters) for drawn in picture.wires if drawn.wire.id in places)
    yield "</g>\n</svg>"


def _box(placed: Placed) -> str:
    assert isinstance(placed.content, Box)
    return f'<rect class="box" data-box="{placed.content.number}" {_place(placed)} rx="10"/>'


def _title(placed: Placed) -> str:
    """Return the texts at the top of a box, which lie over the wires into the box."""
    assert isinstance(placed.content, Box)
    place = f'transform="translate({placed.left:g} {placed.top + 19:g})"'
    return (
        f'<g class="title" data-title="{placed.content.number}" {place}>'
        f'<text x="{TITLE_INSET:g}">{_text(placed.content.title)}</text>'
        f'<text class="live" x="{placed.width - TITLE_INSET:g}"/></g>'
    )


def _card(placed: Placed) -> str:
    card = placed.content
    assert isinstance(card, Card)
    middle = placed.left + placed.width / 2
    top = placed.top
    down = 3 if card.kind == "store" else 0
    title = " · ".join(part for part in (card.name, card.about or card.detail) if part)
    shape = _cylinder(placed) if card.kind == "store" else f'<rect {_place(placed)} rx="{_ROUND[card.kind]}"/>'
    label_y = top + (17 if card.detail else 24) + down
    label = f'<text class="label" x="{middle:g}" y="{label_y:g}">{_text(card.label)}</text>'
    detail = f'<text class="detail" x="{middle:g}" y="{top + 31 + down:g}">{_text(card.detail)}</text>'
    data = f'data-id={_quoted(card.id)} data-kind="{card.kind}" data-name={_quoted(card.name)}'
    return (
        f'<g class="card {card.kind}" {data} role="img" aria-label={_quoted(f"{card.kind} {title}")}>'
        f"<title>{_text(title)}</title>{shape}{label}{detail}</g>"
    )


def _cylinder(placed: Placed) -> str:
    left = placed.left
    right = placed.left + placed.width
    top = placed.top
    bottom = placed.top + placed.height
    across = f"{placed.width / 2:g} 4"
    return (
        f'<path d="M{left:g} {top + 4:g}A{across} 0 0 1 {right:g} {top + 4:g}V{bottom - 4:g}A{across} 0 0 1 {left:g} '
        f'{bottom - 4:g}Z"/><path class="rim" d="M{left:g} {top + 4:g}A{across} 0 0 0 {right:g} {top + 4:g}"/>'
    )


def _wire(drawn: Drawn) -> str:
    wire = drawn.wire
    marker = "" if wire.kind == STORE_WIRE else ' marker-end="url(#arrow)"'
    return (
        f'<path class="wire {wire.kind}" data-wire={_quoted(wire.id)} data-from={_quoted(wire.source)} '
        f'data-to={_quoted(wire.target)} d="{_path(drawn)}"{marker}/>'
    )


def _path(drawn: Drawn) -> str:
    """Return alternating curves and vertical lines. Wires of topics begin with a line, other wires with a curve."""
    points = drawn.points
    is_line = drawn.wire.kind == TOPIC_WIRE
    steps = [f"M{points[0][0]:g} {points[0][1]:g}"]
    for (x, y), (to_x, to_y) in pairwise(points):
        middle = (y + to_y) / 2
        curve = f"C{x:g} {middle:g} {to_x:g} {middle:g} {to_x:g} {to_y:g}"
        if (x, y) != (to_x, to_y):  # the arrow of an empty path would point to the right
            steps.append(f"L{to_x:g} {to_y:g}" if is_line or x == to_x else curve)
        is_line = not is_line
    return "".join(steps)


def _rate(drawn: Drawn, place: RatePlace, meters: Meters) -> str:
    """Return an empty text beside a wire, for the number of the counter `data-meter`."""
    ends = [end.partition(":")[2].rstrip("'") for end in (drawn.wire.source, drawn.wire.target)]
    meter = meters.get((ends[0], ends[1]))
    counted = "" if meter is None else f" data-meter={_quoted(str(meter))}"
    anchor = ' text-anchor="end"' if place.at_left else ""
    return f'<text class="rate" data-rate={_quoted(drawn.wire.id)}{counted} x="{place.x:g}" y="{place.y:g}"{anchor}/>'


def _place(placed: Placed) -> str:
    return f'x="{placed.left:g}" y="{placed.top:g}" width="{placed.width:g}" height="{placed.height:g}"'


def _text(text: str) -> str:
    return escape(_NOT_XML.sub("\ufffd", text))


def _quoted(text: str) -> str:
    return quoteattr(_NOT_XML.sub("\ufffd", text))
