"""The site of the documentation: complete, accessible, and without requests to other hosts. `make site` builds it."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import distribution
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

from tests.docs.pages import ROOT
from tests.page.browser import CHROMIUM, DRIVER, Browser, browser
from tools.site.additions import BuiltPage, page_for_wrong_addresses
from tools.site.api import MODULES, PublicName, own_names, public_names
from tools.site.staging import PAGES, staged_text

PUBLIC = [*public_names("kstreams"), *(name for module in MODULES for name in own_names(module))]
LOOKED_AT = ("index.html", "tutorials/windows.html", "reference/configuration.html", "api/KStream.html", "search.html")
AXE = """
    const done = arguments[arguments.length - 1];
    const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"];
    axe.run(document, {runOnly: tags, preload: false}).then((results) => done(results.violations.map(
        (violation) => [violation.id, ...violation.nodes.slice(0, 3).map((node) => node.html)])));
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the version in a newly built site; a warning of the builder fails the test."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "tools.site", str(folder)]
    build = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert build.returncode == 0, build.stdout + build.stderr
    return next(folder.glob("*/objects.inv")).parent


@pytest.fixture
def page() -> Iterator[Browser]:
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("there is no chromium with its chromedriver: apt-get install chromium chromium-driver")
    with browser() as opened:
        yield opened


@pytest.mark.parametrize("name", PUBLIC, ids=lambda name: f"{name.module}.{name.name}")
def test_each_public_name_says_what_it_is(name: PublicName) -> None:
    assert name.summary


def test_a_page_leads_to_places_of_the_site() -> None:
    text = staged_text(PurePosixPath("docs/tutorials/first-application.md"))
    assert "[Types and serdes](../reference/types.md)" in text
    assert "[`KTable`](../api/KTable.rst)" in text
    assert "```{code-block} python\n:caption: payments.py\n" in text
    assert "title=" not in text


def test_the_first_page_lists_all_parts() -> None:
    text = staged_text(PurePosixPath("README.md"))
    for part in ("contents", "tutorials/index", "how-to/index", "reference/index", "explanation/index", "api/index"):
        assert f"\n{part}\n" in text


def test_pages_of_the_repository_are_known() -> None:
    assert PurePosixPath("docs/decisions/README.md") in PAGES


def test_a_wrong_address_proposes_pages_with_similar_addresses(page: Browser, tmp_path: Path) -> None:
    pages = [BuiltPage("how-to/spark.html", "Running on Spark"), BuiltPage("how-to/kafka.html", "Kafka")]
    wrong = tmp_path / "0.1.0" / "spark.html"
    wrong.parent.mkdir()
    wrong.write_text(page_for_wrong_addresses("0.1.0", pages))
    page.open(wrong.as_uri())
    assert page.texts("#similar a")[0] == "Running on Spark"
    address = page.find("#similar a").get_attribute("href")
    assert address == (tmp_path / "0.1.0" / "how-to" / "spark.html").as_uri()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_each_link_leads_to_a_page_and_a_place(site: Path) -> None:
    anchors = {file: set(re.findall(r'\bid="([^"]+)"', file.read_text())) for file in site.rglob("*.html")}
    broken = []
    for file in anchors:
        for address in re.findall(r'<a\b[^>]*\bhref="([^"]+)"', file.read_text()):
            parts = urlsplit(address)
            target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
            if parts.scheme or parts.netloc:
                continue
            if not target.exists() or (parts.fragment and target in anchors and parts.fragment not in anchors[target]):
                broken.append((file.relative_to(site).as_posix(), address))
    assert broken == []


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_each_public_name_has_its_place_in_the_reference(site: Path) -> None:
    for name in PUBLIC:
        built = (site / name.page).with_suffix(".html").read_text()
        assert f'id="{name.module}.{name.name}"' in built, name


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_page_loads_nothing_from_elsewhere_and_meets_wcag_aa(site: Path, page: Browser) -> None:
    axe = Path(str(distribution("axe-playwright-python").locate_file("axe_playwright_python/axe.min.js"))).read_text()
    page.driver.set_script_timeout(600)  # axe takes minutes for a long page of the API on a busy machine
    violations: dict[tuple[str, str], Any] = {}
    for dark in (False, True):
        page.dark(dark)
        for address in LOOKED_AT:
            page.open((site / address).as_uri())
            loaded = page.driver.execute_script("return performance.getEntriesByType('resource').map((it) => it.name)")
            assert [name for name in loaded if not name.startswith("file:")] == []
            page.picture(f"site-{address.replace('/', '-').removesuffix('.html')}-{'dark' if dark else 'light'}")
            page.driver.execute_script(axe)
            if found_by_axe := page.driver.execute_async_script(AXE):
                violations[address, "dark" if dark else "light"] = found_by_axe
    assert violations == {}


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_word_is_found_in_a_site_of_files(site: Path, page: Browser) -> None:
    page.open((site / "search.html").as_uri() + "?q=suppress")
    assert page.until(lambda: page.texts("#search-results li a"))


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_all_versions_and_the_list_for_language_models_are_there(site: Path, page: Browser) -> None:
    assert f"({site.name}/tutorials/windows.html)" in (site.parent / "llms.txt").read_text()
    page.open((site / "index.html").as_uri())
    assert page.texts("#versions option")[0].strip() == site.name
