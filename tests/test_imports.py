"""Imports go one way: no modules of `kstreams` import each other in a circle.

All imports count: those for types alone, and those inside functions. One exception: the handles of the DSL name each
other as what their methods return (`KStream.to_table` gives a `KTable`, `KTable.to_stream` a `KStream`); such imports
for types do not count. Layers between packages are contracts of `lint-imports` (see `pyproject.toml`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HANDLES = ("kstreams.dsl.streams.", "kstreams.dsl.tables.", "kstreams.dsl.aggregation.")

Graph = dict[str, set[str]]


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    return {name_of(path): path for path in (ROOT / "kstreams").rglob("*.py")}


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imported(tree: ast.AST) -> Iterator[str]:
    """The dotted names that a piece of code imports, wherever in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imported_for_types(tree: ast.AST) -> Iterator[str]:
    """Those of them that type checkers alone see."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            for statement in node.body:
                yield from imported(statement)


def circle(graph: Graph) -> str | None:
    """The first circle of a graph in words; None when it has none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return " imports ".join(reversed(error.args[1]))
    return None


def graph() -> Graph:
    """By module: the modules of the package that it imports."""
    known = modules()

    def home_of(name: str) -> str:
        return name if name in known else name.rpartition(".")[0]

    found: Graph = {}
    for module, path in known.items():
        tree = ast.parse(path.read_text())
        handles = {name for name in imported_for_types(tree) if name.startswith(HANDLES)}
        excepted = handles if module.startswith("kstreams.dsl.") else set[str]()
        found[module] = {home_of(name) for name in imported(tree) if name not in excepted} & known.keys() - {module}
    return found


def test_no_modules_import_each_other_in_a_circle() -> None:
    found = graph()
    assert len(found) > 300
    assert circle(found) is None


@pytest.mark.parametrize("line", ["import kstreams.b", "from kstreams import b", "def f(): from kstreams.b import x"])
def test_circles_are_found_wherever_the_import_stands(line: str) -> None:
    known = {"kstreams.a": set(imported(ast.parse(line))), "kstreams.b": {"kstreams.a"}, "kstreams.b.x": {"kstreams.a"}}
    assert circle(known) is not None
