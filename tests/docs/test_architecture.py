"""ARCHITECTURE.md names what is there: files, folders, and the places that a batch passes in a task."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "ARCHITECTURE.md").read_text()
PLACES = TEXT.partition("## The path of a batch")[2].partition("\n## ")[0]


def rows_of_table(text: str) -> list[list[str]]:
    """The cells of a Markdown table, without its head."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_a_batch_passes_no_more_than_six_places_and_all_of_them_exist() -> None:
    places = rows_of_table(PLACES)
    assert 1 <= len(places) <= 6
    for _, where, _ in places:
        named = re.findall(r"`(\w+)` in `([\w/]+\.py)`", where)
        assert named, where
        for name, path in named:
            assert re.search(rf"^class {name}\b", (ROOT / path).read_text(), re.MULTILINE), (name, path)


def test_every_file_and_folder_that_is_named_exists() -> None:
    named = set(re.findall(r"`([a-z_]+/[a-z_/]*(?:\.py)?|[a-z_]+\.py)`", TEXT)) - {"app.py"}
    assert "kstreams/dsl/operator.py" in named
    known = {
        f"/{path.relative_to(ROOT)}"
        for path in [
            *ROOT.glob("tests/**/*"),
            *ROOT.glob("kstreams/**/*"),
            *ROOT.glob("tools/*.py"),
            *ROOT.glob("benchmarks/**/*"),
        ]
    }
    assert {path for path in named if not any(each.endswith(f"/{path.rstrip('/')}") for each in known)} == set()


DECISIONS = sorted(path for path in (ROOT / "docs" / "decisions").glob("*.md") if path.name != "README.md")
SECTIONS = ("**Context.**", "**Decision", "**Consequence", "**What would change our mind.**")


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
def test_a_decision_has_four_sections_and_stands_in_the_list(path: Path) -> None:
    text = path.read_text()
    positions = [text.find(section) for section in SECTIONS]
    assert -1 not in positions
    assert positions == sorted(positions)
    title = text.splitlines()[0].removeprefix("# ")
    assert f"[{title}]({path.name})" in (path.parent / "README.md").read_text()
