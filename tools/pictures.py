"""Draws the pictures of the documentation, `docs/pictures/*.svg`, which follow the reader's choice of dark or light.

python tools/pictures.py            # draw them
python tools/pictures.py --check    # fail if a picture is out of date
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"

STYLE = """<style>
  text { font: 13px system-ui, sans-serif; fill: #1f2328; text-anchor: middle; dominant-baseline: central; }
  .small { font-size: 11px; } .start { text-anchor: start; }
  .box { fill: #f6f8fa; stroke: #57606a; } .topic { fill: #ddf4ff; stroke: #0969da; }
  .store { fill: #dafbe1; stroke: #1a7f37; }
  .grace { fill: #fff8c5; stroke: #9a6700; stroke-dasharray: 4 3; } .line { stroke: #57606a; fill: none; }
  .dot { fill: #cf222e; } .tip { fill: #57606a; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .box { fill: #21262d; stroke: #8b949e; } .topic { fill: #0c2d6b; stroke: #58a6ff; }
    .store { fill: #033a16; stroke: #3fb950; } .grace { fill: #3d2e00; stroke: #d29922; } .line { stroke: #8b949e; }
    .dot { fill: #ff7b72; } .tip { fill: #8b949e; }
  }
</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse">
  <path class="tip" d="M0 0 8 4 0 8z"/></marker></defs>"""

Parts = Iterator[str]


class Node(NamedTuple):
    """A box of a flow: its column and row, its text, and its kind: box, topic, store or grace."""

    column: float
    row: float
    text: str
    kind: str = "box"


class Edge(NamedTuple):
    """An arrow of a flow from node to node."""

    start: str
    end: str
    text: str = ""
    both: bool = False


WIDTH, HEIGHT, ACROSS, DOWN = 136, 46, 190, 84
"""Width and height of a box, and the distances between columns and between rows."""


def svg(title: str, width: float, height: float, parts: Parts) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" role="img">'
    return "\n".join([head, f"<title>{escape(title)}</title>", STYLE, *parts, "</svg>", ""])


def text(x: float, y: float, words: str, css: str = "") -> str:
    lines = words.split("\n")
    first = y - 8 * (len(lines) - 1)
    rows = "".join(f'<tspan x="{x:g}" y="{first + 16 * n:g}">{escape(line)}</tspan>' for n, line in enumerate(lines))
    return f'<text class="{css}">{rows}</text>'


def rectangle(x: float, y: float, width: float, height: float, kind: str) -> str:
    return f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6"/>'


def flow(title: str, nodes: dict[str, Node], edges: list[Edge]) -> str:
    """Draw boxes in a grid, and arrows between them."""
    width = 20 + WIDTH + ACROSS * max(node.column for node in nodes.values())
    height = 20 + HEIGHT + DOWN * max(node.row for node in nodes.values())
    return svg(title, width, height, flow_parts(nodes, edges))


def flow_parts(nodes: dict[str, Node], edges: list[Edge]) -> Parts:
    for edge in edges:
        yield from arrow(nodes[edge.start], nodes[edge.end], edge)
    for node in nodes.values():
        x = 10 + ACROSS * node.column
        y = 10 + DOWN * node.row
        yield rectangle(x, y, WIDTH, HEIGHT, node.kind)
        yield text(x + WIDTH / 2, y + HEIGHT / 2, node.text)


def arrow(start: Node, end: Node, edge: Edge) -> Parts:
    """Draw an arrow from the side of one box to the side of another: sideways if their columns differ."""
    sign = (end.column > start.column) - (end.column < start.column)
    down = 0 if sign else (end.row > start.row) - (end.row < start.row)
    x1 = 10 + ACROSS * start.column + WIDTH / 2 * (1 + sign)
    y1 = 10 + DOWN * start.row + HEIGHT / 2 * (1 + down)
    x2 = 10 + ACROSS * end.column + WIDTH / 2 * (1 - sign)
    y2 = 10 + DOWN * end.row + HEIGHT / 2 * (1 - down)
    tail = ' marker-start="url(#tip)"' if edge.both else ""
    yield f'<path class="line" d="M{x1:g} {y1:g} {x2:g} {y2:g}" marker-end="url(#tip)"{tail}/>'
    if edge.text:
        yield text((x1 + x2) / 2 + (0 if sign else 34), (y1 + y2) / 2 - (9 if sign else 0), edge.text, "small")


def overview() -> str:
    nodes = {
        "app": Node(0, 1, "app.py\nKStream, KTable"),
        "graph": Node(1, 1, "logical graph"),
        "topology": Node(2, 0.5, "topology"),
        "native": Node(3, 0, "native engine\nthreads, RocksDB"),
        "tasks": Node(3, 1, "tasks in Spark"),
        "columns": Node(3, 2, "streaming\nDataFrames"),
        "log": Node(4, 0, "topics:\nembedded log", "topic"),
        "kafka": Node(4, 1, "topics:\nApache Kafka", "topic"),
        "delta": Node(4, 2, "Delta tables", "store"),
    }
    engines = [Edge(engine, home, both=True) for engine in ("native", "tasks", "columns") for home in ("log", "kafka")]
    tables = [Edge("tasks", "delta"), Edge("columns", "delta")]
    passes = [Edge("app", "graph"), Edge("graph", "topology"), Edge("graph", "columns")]
    title = "app.py becomes a logical graph, then a topology for both engines, or DataFrames on Spark"
    return flow(title, nodes, [*passes, Edge("topology", "native"), Edge("topology", "tasks"), *engines, *tables])


def repartition() -> str:
    nodes = {
        "payments": Node(0, 0, "payments", "topic"),
        "group": Node(1, 0, "group_by country"),
        "topic": Node(2, 0, "repartition topic", "topic"),
        "count": Node(3, 0, "count"),
        "counts": Node(4, 0, "counts", "topic"),
    }
    names = list(nodes)
    title = "Records with new keys pass through a repartition topic to another sub-topology"
    return flow(title, nodes, [Edge(one, other) for one, other in pairwise(names)])


def state() -> str:
    nodes = {
        "input": Node(0, 1, "input topic", "topic"),
        "task": Node(1.2, 1, "task"),
        "store": Node(1.2, 0, "state store\nRocksDB", "store"),
        "changelog": Node(2.4, 0, "changelog topic", "topic"),
        "output": Node(2.4, 1, "output topic", "topic"),
    }
    edges = [Edge("input", "task"), Edge("task", "store", both=True), Edge("task", "output")]
    edges += [Edge("task", "changelog", "changes"), Edge("changelog", "store", "restore")]
    return flow("A task reads records, keeps rows in its store, and writes changes and results to topics", nodes, edges)


def lakehouse() -> str:
    nodes = {
        "products": Node(0, 0, "Postgres:\nproducts", "store"),
        "orders": Node(0, 1, "Postgres:\norders", "store"),
        "join": Node(1, 0.5, "join by\nforeign key"),
        "hours": Node(2, 1, "sales by category\nand hour"),
        "delta": Node(3, 0, "Delta: orders", "store"),
        "iceberg": Node(3, 1, "Iceberg:\nsales_by_hour", "store"),
    }
    edges = [Edge("products", "join"), Edge("orders", "join"), Edge("join", "hours")]
    return flow(
        "Changes of two tables, joined and summed", nodes, [*edges, Edge("join", "delta"), Edge("hours", "iceberg")]
    )


def commit() -> str:
    nodes = {
        "process": Node(0, 0, "process\nrecords"),
        "send": Node(1, 0, "results,\nchangelog rows", "topic"),
        "offsets": Node(2, 0, "input offsets", "topic"),
        "end": Node(3, 0, "end of the\ntransaction"),
        "readers": Node(4, 0, "readers see\nthe results"),
        "stores": Node(4, 1, "stores on disk\nadvance", "store"),
        "crash": Node(3, 1, "crash before:\nall is aborted", "grace"),
    }
    edges = [Edge("process", "send"), Edge("send", "offsets"), Edge("offsets", "end"), Edge("end", "readers")]
    title = "A commit: results, changelog rows and input offsets become visible together, or not at all"
    return flow(title, nodes, [*edges, Edge("end", "stores"), Edge("end", "crash")])


def rebalance() -> str:
    nodes = {
        "a1": Node(0, 0, "process A\ntasks 0, 1, 2, 3"),
        "b1": Node(0, 1, "process B joins", "grace"),
        "a2": Node(1.2, 0, "A runs 0, 1, 2, 3"),
        "b2": Node(1.2, 1, "B restores 2, 3\nas standbys", "store"),
        "a3": Node(2.4, 0, "A runs 0, 1"),
        "b3": Node(2.4, 1, "B runs 2, 3"),
    }
    edges = [Edge("a1", "a2"), Edge("b1", "b2"), Edge("a2", "a3"), Edge("b2", "b3"), Edge("a2", "b3", "2, 3")]
    title = "A process that joins restores tasks while the old owner runs them, and then takes them over"
    return flow(title, nodes, edges)


def record() -> str:
    nodes = {
        "topic": Node(0, 0, "topic, partition 3", "topic"),
        "fetch": Node(1, 0, "stream thread\nfetches a batch"),
        "task": Node(2, 0, "task 0_3: record\nwith lowest time"),
        "operators": Node(3, 0, "operators:\nrecords or columns"),
        "store": Node(3, 1, "store", "store"),
        "sink": Node(4, 0, "result topic", "topic"),
        "changelog": Node(4, 1, "changelog topic", "topic"),
    }
    edges = [Edge("topic", "fetch"), Edge("fetch", "task"), Edge("task", "operators"), Edge("operators", "sink")]
    edges += [Edge("operators", "store", both=True), Edge("store", "changelog")]
    return flow("The path of a record from its topic through a task to the result topic", nodes, edges)


def spark_step() -> str:
    nodes = {
        "driver": Node(0, 0.5, "driver plans\na step"),
        "first": Node(1, 0, "tasks of\nsub-topology 0"),
        "shuffle": Node(2, 0, "Spark shuffles\nby key"),
        "second": Node(3, 0, "tasks of\nsub-topology 1"),
        "files": Node(2, 1, "state files in\nthe checkpoint", "store"),
        "commit": Node(4, 0.5, "driver commits\nthe step"),
        "topics": Node(3, 1, "transactions of\nresult topics", "topic"),
    }
    edges = [Edge("driver", "first"), Edge("first", "shuffle"), Edge("shuffle", "second"), Edge("second", "commit")]
    edges += [Edge("second", "topics"), Edge("second", "files"), Edge("first", "files"), Edge("topics", "commit")]
    return flow(
        "A step on Spark: planned by the driver, run by executors, committed by the driver as one", nodes, edges
    )


# --- time lines -----------------------------------------------------------------------------------------------------

LEFT, UNIT = 130, 26
"""Where time 0 stands, and the width of a unit of time."""


def at(time: float) -> float:
    return LEFT + UNIT * time


def dots(times: list[float], y: float) -> Parts:
    for time in times:
        yield f'<circle class="dot" cx="{at(time):g}" cy="{y:g}" r="4"/>'


def span(start: float, end: float, y: float, words: str, kind: str = "box") -> Parts:
    yield rectangle(at(start), y, UNIT * (end - start), 20, kind)
    yield text((at(start) + at(end)) / 2, y + 10, words, "small")


def axis(y: float, until: int) -> Parts:
    yield f'<path class="line" d="M{at(0):g} {y} {at(until):g} {y}" marker-end="url(#tip)"/>'
    for time in range(0, until, 5):
        yield text(at(time), y + 14, str(time), "small")


RECORDS = [1.0, 4.0, 7.0, 8.0, 16.0]


def windows() -> str:
    return svg("Records of one key on a time line, and the windows that they belong to", 700, 320, window_parts())


def window_parts() -> Parts:
    yield text(8, 24, "records", "start")
    yield from dots(RECORDS, 24)
    yield from axis(44, 20)
    yield text(8, 90, "tumbling, 5", "start")
    for start, count in ((0, 2), (5, 2), (15, 1)):
        yield from span(start, start + 5, 80, f"{count}")
    yield text(8, 138, "hopping, 10 by 5", "start")
    for row, (start, count) in enumerate(((0, 4), (5, 2), (10, 1), (15, 1))):
        yield from span(start, min(start + 10, 20), 112 + 22 * (row % 3), f"{count}")
    yield text(8, 204, "session, gap 5", "start")
    for start, end, count in ((1, 8, 4), (16, 16.6, 1)):
        yield from span(start, end, 194, f"{count}")
    yield text(8, 250, "grace 3", "start")
    yield from span(0, 5, 240, "window 0 to 5", "topic")
    yield from span(5, 8, 240, "grace", "grace")
    yield text(at(8) + 8, 250, "a record of time 8 closes the window: its result is final", "small start")
    yield text(
        8,
        290,
        "A record of time 3 that arrives before stream time 8 counts; one that arrives later is dropped.",
        "start",
    )


def joins() -> str:
    return svg("Three joins: of two streams, of a stream with a table, of two tables", 700, 400, join_parts())


def join_parts() -> Parts:
    yield text(8, 16, "Two streams: times at most 3 apart", "start")
    yield text(8, 44, "left", "start")
    yield from dots([4, 14], 44)
    yield from span(1, 7, 56, "partners of time 4", "grace")
    yield text(8, 96, "right", "start")
    yield from dots([6, 10], 96)
    yield f'<path class="line" d="M{at(4):g} 48 {at(6):g} 92"/>'
    yield from axis(112, 20)
    yield text(8, 158, "A stream with a table: the row as of the record", "start")
    yield text(8, 186, "stream", "start")
    yield from dots([4, 14], 186)
    yield text(8, 222, "table", "start")
    yield from span(1, 9, 212, "CH", "store")
    yield from span(9, 20, 212, "FR", "store")
    yield f'<path class="line" d="M{at(4):g} 190 {at(4):g} 212M{at(14):g} 190 {at(14):g} 212"/>'
    yield from axis(246, 20)
    yield text(8, 292, "Two tables: a result after each change of either", "start")
    yield text(8, 320, "left", "start")
    yield from span(2, 20, 310, "a", "store")
    yield text(8, 346, "right", "start")
    yield from span(6, 12, 336, "x", "store")
    yield from span(12, 20, 336, "y", "store")
    yield text(8, 372, "result", "start")
    yield from span(6, 12, 362, "a, x", "topic")
    yield from span(12, 20, 362, "a, y", "topic")


PICTURES: dict[str, Callable[[], str]] = {
    "overview": overview,
    "repartition": repartition,
    "state": state,
    "lakehouse": lakehouse,
    "commit": commit,
    "rebalance": rebalance,
    "record": record,
    "spark-step": spark_step,
    "windows": windows,
    "joins": joins,
}


def main(arguments: list[str]) -> int:
    drawn = {FOLDER / f"{name}.svg": draw() for name, draw in PICTURES.items()}
    if "--check" in arguments:
        outdated = [path.name for path, picture in drawn.items() if not path.exists() or path.read_text() != picture]
        print(*(f"{name} is out of date: run `make docs`" for name in outdated), sep="\n", end="")
        return min(len(outdated), 1)
    for path, picture in drawn.items():
        path.write_text(picture)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
