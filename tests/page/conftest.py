"""A shop whose orders come all the time, and a browser that looks at it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

import kstreams as ks
from tests.native.world import World
from tests.page.browser import CHROMIUM, DRIVER, Browser, browser

DAY = 86_400_000
ITEMS = ("tea", "coffee", "milk", "bread")


@cache  # instances in one process share the tasks of one topology
def shop() -> ks.Topology:
    builder = ks.StreamsBuilder()
    customers = builder.table("customers", key=str, value=str)
    orders = builder.stream("orders", key=str, value=dict)
    paid = orders.filter(lambda customer, order: order["amount"] > 5)
    per_customer = paid.group_by_key().count(ks.Materialized("orders-per-customer", queryable=True))
    per_customer.to_stream().to("order-counts", value=int)
    per_item = paid.group_by(lambda customer, order: order["item"], key=str).windowed_by(
        ks.TimeWindows(size=10_000, grace=DAY)
    )
    per_item.count(ks.Materialized("items-by-time", retention=10**9, queryable=True))
    paid.join(customers, lambda order, name: {**order, "name": name}, value=dict).to("named-orders")
    return builder.build()


class Orders:
    """Writes forty orders of fifty customers, twenty times a second; each customer's in order."""

    def __init__(self, world: World) -> None:
        self._world, self._stop = world, threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._last = -1

    def _run(self) -> None:
        with self._world.log() as log, log.producer() as producer:
            for number in count():
                order: dict[str, Any] = {"item": ITEMS[number % 4], "amount": number % 40}
                producer.send(
                    "orders", f"c{number % 50}".encode(), msgspec.json.encode(order), timestamp=number * 10 + 1
                )
                self._last = number
                if number % 40 == 0:
                    producer.flush()
                    if self._stop.wait(0.05):
                        return

    def __enter__(self) -> Orders:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.end()

    def end(self) -> None:
        """Write no more."""
        self._stop.set()
        self._thread.join()

    def paid_by(self, customer: int) -> int:
        """How many orders of a customer were written that cost more than 5."""
        return sum(number % 50 == customer and number % 40 > 5 for number in range(self._last + 1))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return shop_world(tmp_path)


def shop_world(folder: Path, **settings: Any) -> World:
    """Where the shop runs, with its topics and customers."""
    own = {"commit.interval.ms": 200, "application.id": "shop", "server.tail.topics": "orders"}
    made = World(folder, **own, **settings)
    for topic in ("orders", "customers", "order-counts", "named-orders"):
        made.create(topic, 4)
    made.write("customers", [(f"c{number}", f"Customer {number}", 1) for number in range(50)])
    return made


@pytest.fixture
def page() -> Iterator[Browser]:
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("there is no chromium with its chromedriver: apt-get install chromium chromium-driver")
    with browser() as found:
        yield found
