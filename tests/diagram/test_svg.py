"""The picture of a topology as an SVG document."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import kstreams as ks
from kstreams.cli.main import main
from kstreams.diagram.svg import as_svg
from tests.diagram.test_layout import circle, word_count

SVG = "{http://www.w3.org/2000/svg}"


def parsed(topology: ks.Topology) -> ElementTree.Element:
    return ElementTree.fromstring(as_svg(topology))


def attributes(root: ElementTree.Element, name: str) -> list[str]:
    return [found for each in root.iter() if (found := each.get(name)) is not None]


def test_each_topic_node_and_store_has_a_card_and_each_wire_a_place_for_its_number() -> None:
    root = parsed(word_count())
    ids = attributes(root, "data-id")
    assert len(set(ids)) == len(ids)
    assert {"topic:lines", "topic:totals", "topic:counts-repartition", "store:counts"} <= set(ids)
    assert {each for each in ids if each.startswith("node:")} == {f"node:{name}" for name in word_count().nodes}
    wires = {each.get("data-wire"): each for each in root.iter(f"{SVG}path") if each.get("data-wire")}
    assert {each.get("data-from") for each in wires.values()} <= set(ids)
    assert set(attributes(root, "data-rate")) == {
        name for name, each in wires.items() if not (each.get("data-to") or "").startswith("store:")
    }
    assert attributes(root, "data-box") == attributes(root, "data-title") == ["0", "1"]


def test_a_circle_of_topics_is_drawn_too() -> None:
    assert [each for each in attributes(parsed(circle()), "data-name") if each == "answers"] == ["answers"] * 2


def test_names_of_any_kind_are_escaped() -> None:
    odd = "<script>alert('1')</script> & \"x\" \x00"
    root = parsed(ks.Topology().add_source(odd, "in", key=str, value=str))
    assert not list(root.iter(f"{SVG}script"))
    assert odd.replace("\x00", "\ufffd") in attributes(root, "data-name")


def test_it_is_named_for_screen_readers_and_follows_the_colours_of_the_system() -> None:
    root = parsed(word_count())
    assert root.findtext(f"{SVG}title") == "Topology"
    assert root.findtext(f"{SVG}desc") == "2 sub-topologies with 9 nodes and 1 stores"
    assert all(card.findtext(f"{SVG}title") for card in root.iter(f"{SVG}g") if card.get("data-id"))
    assert "prefers-color-scheme: dark" in (root.findtext(f"{SVG}style") or "")
    assert not [each for each in root.iter() if each.get("style") or each.get("href")]


def test_the_command_writes_the_picture_into_a_file(tmp_path: Path) -> None:
    app, file = tmp_path / "app.py", tmp_path / "topology.svg"
    app.write_text(
        "import kstreams as ks\n\ntopology = ks.StreamsBuilder()\n"
        "topology.stream('in', key=str, value=str).to('out')\nconfig = {'application.id': 'copy'}\n"
    )
    assert main(["topology", str(app), "--format", "svg", "-o", str(file)]) == 0
    root = ElementTree.fromstring(file.read_text())
    assert root.findtext(f"{SVG}title") == "Topology of copy"
    assert set(attributes(root, "data-name")) >= {"in", "out"}
