"""What a site has besides its pages: the list of versions, a first page, a page for wrong addresses, and `llms.txt`."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tools.site.staging import ROOT

TEMPLATES = Path(__file__).parent / "templates"


class BuiltPage(NamedTuple):
    """A page of the built site: its address below the version, and its title."""

    address: str
    title: str


def write_additions(target: Path, version: Path) -> None:
    """Write what the site has besides the pages of a version."""
    versions = sorted((path.parent.name for path in target.glob("*/objects.inv")), reverse=True)
    pages = built_pages(version)
    (target / "versions.js").write_text(f"window.kstreamsVersions = {json.dumps(versions)};\n")
    (target / "index.html").write_text(first_page(versions[0]))
    (target / "404.html").write_text(page_for_wrong_addresses(version.name, pages))
    (target / "llms.txt").write_text("\n".join(llms_text(version.name, pages)) + "\n")


def built_pages(version: Path) -> list[BuiltPage]:
    """Return the pages of a built version."""
    pages = []
    for source in sorted((version / "_sources").rglob("*.txt")):
        address = source.relative_to(version / "_sources").as_posix().rsplit(".", 2)[0] + ".html"
        title = re.search(r"<title>(.*?) - kstreams.*?</title>", (version / address).read_text())
        pages.append(BuiltPage(address, html.unescape(title[1]) if title else "kstreams"))
    return pages


def first_page(version: str) -> str:
    """Return a page that leads to the newest version."""
    address = f"{version}/index.html"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>kstreams</title>'
        f'<meta http-equiv="refresh" content="0; url={address}"></head>'
        f'<body><p><a href="{address}">kstreams {version}</a></p></body></html>\n'
    )


def page_for_wrong_addresses(version: str, pages: list[BuiltPage]) -> str:
    """Return the page that a server sends for an address without a page; it proposes pages with similar addresses."""
    text = (TEMPLATES / "404.html").read_text()
    return text.replace("VERSION", version).replace("PAGES", json.dumps(pages).replace("<", "\\u003c"))


def llms_text(version: str, pages: list[BuiltPage]) -> Iterator[str]:
    """Return the list of pages that language models read: https://llmstxt.org."""
    introduction = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", (ROOT / "README.md").read_text().split("\n\n")[1])
    yield "# kstreams\n\n> " + " ".join(introduction.split())
    parts: dict[str, list[BuiltPage]] = {}
    for page in pages:
        parts.setdefault(page.address.partition("/")[0] if "/" in page.address else "start", []).append(page)
    for part in sorted(parts, key=lambda name: (name != "start", name == "decisions", name)):
        yield f"\n## {part.capitalize()}\n"
        yield from (f"- [{page.title}]({version}/{page.address})" for page in parts[part])
