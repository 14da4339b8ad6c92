"""The page behind TLS, in an application of the user's own, and behind a proxy that takes a prefix away."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

import kstreams as ks
from kstreams.runtime.native.streams import KafkaStreams
from kstreams.server import application
from tests.native.world import World, until
from tests.page.browser import Browser
from tests.page.conftest import Orders, shop, shop_world
from tests.page.test_page import READ, choose, number
from tests.server.served import Client, served
from tests.support.certificates import Authority, can_make
from tests.support.kafka_cluster import KafkaCluster
from tests.support.kafka_topics import delete_everything

pytestmark = pytest.mark.slow

TOKEN = "a-token-that-is-long-enough"


@contextmanager
def web(app: Any) -> Iterator[str]:
    """Serve an ASGI application at a free port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, lifespan="off", log_config=None))
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            until(lambda: server.started)
            yield f"127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


@contextmanager
def mounted(world: World, topology: ks.Topology) -> Iterator[str]:
    """The address of a page that an application of the user's own has under a path."""
    with KafkaStreams(topology, world.settings) as streams:
        app = Starlette()
        app.mount("/our/shop", application(streams, TOKEN))
        streams.start()
        with web(app) as host:
            yield f"http://{host}/our/shop/ui"


def proxy(client: Client, prefix: str) -> Starlette:
    """Passes on what is asked below a prefix, without the prefix, as nginx and others do."""

    def passed_on(request: Request) -> Response:
        target = request.url.path.removeprefix(prefix) + (f"?{request.url.query}" if request.url.query else "")
        answer = client.ask(target, Authorization=request.headers.get("authorization", ""))
        kept = {name: value for name, value in answer.headers.items() if name.lower() != "content-length"}
        return Response(answer.body, answer.status, kept)

    return Starlette(routes=[Route(f"{prefix}/{{rest:path}}", passed_on)])


def looks_around(page: Browser, address: str, token: str, orders: Orders) -> None:
    """Log in, see rates, look a key up, see records as they come, log out; nothing may be refused on the way."""
    page.open(address)
    page.write("#token", token)
    page.click("#login-form button")
    page.find("[data-id='topic:orders']")
    page.until(lambda: number(page.text(READ)) > 0 and number(page.text("#total-out")) > 0)
    page.click("#tab-tail")
    page.until(lambda: any("coffee" in text for text in page.texts("#tail td")))
    until(lambda: orders.paid_by(7) >= 40)
    orders.end()
    looks_up(page, orders.paid_by(7))
    page.click("#logout")
    page.find("#token")
    assert page.driver.current_url == address
    assert page.complaints() == []


def looks_up(page: Browser, paid: int) -> None:
    """Ask for a key until its last order is counted."""
    page.click("#tab-stores")
    choose(page, "orders-per-customer")
    page.write("#ask-key", "c7")

    def is_answered() -> bool:
        page.click("#ask")
        return page.texts("#stores td")[:2] == ["c7", str(paid)]

    page.until(is_answered)


def test_it_follows_an_application_over_kafka_and_its_rebalances(
    page: Browser, kafka: KafkaCluster, tmp_path: Path
) -> None:
    delete_everything(kafka.bootstrap_servers)
    world = shop_world(tmp_path, **{"log.dir": None, "bootstrap.servers": kafka.bootstrap_servers})
    with served(world, shop()) as (client, _):
        with Orders(world) as orders:
            looks_around(page, f"http://{client.host}/ui", client.token, orders)
        page.open(f"http://{client.host}/ui#token={client.token}")
        page.until(lambda: "4 tasks" in page.text("[data-title='0'] .live"))
        with served(world, shop()) as (other, _), Orders(world):
            page.until(lambda: page.text("#state") == "RUNNING · 2 instances")
            page.until(lambda: "2 instances" in page.text("[data-title='0'] .live"))
            page.until(lambda: number(page.text(READ)) > 0)
            assert str(other.host) in page.text("#overview")
            page.picture("kafka")
        page.until(lambda: page.text("#state") == "RUNNING")
        assert page.complaints() == []


@pytest.mark.skipif(not can_make(), reason="needs openssl")
def test_two_instances_behind_tls_answer_for_each_other_in_the_page(page: Browser, world: World) -> None:
    pem = Authority(world.folder / "authority").server("IP:127.0.0.1")
    tls = {"server_tls_certificate": pem, "server_tls_key": pem}
    with ExitStack() as stack, Orders(world) as orders:
        [one, other] = [stack.enter_context(served(world, shop(), **tls))[0] for _ in range(2)]
        page.open(f"https://{one.host}/ui#token={one.token}")
        page.until(lambda: page.text("#state") == "RUNNING · 2 instances")
        page.until(lambda: "2 instances" in page.text("[data-title='0'] .live"))
        assert str(other.host) in page.text("#overview")
        page.click("#logout")
        looks_around(page, f"https://{one.host}/ui", one.token, orders)
        page.open(f"https://{other.host}/ui#token={other.token}")  # one of the two has the key, the other asks it
        looks_up(page, orders.paid_by(7))
        page.picture("tls")


def test_it_stands_under_a_path_of_the_users_own_application(page: Browser, world: World) -> None:
    with mounted(world, shop()) as address, Orders(world) as orders:
        looks_around(page, address, TOKEN, orders)


def test_it_stands_behind_a_proxy_that_takes_a_prefix_away(page: Browser, world: World) -> None:
    with served(world, shop()) as (client, _), web(proxy(client, "/of/others")) as host, Orders(world) as orders:
        looks_around(page, f"http://{host}/of/others/ui", client.token, orders)
