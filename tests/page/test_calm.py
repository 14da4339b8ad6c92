"""A page that is looked at for long: it keeps what its reader has selected, and touches nothing that is as it was."""

from __future__ import annotations

import pytest

from kstreams.runtime.native.lifecycle import State
from tests.native.world import World, until
from tests.page.browser import Browser
from tests.page.conftest import shop
from tests.page.pretended import polls, pretend
from tests.server.served import served

pytestmark = pytest.mark.slow

WATCH = """
    window.changes = [];
    new MutationObserver((all) => changes.push(...all.map((each) => each.target.nodeName)))
      .observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true });
"""


def test_nothing_is_touched_while_nothing_happens(page: Browser, world: World) -> None:
    with served(world, shop()) as (client, streams):
        until(lambda: streams.state is State.RUNNING)
        page.open(f"http://{client.host}/ui#token={client.token}")
        page.until(
            lambda: page.text("[data-title='0'] .live") == "4 tasks · 1 thread" and page.text("#total-lag") == "0"
        )
        polls(page, 2)
        page.driver.execute_script(WATCH)
        polls(page, 3)
        assert page.driver.execute_script("return window.changes") == []


def test_what_is_selected_stays_while_numbers_change(page: Browser, world: World) -> None:
    with served(world, shop()) as (client, _):
        page.open(f"http://{client.host}/ui#token={client.token}")
        page.until(lambda: "RUNNING" in page.text("#overview"))
        page.click("[data-id='topic:orders']")
        close = page.find("#overview .close")
        page.driver.execute_script("getSelection().selectAllChildren(document.querySelector('#overview td'))")
        pretend(page, "([one]) => { window.heard = (window.heard ?? 0) + 7; one.pid = heard; }")
        page.until(lambda: page.driver.execute_script("return window.heard > 20"))
        assert page.driver.execute_script("return String(getSelection())") == str(client.host)
        close.click()  # the button that was there at first
        page.until(lambda: not page.all("#overview .close"))
