"""`as_mermaid`: a topology as a Mermaid flowchart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kstreams.diagram.data import as_data
from kstreams.processor.topology.topology import Topology

_KEYWORDS = {"call", "class", "click", "default", "end", "flowchart", "graph", "href", "linkStyle", "style", "subgraph"}
_ENTITIES = str.maketrans({mark: f"#{ord(mark)};" for mark in '"#&<>`\\'} | {"\n": " "})
_SHAPES = {"source": ("([", "])"), "processor": ("[", "]"), "sink": ("([", "])")}


def as_mermaid(topology: Topology) -> str:
    """Return a Mermaid flowchart with a box per sub-topology, and topics between the boxes."""
    data = as_data(topology)
    return "\n".join(["flowchart TD", *(line for part in data["sub_topologies"] for line in _flowchart(part))])


def _flowchart(part: dict[str, Any]) -> Iterator[str]:
    title = "Global table" if part["global"] else "Sub-topology"
    yield f'  subgraph sub{part["id"]}["{title} {part["id"]}"]'
    for node in part["nodes"]:
        opening, closing = _SHAPES[node["kind"]]
        yield f'    {_id(node["name"])}{opening}"{_text(node["name"])}"{closing}'
    yield "  end"
    for node in part["nodes"]:
        yield from (f"  {_id(node['name'])} --> {_id(child)}" for child in node["next"])
        yield from _around(node)


def _around(node: dict[str, Any]) -> Iterator[str]:
    """Yield the topics and stores that a node uses."""
    for topic in node["topics"]:
        topic_node = f'{_id("topic " + topic)}[["{_text(topic)}"]]'
        yield (
            f"  {_id(node['name'])} --> {topic_node}"
            if node["kind"] == "sink"
            else f"  {topic_node} --> {_id(node['name'])}"
        )
    for store in node["stores"]:
        yield f'  {_id(node["name"])} <--> {_id("store " + store)}[("{_text(store)}")]'


def _text(name: str) -> str:
    """Return a name with escapes: between quotes, Mermaid interprets entities, HTML and Markdown.

    Examples
    --------
    >>> _text('a <b> "c"')
    'a #60;b#62; #34;c#34;'
    """
    return name.translate(_ENTITIES)


def _id(name: str) -> str:
    """Return a unique Mermaid identifier for a name, which is no keyword.

    Examples
    --------
    >>> _id("topic a-b"), _id("end")
    ('topic_20a_2db', '_end')
    """
    if name in _KEYWORDS:
        return f"_{name}"
    return "".join(letter if letter.isalnum() and letter.isascii() else f"_{ord(letter):x}" for letter in name)
