"""Pages of the documentation: each has its place, and each link leads to a page and a heading that exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.docs.pages import ROOT

DOCS = ROOT / "docs"
FOLDERS = sorted(path for path in DOCS.iterdir() if (path / "README.md").exists())
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md"), *(ROOT / "examples").rglob("*.md")])
_FENCED = re.compile(r"^(```+).*?^\1$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


class Link(NamedTuple):
    """A link of a page: the file and the heading that it leads to."""

    target: Path
    heading: str


def text_of(page: Path) -> str:
    return _FENCED.sub("", page.read_text())


def links(page: Path) -> Iterator[Link]:
    """Return the links of a page that lead into the repository."""
    for address in _LINK.findall(text_of(page)):
        if "://" not in address and not address.startswith("mailto:"):
            path, _, heading = address.partition("#")
            yield Link((page.parent / path).resolve() if path else page, heading)


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors of the headings of a page, as GitHub spells them."""
    return frozenset(
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
        for heading in _HEADING.findall(text_of(page))
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_each_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for link in links(page):
        assert link.target.exists(), link.target.relative_to(ROOT)
        assert not link.heading or link.heading in anchors(link.target), link


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_each_page_stands_in_the_list_of_its_folder(folder: Path) -> None:
    listed = {link.target for link in links(folder / "README.md")}
    assert {page for page in folder.glob("*.md") if page.name != "README.md"} <= listed


def test_each_folder_stands_in_the_list_of_all() -> None:
    assert {folder / "README.md" for folder in FOLDERS} <= {link.target for link in links(DOCS / "README.md")}
    assert [page.name for page in DOCS.glob("*.md")] == ["README.md"]


@pytest.mark.parametrize("source", sorted((ROOT / "kstreams").rglob("*.py")), ids=lambda path: path.stem)
def test_each_page_that_code_names_exists(source: Path) -> None:
    for named in re.findall(r"\bdocs/[\w/-]+\.\w+", source.read_text()):
        assert (ROOT / named).exists(), named
