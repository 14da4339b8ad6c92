"""What is drawn of a topology: a card for each topic, node and store, wires between them, a box per sub-topology."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from kstreams.diagram.data import as_data
from kstreams.diagram.labels import short_label
from kstreams.processor.topology.topology import Topology

STORE_WIRE = "store"
TOPIC_WIRE = "topic"
NODE_WIRE = "node"


class Card(NamedTuple):
    """A topic, node or store.

    Parameters
    ----------
    id : str
        `topic:orders`, `node:KSTREAM-FILTER-0000000001`, `store:counts`; that of a topic that is drawn again, where it
        is read, ends in `'`.
    kind : str
        `topic`, `source`, `processor`, `sink` or `store`.
    name, label, detail, about : str
        Its name; what is written on it, in two lines; what else there is to know.
    """

    id: str
    kind: str
    name: str
    label: str
    detail: str
    about: str


class Wire(NamedTuple):
    """What records pass, or (of kind `store`) who uses a store."""

    id: str
    source: str
    target: str
    kind: str


class Box(NamedTuple):
    """A sub-topology with what is in it."""

    number: int
    title: str
    cards: tuple[Card, ...]
    wires: tuple[Wire, ...]


class Drawing(NamedTuple):
    """All that is drawn: boxes, the topics between them, and the wires between topics and boxes."""

    boxes: tuple[Box, ...]
    topics: tuple[Card, ...]
    wires: tuple[Wire, ...]


def drawing_of(topology: Topology) -> Drawing:
    """What is drawn of a topology."""
    data = as_data(topology)
    internal = {topic["name"]: topic["kind"] for topic in data["internal_topics"]}
    parts = data["sub_topologies"]
    names = dict.fromkeys(topic for part in parts for node in part["nodes"] for topic in node["topics"])
    topics = [Card(f"topic:{name}", "topic", name, short_label(name), internal.get(name, ""), "") for name in names]
    wires = [wire for part in parts for node in part["nodes"] for wire in _to_topics(node)]
    return _without_circles(tuple(_box(part) for part in parts), topics, wires)


def _box(part: Mapping[str, Any]) -> Box:
    title = f"global table {part['id']}" if part["global"] else f"sub-topology {part['id']}"
    nodes = [_node(node) for node in part["nodes"]]
    stores = [_store(store) for store in part["stores"]]
    store_names = {store["name"] for store in part["stores"]}
    wires = [
        wire(f"node:{node['name']}", f"{kind}:{target}", kind)
        for node in part["nodes"]
        for kind, targets in ((NODE_WIRE, node["next"]), (STORE_WIRE, [s for s in node["stores"] if s in store_names]))
        for target in targets
    ]
    return Box(part["id"], title, (*nodes, *stores), tuple(wires))


def wire(source: str, target: str, kind: str) -> Wire:
    """A wire, whose id says from where to where it goes."""
    return Wire(f"{source}>{target}", source, target, kind)


def _node(node: Mapping[str, Any]) -> Card:
    name = node["name"]
    place = node["declared_at"] or ""
    return Card(f"node:{name}", node["kind"], name, short_label(name), place.rpartition("/")[2], place)


def _store(store: Mapping[str, Any]) -> Card:
    name = store["name"]
    kind = store["kind"].removeprefix("timestamped-")
    about = f"{store['kind']} store, {'with' if store['logging'] else 'without'} a changelog"
    return Card(f"store:{name}", "store", name, short_label(name), kind, about)


def _to_topics(node: Mapping[str, Any]) -> Iterator[Wire]:
    own = f"node:{node['name']}"
    for topic in node["topics"]:
        other = f"topic:{topic}"
        yield wire(own, other, TOPIC_WIRE) if node["kind"] == "sink" else wire(other, own, TOPIC_WIRE)


def _without_circles(boxes: tuple[Box, ...], topics: list[Card], wires: list[Wire]) -> Drawing:
    """A topic that leads back to where its records come from is drawn again where it is read."""
    home = {card.id: f"box:{box.number}" for box in boxes for card in box.cards}
    number = {card.id: box.number for box in boxes for card in box.cards}
    writers = {wire.target: number[wire.source] for wire in wires if wire.source in number}

    def turn(wire: Wire) -> tuple[bool, bool]:
        """What is written first, then what is read further down: what is left leads back."""
        is_read = wire.source not in number
        return is_read, is_read and writers.get(wire.source, -1) >= number[wire.target]

    after: dict[str, set[str]] = {}
    visible = []
    again = {}
    for wire in sorted(wires, key=turn):
        source, target = (home.get(end, end) for end in (wire.source, wire.target))
        if wire.source not in number and _leads(after, target, source):
            copy = f"{wire.source}'"
            again[copy] = next(topic for topic in topics if topic.id == wire.source)._replace(id=copy, detail="again")
            visible.append(wire._replace(source=copy))
        else:
            after.setdefault(source, set()).add(target)
            visible.append(wire)
    return Drawing(boxes, (*topics, *again.values()), tuple(visible))


def _leads(after: Mapping[str, set[str]], begin: str, end: str) -> bool:
    """Whether there is a way."""
    visited = set[str]()
    pending = [begin]
    while pending:
        place = pending.pop()
        if place == end:
            return True
        if place not in visited:
            visited.add(place)
            pending += after.get(place, ())
    return False
