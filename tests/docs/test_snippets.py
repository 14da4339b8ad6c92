"""Whoever follows the README or a page of the docs, from top to bottom, sees what it says."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, Reader, Snippet, snippets

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
LONG_PAGES = {"connectors.md", "formats.md", "retry.md"}


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def marked(page: Path) -> object:
    """Return a page as a parameter; the pages that take half a minute are slow."""
    return pytest.param(page, marks=pytest.mark.slow) if page.name in LONG_PAGES else page


@pytest.mark.parametrize("page", [marked(page) for page in PAGES], ids=map(name_of, PAGES))
def test_snippets_of_a_page_run(page: Path, reader: Reader) -> None:
    for snippet in snippets(page):
        if not snippet.needs_spark:
            reader.follow(snippet)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(shutil.which("java") is None, reason="needs Java")
@pytest.mark.parametrize("page", [page for page in PAGES if any(s.needs_spark for s in snippets(page))], ids=name_of)
@pytest.mark.timeout(1200)
def test_snippets_for_spark_run(page: Path, reader_with_spark: Reader) -> None:
    for snippet in snippets(page):
        reader_with_spark.follow(snippet)


def test_the_readme_shows_the_example() -> None:
    shown = next(snippet for snippet in snippets(ROOT / "README.md") if snippet.title == "wordcount.py")
    assert shown.text == (ROOT / "examples" / "wordcount.py").read_text()


def test_the_readme_has_two_commands_to_set_up() -> None:
    def is_plain(snippet: Snippet) -> bool:
        return not snippet.language

    first = next(filter(is_plain, snippets(ROOT / "README.md")))
    assert first.text.splitlines() == ["make demo", "make test"]
