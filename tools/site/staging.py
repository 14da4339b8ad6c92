"""The sources of the site: Markdown files of the repository, as Sphinx reads them.

The files in the repository are written for GitHub. Their links lead from file to file, their fences carry the words by
which tests run them, and the list in the README of a folder is its table of contents. A staged page has its place in
the site, links to places in the site, fences without those words, and a `toctree` of the pages that it lists.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from tools.site.api import public_names

ROOT = Path(__file__).resolve().parents[2]
PROJECT = ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
"""Pages about the project itself."""

_FENCE = re.compile(r"^(`{3,})([^\n]*)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(\]\()([^)\s]+)(\))")
_NAME = re.compile(r"(?<![`\[])`(?:ks\.)?([A-Z]\w+)(?:\.\w+)?`(?![`\]])")
"""The name of a class, or of a method of a class, as code that is not a link yet."""


def write_staged_pages(folder: Path) -> None:
    """Write the pages of the repository, and the files that they link to, as the sources of the site."""
    for page in repository_pages():
        target = folder / staged_path(page)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(staged_text(page))
        for path in linked_files(page):
            (folder / "files" / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, folder / "files" / path)


def repository_pages() -> list[PurePosixPath]:
    """Return the Markdown files that become pages, relative to the repository."""
    pages = [ROOT / "README.md", *(ROOT / name for name in PROJECT)]
    pages += sorted([*(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("README.md")])
    return [PurePosixPath(page.relative_to(ROOT).as_posix()) for page in pages]


def staged_path(page: PurePosixPath) -> PurePosixPath:
    """Return the place of a page in the sources of the site.

    Examples
    --------
    >>> [str(staged_path(PurePosixPath(page))) for page in ("README.md", "docs/README.md", "docs/how-to/README.md")]
    ['index.md', 'contents.md', 'how-to/index.md']
    """
    if str(page) in PROJECT:
        return PurePosixPath("project", page.name.lower())
    if str(page) in ("README.md", "docs/README.md"):
        return PurePosixPath("index.md" if len(page.parts) == 1 else "contents.md")
    below = page.relative_to("docs") if page.parts[0] == "docs" else page
    return below.with_name("index.md") if page.name == "README.md" else below


def staged_text(page: PurePosixPath) -> str:
    """Return the text of a page as Sphinx reads it."""
    parts = list(_parts((ROOT / page).read_text()))
    text = "".join(staged_fence(part) if is_fence else linked_text(page, part) for is_fence, part in parts)
    return text + "".join(tables_of_contents(page))


def _parts(text: str) -> Iterator[tuple[bool, str]]:
    """Split a text into what is in fences, and what is not."""
    end = 0
    for match in _FENCE.finditer(text):
        yield False, text[end : match.start()]
        yield True, match[0]
        end = match.end()
    yield False, text[end:]


def staged_fence(fence: str) -> str:
    """Return a fence without the words for the tests of the page; the title of a file becomes a caption.

    Examples
    --------
    >>> print(staged_fence("```python title=app.py spark\\nimport kstreams\\n```"))
    ```{code-block} python
    :caption: app.py
    <BLANKLINE>
    import kstreams
    ```
    """
    match = _FENCE.fullmatch(fence)
    if match is None:
        return fence
    marks, words, text = match.groups()
    language, *options = words.split() or ["text"]
    if language in ("json", "jsonl"):
        language = "text"  # lines of objects, with dots that stand for anything, are no JSON
    title = next((option.removeprefix("title=") for option in options if option.startswith("title=")), None)
    caption = f":caption: {title}\n" if title else ""
    return f"{marks}{{code-block}} {language}\n{caption}\n{text}{marks}"


def linked_text(page: PurePosixPath, text: str) -> str:
    """Return a text with links of the site, and with links from public names to their pages of the API reference."""
    api = os.path.relpath("api", staged_path(page).parent)
    public = {name.name for name in public_names("kstreams")}

    def link_to_name(match: re.Match[str]) -> str:
        return f"[{match[0]}]({api}/{match[1]}.rst)" if match[1] in public else match[0]

    lines = _LINK.sub(linker(page), text).splitlines(keepends=True)
    return "".join(line if line.startswith("#") else _NAME.sub(link_to_name, line) for line in lines)


def linker(page: PurePosixPath) -> Callable[[re.Match[str]], str]:
    """Return the function that turns a link of a page into a link of the site."""
    here = staged_path(page)

    def staged_link(match: re.Match[str]) -> str:
        path, _, heading = match[2].partition("#")
        if not path or "://" in path or path.startswith("mailto:"):
            return match[0]
        target = repository_path(page, path)
        place = staged_path(target) if target in PAGES else PurePosixPath("files", target)
        relative = os.path.relpath(place, here.parent)
        return f"{match[1]}{relative}{'#' + heading if heading else ''}{match[3]}"

    return staged_link


PAGES = frozenset(repository_pages())


def repository_path(page: PurePosixPath, link: str) -> PurePosixPath:
    """Return the file that a relative link of a page leads to."""
    return PurePosixPath(os.path.normpath(page.parent / link))


def linked_paths(page: PurePosixPath) -> Iterator[PurePosixPath]:
    """Return the files of the repository that a page links to, in the order of the links."""
    for is_fence, part in _parts((ROOT / page).read_text()):
        if not is_fence:
            for _, link, _ in _LINK.findall(part):
                path = link.partition("#")[0]
                if path and "://" not in path and not path.startswith("mailto:"):
                    yield repository_path(page, path)


def linked_files(page: PurePosixPath) -> list[PurePosixPath]:
    return [path for path in linked_paths(page) if path not in PAGES]


def tables_of_contents(page: PurePosixPath) -> Iterator[str]:
    """Return the tables of contents of a page: a README lists the pages of its folder."""
    if str(page) == "README.md":
        parts = [path for path in dict.fromkeys(linked_paths(PurePosixPath("docs/README.md"))) if is_list(path)]
        project = [_name(PurePosixPath(name)) for name in PROJECT]
        yield _toctree(["contents", *map(_name, parts), "api/index", "examples/index", *project])
    elif page.name == "README.md" and str(page) != "docs/README.md":
        listed = [path for path in dict.fromkeys(linked_paths(page)) if path in PAGES and page.parent in path.parents]
        yield _toctree([os.path.relpath(_name(path), staged_path(page).parent) for path in listed if path != page])


def is_list(page: PurePosixPath) -> bool:
    return page.name == "README.md" and page != PurePosixPath("docs/README.md")


def _name(page: PurePosixPath) -> str:
    return str(staged_path(page).with_suffix(""))


def _toctree(names: list[str]) -> str:
    return "\n```{toctree}\n:hidden:\n\n" + "\n".join(names) + "\n```\n" if names else ""
