"""Where things stand in the picture of a topology."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kstreams as ks
from kstreams.diagram.arrangement import arranged
from kstreams.diagram.cards import STORE_WIRE, TOPIC_WIRE, Box, Card, drawing_of
from kstreams.diagram.crossings import crossings, untangle
from kstreams.diagram.labels import text_width
from kstreams.diagram.layers import Edge, Item, layers_of, ranks_of
from kstreams.diagram.picture import Placed, picture_of
from kstreams.diagram.rates import Area, rate_places

TEXTS = {"key": str, "value": str}


def word_count() -> ks.Topology:
    builder = ks.StreamsBuilder()
    words = builder.stream("lines", **TEXTS).flat_map_values(str.split, value=str)
    counts = words.group_by(lambda _, word: word, key=str).count(ks.Materialized("counts"))
    counts.to_stream().to("totals")
    return builder.build()


def hundred_nodes() -> ks.Topology:
    builder = ks.StreamsBuilder()
    streams = [builder.stream(f"in-{number}", **TEXTS) for number in range(5)]
    for number in range(45):
        base, other = streams[number // 2], streams[number % 7 % len(streams)]
        made = base.filter(lambda key, value: True) if number % 3 else base.merge(other)
        streams.append(made.map_values(str, value=str))
        if number % 6 == 0:
            made.group_by_key().count(ks.Materialized(f"store-{number}")).to_stream().to(f"out-{number}", value=int)
    return builder.build()


def circle() -> ks.Topology:
    """What a sub-topology writes comes back to it by way of another one."""
    return (
        ks.Topology()
        .add_source("begin", "in", **TEXTS)
        .add_source("back", "answers", **TEXTS)
        .add_sink("ask", "questions", "begin", "back", **TEXTS)
        .add_source("asked", "questions", **TEXTS)
        .add_sink("answer", "answers", "asked", **TEXTS)
    )


def overlap(one: Placed, other: Placed) -> bool:
    return (
        one.left < other.left + other.width
        and other.left < one.left + one.width
        and one.top < other.top + other.height
        and other.top < one.top + one.height
    )


def is_within(inner: Placed, outer: Placed) -> bool:
    return (
        outer.left <= inner.left
        and inner.left + inner.width <= outer.left + outer.width
        and outer.top <= inner.top
        and inner.top + inner.height <= outer.top + outer.height
    )


@pytest.mark.parametrize("topology", [word_count(), hundred_nodes(), circle()], ids=["words", "hundred", "circle"])
def test_nothing_lies_over_anything_else_and_records_flow_downwards(topology: ks.Topology) -> None:
    picture = picture_of(drawing_of(topology))
    assert not [(one, other) for one, other in combinations(picture.cards, 2) if overlap(one, other)]
    assert not [(one, other) for one, other in combinations(picture.boxes, 2) if overlap(one, other)]
    cards = {placed.content.id: placed for placed in picture.cards if isinstance(placed.content, Card)}
    for box in picture.boxes:
        assert isinstance(box.content, Box)
        own = {card.id for card in box.content.cards}
        assert all(
            is_within(placed, box) if name in own else not overlap(placed, box) for name, placed in cards.items()
        )
    for drawn in picture.wires:
        source, target = cards[drawn.wire.source], cards[drawn.wire.target]
        assert drawn.points[0] == (source.left + source.width / 2, source.top + source.height)
        assert drawn.points[-1] == (target.left + target.width / 2, target.top)
        assert all(y <= to_y for (_, y), (_, to_y) in pairwise(drawn.points))
    everything = Placed(next(iter(cards.values())).content, 0, 0, picture.width, picture.height)
    assert all(is_within(placed, everything) for placed in (*picture.cards, *picture.boxes))


@pytest.mark.parametrize("topology", [word_count(), hundred_nodes(), circle()], ids=["words", "hundred", "circle"])
def test_wires_from_above_pass_between_the_title_of_a_box_and_what_a_page_writes_beside_it(
    topology: ks.Topology,
) -> None:
    picture = picture_of(drawing_of(topology))
    beside = text_width("4 tasks · 2 threads · 2 instances", 10.5)
    for box in picture.boxes:
        assert isinstance(box.content, Box)
        own = {card.id for card in box.content.cards}
        led_in = [each for each in picture.wires if each.wire.target in own and each.wire.kind == TOPIC_WIRE]
        entered = [each.points[-1][0] - box.left for each in led_in]
        assert entered
        assert min(entered) > 14 + text_width(box.content.title, 12.5)
        assert max(entered) < box.width - 14 - beside


@pytest.mark.parametrize("topology", [word_count(), hundred_nodes(), circle()], ids=["words", "hundred", "circle"])
def test_numbers_of_wires_lie_beside_them_and_over_nothing_else(topology: ks.Topology) -> None:
    picture = picture_of(drawing_of(topology))
    places = rate_places(picture)
    assert places.keys() == {drawn.wire.id for drawn in picture.wires if drawn.wire.kind != STORE_WIRE}
    areas = [place.area() for place in places.values()]
    cards = [Area(card.left, card.top, card.left + card.width, card.top + card.height) for card in picture.cards]
    assert not [(one, other) for one, other in combinations(areas, 2) if one.overlaps(other)]
    assert not [(area, card) for area in areas for card in cards if area.overlaps(card)]


def test_a_topic_that_leads_back_is_drawn_again_where_it_is_read() -> None:
    drawing = drawing_of(circle())
    assert {topic.id: topic.name for topic in drawing.topics} == {
        "topic:in": "in",
        "topic:answers": "answers",
        "topic:questions": "questions",
        "topic:answers'": "answers",
    }
    assert "topic:answers'>node:back" in {f"{wire.source}>{wire.target}" for wire in drawing.wires}


def test_the_same_topology_gives_the_same_picture() -> None:
    assert picture_of(drawing_of(hundred_nodes())) == picture_of(drawing_of(hundred_nodes()))


def test_edges_that_need_not_cross_do_not() -> None:
    items = [Item(name, 10, 10) for name in "abcdxyzw"]
    edges = [Edge(f"{a}{b}", a, b) for a, b in ("aw", "bz", "cy", "dx")]
    layers = layers_of(items, edges, ranks_of(items, edges))
    assert crossings(layers) == 6
    untangle(layers)
    assert crossings(layers) == 0


def test_what_has_no_parents_stands_near_to_its_children_unless_it_belongs_to_the_top() -> None:
    items = [Item(name, 10, 10) for name in "abcx"]
    edges = [Edge("1", "a", "b"), Edge("2", "b", "c"), Edge("3", "x", "c")]
    assert ranks_of(items, edges)["x"] == 1
    assert ranks_of(items, edges, first=("x",))["x"] == 0
    assert ranks_of(items, edges, last=("x",))["x"] == 2


@given(st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)).filter(lambda ends: ends[0] < ends[1]), max_size=25))
@settings(max_examples=50, deadline=None)
def test_items_of_any_graph_keep_their_distance(ends: list[tuple[int, int]]) -> None:
    items = [Item(str(number), 10 + number, 10) for number in range(12)]
    edges = [Edge(f"{place}", str(a), str(b)) for place, (a, b) in enumerate(ends)]
    found = arranged(items, edges, gap=5, rank_gap=7)
    ranks = ranks_of(items, edges)
    assert all(ranks[edge.source] < ranks[edge.target] for edge in edges)
    for one, other in combinations(items, 2):
        if ranks[one.id] == ranks[other.id]:
            apart = abs(found.places[one.id][0] - found.places[other.id][0])
            assert apart >= (one.width + other.width) / 2 + 4  # 1 is lost when places are rounded
