"""How the page looks: what would be cut, broken or out of sight."""

from __future__ import annotations

import pytest

import kstreams as ks
from tests.native.world import World, until
from tests.page.browser import Browser
from tests.page.conftest import Orders, shop
from tests.page.pretended import pretend
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
LARGE = """([one]) => {
    const count = 123456789;
    one.restores = [{ task: "0_0", store: "customers-STATE-STORE-0000000000", remaining: count }];
    one.lags = [{ topic: "orders", partition: 0, lag: 1000 * count }];
    one.counts.push({ kind: "dropped", of: "KSTREAM-FILTER-0000000004", by: "0_0", count, reason: "late" });
}"""
WIDER = """
    return [...document.querySelectorAll(".card")].filter((card) => {
        const [text, shape] = [card.querySelector(".detail"), card.querySelector("rect, path")];
        return text.getBBox().width > shape.getBBox().width;
    }).map((card) => card.dataset.id);
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
        hidden = "const [table] = arguments; return table.scrollWidth - table.clientWidth"
        assert page.driver.execute_script(hidden, page.find("#stores .rows")) == 0


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


def test_large_numbers_stay_inside_their_cards(page: Browser, world: World) -> None:
    store = "customers-STATE-STORE-0000000000"
    with served(world, shop()) as (client, _):
        page.open(f"http://{client.host}/ui#token={client.token}")
        pretend(page, LARGE)
        page.until(lambda: page.text(f"[data-id='store:{store}'] .detail") == "restoring 123M")
        assert page.text("[data-id='topic:orders'] .detail") == "lag 123B"
        assert page.text("[data-id='node:KSTREAM-FILTER-0000000004'] .detail") == "123M dropped"
        assert page.driver.execute_script(WIDER) == []


def test_what_failed_stands_before_what_waits_and_a_topic_takes_one_line(page: Browser, world: World) -> None:
    with served(world, shop()) as (client, _):
        page.open(f"http://{client.host}/ui#token={client.token}")
        pretend(page, """([one]) => {
            one.failed_threads = 1;
            one.lags = [...Array(64).keys()].map((partition) => ({ topic: "orders", partition, lag: partition }));
        }""")  # fmt: skip
        page.until(lambda: "1 thread ended by errors." in page.text("#overview"))
        assert page.text("#overview").index("ended by errors") < page.text("#overview").index("Lag")
        assert page.texts("[aria-label='Lag'] td") == ["orders", "63", "2,016"]
        page.click("[data-id='topic:orders']")
        page.until(lambda: "62: 62, 63: 63" in page.text(".selected"))


def test_fit_shows_all_of_a_large_topology(page: Browser, world: World) -> None:
    builder = ks.StreamsBuilder()
    step = builder.stream("orders", key=str, value=str)
    for number in range(25):
        step = step.filter(lambda key, value: True).repartition(name=f"step-{number}")
    step.to("named-orders")
    with served(world, builder.build()) as (client, _):
        page.open(f"http://{client.host}/ui#token={client.token}")
        page.find("[data-id='topic:orders']")
        page.click("#fit")
        graph = page.find("#graph")
        assert page.driver.execute_script("return arguments[0].scrollHeight - arguments[0].clientHeight", graph) <= 0
