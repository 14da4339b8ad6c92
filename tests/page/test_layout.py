"""How the page looks: what would be cut, broken or out of sight."""

from __future__ import annotations

import pytest

from tests.native.world import World, until
from tests.page.browser import Browser
from tests.page.conftest import Orders, shop
from tests.page.test_page import choose
from tests.server.served import served

pytestmark = pytest.mark.slow

LINES = """
    const rows = (text) => {
        const range = document.createRange();
        range.selectNodeContents(text);
        return new Set([...range.getClientRects()].map((each) => Math.round(each.top))).size;
    };
    const texts = document.createTreeWalker(arguments[0], NodeFilter.SHOW_TEXT);
    const found = [];
    while (texts.nextNode()) if (rows(texts.currentNode) > 1) found.push(texts.currentNode.textContent);
    return found;
"""


def broken(page: Browser, selector: str) -> list[str]:
    """The texts of an element that take more than one line."""
    return page.driver.execute_script(LINES, page.find(selector))


def narrow(page: Browser, width: int = 400, height: int = 800) -> None:
    """Show what a reader sees in a small window."""
    page.driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
    )


def test_times_and_offsets_are_not_broken_in_the_middle(page: Browser, world: World) -> None:
    with served(world, shop()) as (client, _), Orders(world):
        until(lambda: client.rows("/v1/stores/items-by-time/keys/tea?as_of=15000"))
        page.open(f"http://{client.host}/ui#token={client.token}")
        page.click("#tab-tail")
        page.until(lambda: len(page.all("#tail tbody tr")) > 5)
        page.click("#pause")
        assert [text for text in broken(page, "#tail tbody") if "{" not in text] == []
        page.click("#tab-stores")
        choose(page, "items-by-time")
        page.click("#ask")
        page.find("#stores tbody")
        assert broken(page, "#stores tbody") == []


def test_in_a_narrow_window_the_tabs_stand_right_below_the_picture(page: Browser, world: World) -> None:
    with served(world, shop()) as (client, _):
        narrow(page)
        page.open(f"http://{client.host}/ui#token={client.token}")
        for tab in ("overview", "stores"):
            page.click(f"#tab-{tab}")
            graph, tabs = page.find("#graph").rect, page.find(".tabs").rect
            assert graph["y"] + graph["height"] == pytest.approx(tabs["y"], abs=2)
            assert tabs["y"] < 800 - 100
        page.picture("narrow")
        wide = "return document.documentElement.scrollWidth"
        assert page.driver.execute_script(wide) == 400
