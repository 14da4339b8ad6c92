"""`drawing_of`: a card for each topic, node and store of a topology, wires between them, a box per sub-topology."""

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
        `topic:orders`, `node:KSTREAM-FILTER-0000000001`, `store:counts`. The id of the second card of a topic ends in
        `'`.
    kind : str
        `topic`, `source`, `processor`, `sink` or `store`.
    name : str
    label, detail : str
        The two lines of text.
    about : str
        Further information, which is shown on request.
    """

    id: str
    kind: str
    name: str
    label: str
    detail: str
    about: str


class Wire(NamedTuple):
    """The flow of records between two cards or, if its kind is `store`, the use of a store by a node."""

    id: str
    source: str
    target: str
    kind: str


class Box(NamedTuple):
    """A sub-topology with its cards and wires."""

    number: int
    title: str
    cards: tuple[Card, ...]
    wires: tuple[Wire, ...]


class Drawing(NamedTuple):
    """The boxes, the topics between them, and the wires between topics and boxes."""

    boxes: tuple[Box, ...]
    topics: tuple[Card, ...]
    wires: tuple[Wire, ...]


def drawing_of(topology: Topology) -> Drawing:
    """Return the drawing of a topology."""
    data = as_data(topology)
    internal = {topic["name"]: topic["kind"] for topic in data["internal_topics"]}
    parts = data["sub_topologies"]
    names = dict.fromkeys(topic for part in parts for node in part["nodes"] for topic in node["topics"])
    topics = [Card(f"topic:{name}", "topic", name, short_label(name), internal.get(name, ""), "") for name in names]
    wires = [wire for part in parts for node in part["nodes"] for wire in _to_topics(node)]
    return _without_cycles(tuple(_box(part) for part in parts), topics, wires)


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
    """Return a wire. Its id contains both ends."""
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


def _without_cycles(boxes: tuple[Box, ...], topics: list[Card], wires: list[Wire]) -> Drawing:
    """Return the drawing, with a second card for each topic that leads back to an earlier box."""
    home = {card.id: f"box:{box.number}" for box in boxes for card in box.cards}
    number = {card.id: box.number for box in boxes for card in box.cards}
    writers = {wire.target: number[wire.source] for wire in wires if wire.source in number}

    def sort_key(wire: Wire) -> tuple[bool, bool]:
        """Sort written topics first, then topics that a later box reads. The others lead back."""
        is_read = wire.source not in number
        return is_read, is_read and writers.get(wire.source, -1) >= number[wire.target]

    after: dict[str, set[str]] = {}
    visible = []
    second_cards = {}
    for wire in sorted(wires, key=sort_key):
        source, target = (home.get(end, end) for end in (wire.source, wire.target))
        if wire.source not in number and _has_path(after, target, source):
            second_id = f"{wire.source}'"
            topic = next(topic for topic in topics if topic.id == wire.source)
            second_cards[second_id] = topic._replace(id=second_id, detail="again")
            visible.append(wire._replace(source=second_id))
        else:
            after.setdefault(source, set()).add(target)
            visible.append(wire)
    return Drawing(boxes, (*topics, *second_cards.values()), tuple(visible))


def _has_path(after: Mapping[str, set[str]], begin: str, end: str) -> bool:
    """Return whether a path leads from `begin` to `end`."""
    visited = set[str]()
    pending = [begin]
    while pending:
        item = pending.pop()
        if item == end:
            return True
        if item not in visited:
            visited.add(item)
            pending += after.get(item, ())
    return False
