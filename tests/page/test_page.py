"""What somebody sees who looks at an application in a browser. Pictures are kept in `build/pages`."""

from __future__ import annotations

import re
import shutil
import threading
from contextlib import ExitStack

import msgspec
import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from kstreams.runtime.native.lifecycle import State
from kstreams.runtime.native.state.restore import RestoreProgress
from tests.native.world import WAIT_S, World, tasks_of, until
from tests.page.browser import Browser
from tests.page.conftest import Orders, shop
from tests.page.pretended import polls, pretend
from tests.server.served import Client, served

pytestmark = pytest.mark.slow

COUNTED = """
    const ask = window.fetch;
    window.polls = 0;
    window.fetch = (...all) => { window.polls += 1; return ask(...all); };
"""
RATES = """
    const done = arguments[0];
    const at = (instance, seconds, count) => ({
      instance, pid: 1, seconds, counts: [{ kind: "read", of: "in", by: "0_0", count, reason: "" }] });
    import(new URL("ui/rates.js", location.href)).then(({ Rates }) => {
      const rates = new Rates();
      const polls = [
        [at("a", 10, 100), at("b", 70, 0)],
        [at("a", 12, 300), at("b", 71, 50)],
        [at("a", 13, 20)],
        [at("a", 14, 30), at("c", 1, 5000)],
      ];
      done(polls.map((instances) => rates.of(instances).get("read:in")));
    }, (error) => done(String(error)));
"""
OF_THE_APPLICATION = ("#graph", ".totals", "#tab-overview", "#tab-tail", "#fit")
READ = "[data-rate='topic:orders>node:KSTREAM-SOURCE-0000000003']"
REPARTITIONED = "[data-meter^='repartitioned:']"


def address(client: Client) -> str:
    return f"http://{client.host}/ui"


def number(text: str) -> float:
    found = re.search(r"[\d.,]+", text)
    return float(found.group().replace(",", "")) if found else 0.0


def test_a_reader_logs_in_sees_rates_looks_a_key_up_and_logs_out(page: Browser, world: World) -> None:
    with served(world, shop(), num_stream_threads=2) as (client, _), Orders(world) as orders:
        page.open(address(client))
        page.write("#token", "wrong-token")
        page.click("#login-form button")
        page.until(lambda: "wrong" in page.text("#login-error"))
        assert page.all(".card") == []

        page.write("#token", client.token)
        page.picture("login")
        page.click("#login-form button")
        page.find("[data-id='topic:orders']")
        assert client.token not in page.driver.current_url + page.driver.page_source
        page.until(lambda: number(page.text(READ)) > 0 and number(page.text("#total-out")) > 0)
        page.until(lambda: number(page.text(REPARTITIONED)) > 0)
        page.until(lambda: page.text("[data-title='0'] .live") == "4 tasks · 2 threads")
        page.picture("overview")

        page.find("[data-id='node:KSTREAM-FILTER-0000000004']").click()
        page.until(lambda: "StreamThread" in page.text(".selected"))
        page.until(lambda: number(page.text(READ)) > 0)
        page.picture("chosen")
        page.click("[data-id='topic:named-orders']")
        page.click(".selected .actions button")
        page.until(lambda: "may not be looked at" in page.text("#tail"))
        page.click("#tab-overview")
        page.click("[data-id='topic:orders']")
        page.click(".selected .actions button")

        page.click("#tab-tail")
        page.until(lambda: any("coffee" in text for text in page.texts("#tail td")))
        assert page.texts("#topic-name option") == ["orders"]
        newest = page.text("#tail tbody tr")
        page.until(lambda: page.text("#tail tbody tr") != newest)
        page.picture("tail")
        until(lambda: orders.paid_by(7) >= 40)  # which is well behind second 20 of event time
        orders.end()
        _look_up(page, client, orders.paid_by(7))

        page.click("#logout")
        page.find("#token")
        assert page.all(".card") == []
        assert page.driver.execute_script("return sessionStorage.length") == 0
        page.driver.refresh()
        page.find("#token")
        # The one thing that the console may tell is the refusal of the wrong token.
        assert all("401" in each for each in page.complaints())


def _look_up(page: Browser, client: Client, paid: int) -> None:
    until(lambda: [row["value"] for row in client.rows("/v1/stores/orders-per-customer/keys/c7")] == [paid])
    until(lambda: [row["value"] for row in client.rows("/v1/stores/items-by-time/keys/tea?as_of=15000")] == [200])
    page.click("#tab-stores")
    page.driver.execute_script("arguments[0].scrollIntoView()", page.find("#store-name"))
    choose(page, "orders-per-customer")
    page.write("#ask-key", "c7")
    page.click("#ask")
    page.until(lambda: page.texts("#stores td")[:2] == ["c7", str(paid)])
    page.picture("store")

    page.find("#ask-key").clear()
    page.write("#ask-prefix", "c1")
    page.click("#ask")
    page.until(lambda: len(page.texts("#stores tbody tr")) == 11)

    choose(page, "items-by-time")
    page.write("#ask-key", "tea")
    page.write("#ask-as_of", "15000")
    page.click("#ask")
    page.until(lambda: page.texts("#stores td")[2:4] == ["1970-01-01 00:00:10", "1970-01-01 00:00:20"])
    page.find("#ask-key").clear()
    page.find("#ask-as_of").clear()
    page.write("#ask-from", "1970-01-01T00:00:00Z")
    page.click("#ask")
    page.until(lambda: "tea" in page.texts("#stores td"))
    page.picture("windows")


def choose(page: Browser, store: str) -> None:
    """Ask a store, which the tab of stores offers."""
    field = page.find("#store-name")
    [option] = [each for each in field.find_elements(By.TAG_NAME, "option") if each.text == store]
    option.click()
    page.until(lambda: page.find("#ask-key").get_attribute("value") == "")


def test_a_reader_of_some_stores_sees_these_alone(page: Browser, world: World) -> None:
    readers = world.folder / "readers.toml"
    readers.write_text('[reports]\ntoken = "0123456789abcdef"\nstores = ["orders-per-customer"]\n')
    readers.chmod(0o600)
    with served(world, shop(), server_readers_file=readers) as (client, _), Orders(world):
        until(lambda: client.rows("/v1/stores/orders-per-customer/keys/c7"))
        page.open(address(client))
        page.write("#token", "0123456789abcdef")
        page.click("#login-form button")
        page.until(lambda: page.texts("#store-name option") == ["orders-per-customer"])
        assert not any(page.all(part)[0].is_displayed() for part in OF_THE_APPLICATION)
        page.write("#ask-key", "c7")
        page.click("#ask")
        page.until(lambda: page.texts("#stores td")[:1] == ["c7"])
        page.picture("reader")

        page.click("#logout")
        page.write("#token", client.token)
        page.click("#login-form button")
        page.find("[data-id='topic:orders']")
        assert all(page.all(part)[0].is_displayed() for part in OF_THE_APPLICATION)
        page.click("#tab-stores")
        page.until(lambda: len(page.texts("#store-name option")) == 2)


def test_an_address_with_the_token_logs_in_and_keeps_none_of_it(page: Browser, world: World) -> None:
    with served(world, shop()) as (client, _):
        page.open(f"{address(client)}#token={client.token}")
        page.find("[data-id='topic:orders']")
        assert page.driver.current_url == address(client)
        page.driver.refresh()
        page.find("[data-id='topic:orders']")
        assert page.complaints() == []


def test_rates_are_differences_over_the_clock_of_each_instance(page: Browser, world: World) -> None:
    with served(world, shop()) as (client, _):
        page.open(address(client))
        page.find("#token")
        # The second instance counts half as fast; the first began anew; one that is new has no rate yet.
        assert page.driver.execute_async_script(RATES) == [0, 150, 0, 10]


def test_what_was_dropped_stays_so_when_its_task_goes_elsewhere(page: Browser, world: World) -> None:
    dropped = '{ kind: "dropped", of: "KSTREAM-FILTER-0000000004", by: "0_0", reason: "late", count }'
    with served(world, shop()) as (client, _):
        page.open(f"{address(client)}#token={client.token}")
        page.until(lambda: page.text("#total-dropped") == "0")
        pretend(page, f"([one]) => {{ for (const count of window.counted ?? []) one.counts.push({dropped}); }}")
        for counted, total in (("[5]", "5"), ("[]", "5"), ("[2]", "7")):
            page.driver.execute_script(f"window.counted = {counted}")
            page.until(lambda: page.text("#total-dropped") == total)  # noqa: B023
            polls(page, 2)
            assert page.text("#total-dropped") == total


def test_delays_by_quotas_are_a_sentence(page: Browser, world: World) -> None:
    delays = '{ kind: "throttled", of: "producing", by: "t", reason: "", count: window.delay_ms ?? 0 }'
    with served(world, shop()) as (client, _):
        page.open(f"{address(client)}#token={client.token}")
        page.until(lambda: page.text("#total-dropped") == "0")
        assert "Quotas" not in page.text("#overview")
        pretend(page, f"([one]) => {{ one.counts.push({delays}); }}")
        page.driver.execute_script("window.delay_ms = 4200")
        page.until(lambda: "Quotas delayed producing: 4.2 s so far." in page.text("#overview"))


def test_whole_numbers_are_shown_to_the_last_digit(page: Browser, world: World) -> None:
    large = 2**63 - 1
    world.write("orders", [("c1", msgspec.json.encode({"item": "tea", "amount": large}).decode(), 1)])
    with served(world, shop()) as (client, _):
        page.open(f"{address(client)}#token={client.token}")
        page.click("#tab-tail")
        page.until(lambda: page.texts("#tail td")[2:] == ["c1", f'{{"item":"tea","amount":{large}}}'])


def test_any_key_is_found_and_the_choice_of_a_store_keeps_the_focus(page: Browser, world: World) -> None:
    keys = [".", "..", "a/b", "ü?#%", '"', "<b>"]
    world.write("orders", [(key, '{"item": "tea", "amount": 10}', 1) for key in keys])
    with served(world, shop()) as (client, _):
        until(lambda: len(client.rows("/v1/stores/orders-per-customer/rows")) == len(keys))
        page.open(f"{address(client)}#token={client.token}")
        page.click("#tab-stores")
        page.find("#store-name").send_keys(Keys.HOME)
        page.find("#store-name").send_keys(Keys.END)
        assert page.driver.switch_to.active_element.get_attribute("id") == "store-name"
        choose(page, "orders-per-customer")
        for key in keys:
            page.write("#ask-key", key)
            page.click("#ask")
            page.until(lambda: page.texts("#stores td")[:2] == [key, "1"])  # noqa: B023


def test_a_rebalance_is_followed(page: Browser, world: World) -> None:
    with ExitStack() as first, ExitStack() as second, Orders(world):
        one, streams = first.enter_context(served(world, shop()))
        page.open(f"{address(one)}#token={one.token}")
        page.until(lambda: page.text("[data-title='0'] .live") == "4 tasks · 1 thread")

        other, others = second.enter_context(served(world, shop()))
        until(lambda: 0 < len(tasks_of(others)) < 8)
        page.until(lambda: "2 instances" in page.text("[data-title='0'] .live"))
        page.until(lambda: page.text("#state") == "RUNNING · 2 instances")
        page.until(lambda: number(page.text(READ)) > 0)
        assert str(other.host) in page.text("#overview")
        page.picture("two-instances")

        second.close()
        page.until(lambda: page.text("[data-title='0'] .live") == "4 tasks · 1 thread")
        page.until(lambda: number(page.text(READ)) > 0)
        assert streams.state is State.RUNNING


def test_a_restore_shows_how_much_is_left(page: Browser, world: World) -> None:
    with Orders(world) as orders:
        until(lambda: orders.paid_by(7) >= 10)
    world.run(shop())
    shutil.rmtree(world.settings["state.dir"])
    going_on = threading.Event()

    def hold(progress: RestoreProgress) -> None:
        if progress.store == "orders-per-customer":
            going_on.wait(WAIT_S)

    with served(world, shop(), on_restore=hold) as (client, _):
        page.open(f"{address(client)}#token={client.token}")
        bar = "progress[aria-label^='orders-per-customer of 0_']"
        page.until(lambda: page.find(bar).get_attribute("value") == "0")
        most = number(page.find(bar).get_attribute("max") or "")
        assert most == max(map(number, page.texts("#overview td:last-child"))) > 0
        assert page.find(bar).size["width"] > 100
        page.until(lambda: "restoring" in page.text("[data-id='store:orders-per-customer']"))
        page.picture("restore")
        going_on.set()
        page.until(lambda: page.text("#state") == "RUNNING" and not page.all("progress"))
        assert "restoring" not in page.text("[data-id='store:orders-per-customer']")


def test_when_the_instance_ends_the_page_names_another_one(page: Browser, world: World) -> None:
    with ExitStack() as first, ExitStack() as second:
        one, _ = first.enter_context(served(world, shop()))
        other, _ = second.enter_context(served(world, shop()))
        page.open(f"{address(one)}#token={one.token}")
        page.until(lambda: page.text("#state") == "RUNNING · 2 instances")
        first.close()
        page.click("#notice a")
        page.until(lambda: page.driver.current_url == address(other))
        page.until(lambda: page.text("#state") == "RUNNING")


def test_everything_is_reached_by_keyboard_and_dark_is_dark(page: Browser, world: World) -> None:
    with served(world, shop()) as (client, _), Orders(world):
        page.dark()
        page.open(f"{address(client)}#token={client.token}")
        card = page.find("[data-id='store:orders-per-customer']")
        page.driver.execute_script("arguments[0].focus()", card)
        card.send_keys(Keys.ENTER)
        page.until(lambda: page.text(".selected .title") == "orders-per-customer")
        assert card.get_attribute("aria-pressed") == "true"
        page.until(lambda: number(page.text(READ)) > 0)
        page.picture("dark")
        page.find("#tab-overview").send_keys(Keys.ARROW_RIGHT)
        page.find("#ask-key").send_keys("tea", Keys.ENTER)
        page.until(lambda: page.texts("#stores td")[:1] == ["tea"])
        page.picture("dark-store")
        unnamed = page.driver.execute_script(
            "return [...document.querySelectorAll('button, input, select')].filter((each) => "
            "!each.textContent && !each.labels?.length && !each.ariaLabel).length"
        )
        assert unnamed == 0


def test_the_picture_is_one_stop_of_a_keyboard_and_arrows_go_through_it(page: Browser, world: World) -> None:
    def has_focus(card: str) -> bool:
        return page.driver.execute_script("return document.activeElement.dataset.id") == card

    def press(*keys: str) -> None:
        for key in keys:
            page.driver.switch_to.active_element.send_keys(key)

    with served(world, shop()) as (client, _):
        page.open(f"{address(client)}#token={client.token}")
        page.until(lambda: page.text("#state") == "RUNNING")
        page.driver.execute_script("arguments[0].focus()", page.find("#graph"))
        press(Keys.TAB)
        assert has_focus("node:KSTREAM-SOURCE-0000000001")
        press(Keys.ARROW_UP)
        assert has_focus("topic:customers")
        press(Keys.ARROW_LEFT, Keys.ARROW_DOWN, Keys.ARROW_DOWN)
        assert has_focus("node:KSTREAM-FILTER-0000000004")
        press(Keys.ENTER)
        page.until(lambda: page.text(".selected .title") == "KSTREAM-FILTER-0000000004")
        press(Keys.TAB)
        page.until(lambda: page.driver.switch_to.active_element.get_attribute("id") == "tab-overview")
        press(Keys.ESCAPE)
        page.until(lambda: not page.all(".selected") and has_focus("node:KSTREAM-FILTER-0000000004"))
        pretend(page, "([one]) => { one.lags = [{ topic: 'orders', partition: 0, lag: 17 }]; }")
        orders = "[data-id='topic:orders']"
        page.until(lambda: page.all(orders)[0].get_attribute("aria-label") == "topic orders, lag 17")


def test_a_page_that_nobody_sees_asks_nothing(page: Browser, world: World) -> None:
    with served(world, shop()) as (client, _):
        page.open(f"{address(client)}#token={client.token}")
        page.until(lambda: page.text("#state") == "RUNNING")
        page.driver.execute_script("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
        page.driver.execute_script("document.dispatchEvent(new Event('visibilitychange'))")
        page.driver.execute_script(COUNTED)
        page.driver.execute_async_script("setTimeout(arguments[0], 6000)")  # longer than the slowest poll
        assert page.driver.execute_script("return window.polls") == 0
        page.driver.execute_script("Object.defineProperty(document, 'hidden', {value: false, configurable: true});"
                                   "document.dispatchEvent(new Event('visibilitychange'))")  # fmt: skip
        page.until(lambda: page.driver.execute_script("return window.polls") > 0)
