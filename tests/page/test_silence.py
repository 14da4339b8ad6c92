"""What a page shows of an application that is gone, and of the one that comes in its place."""

from __future__ import annotations

import pytest

from tests.native.world import World
from tests.page.browser import Browser
from tests.page.conftest import Orders, shop
from tests.page.test_page import READ, number
from tests.server.served import served

pytestmark = pytest.mark.slow

GONE = "window.real = window.fetch; window.fetch = async () => { throw new TypeError('no way'); };"
BACK = """
    window.fetch = async (address, ...rest) => {
        const answer = await window.real(address, ...rest);
        if (address !== "v1/topology.svg") return answer;
        return new Response((await answer.text()).replaceAll("orders", "wishes"));
    };
"""


def test_one_that_does_not_answer_looks_like_it_and_is_drawn_anew_when_it_has_changed(
    page: Browser, world: World
) -> None:
    with served(world, shop()) as (client, _), Orders(world):
        page.open(f"http://{client.host}/ui#token={client.token}")
        page.until(lambda: number(page.text(READ)) > 0)
        page.driver.execute_script(GONE)
        page.until(lambda: page.text("#state") == "SILENT")
        assert "wrong" in (page.find("#state").get_attribute("class") or "")
        assert page.text("#notice") == f"{client.host} does not answer."
        assert "/s" not in page.text("#total-in") + page.text("#total-out")
        assert page.all(".wire.busy") == []
        page.picture("silent")

        page.driver.execute_script(BACK)
        page.find("[data-id='topic:wishes']")
        page.until(lambda: page.text("#state") == "RUNNING" and not page.all("#notice")[0].is_displayed())
        page.until(lambda: number(page.text("#total-in")) > 0)
