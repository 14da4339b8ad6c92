"""`tools/shape.py` counts what it says, each fault in a file of its own."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tools.shape import Source, figures, places_of


def places(text: str, name: str = "module.py") -> dict[str, list[str]]:
    return places_of([Source(Path("kstreams") / name, text, ast.parse(text))])


@pytest.mark.parametrize(
    ("figure", "text"),
    [
        ("packed", "a, b = first(), second()"),
        ("vague", "found = first()"),
        ("splats", "def f(x, y):\n    pair = (x, y)\n    return g(*pair)"),
        ("parameters", "def f(a, b, c, d, e, g, h): ..."),
        ("branches", "def f(x):\n" + "    if x: x += 1\n" * 13),
        ("any", "from typing import Any\nx: Any = 1"),
        ("asserts", "assert x is not None"),
        ("class names", "class A: ...\nclass B:\n    class A: ..."),
    ],
)
def test_a_fault_is_counted(figure: str, text: str) -> None:
    assert len(places(text + "\n# long enough" * 31)[figure]) == 1


@pytest.mark.parametrize(
    ("figure", "text"),
    [
        ("packed", "a, b = b, a"),
        ("packed", "a, b = pair()"),
        ("splats", "f(*arguments)"),
        ("parameters", "def f(self, a, b, c, d, e, g, *, h, i): ..."),
        ("asserts", "assert x"),
    ],
)
def test_what_is_no_fault_is_not_counted(figure: str, text: str) -> None:
    assert places(text)[figure] == []


def test_files_are_judged_by_name_and_length() -> None:
    assert places("x = 1", "utils.py")["file names"] == ["kstreams/utils.py"]
    assert places("x = 1")["small"] == ["kstreams/module.py has 1 lines"]


def test_lines_of_code_are_those_that_do_something() -> None:
    text = '"""What it is."""\nimport os\n# why\n\nx = 1\ny = 2\n'
    source = Source(Path("kstreams/module.py"), text, ast.parse(text))
    values = figures([source], places_of([source]))
    assert (values["code"], values["imports"]) == (2, 0.5)
