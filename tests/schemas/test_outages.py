"""A registry server that goes away, fails and comes back: applications wait, and no record is lost, skipped or doubled.

What an application has asked for once it knows; for all else it waits, up to `task.timeout.ms`.
"""

from __future__ import annotations

import json
import logging
import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from time import monotonic, sleep, time_ns
from typing import Any

import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.errors import RegistryUnavailableError
from kstreams.log.schema_registries import registry_of
from kstreams.runtime.native.lifecycle import State
from kstreams.schemas import Schema
from kstreams.serdes import Serde
from kstreams.state import Stores
from tests.native.world import World, until
from tests.schemas import outage_app
from tests.schemas.conftest import QUICK
from tests.schemas.outage_app import Order, Total
from tests.support.avro_schemas import by_fastavro
from tests.support.schema_registry_server import RegistryServer
from tests.support.schema_serdes import bound
from tests.support.switched_proxy import SwitchedProxy

FIRST: dict[str, Any] = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "customer", "type": "string"},
        {"name": "amount", "type": "long"},
    ],
}
SECOND: dict[str, Any] = {**FIRST, "fields": [*FIRST["fields"], {"name": "note", "type": "string", "default": ""}]}
NOTED = ("", "new")
APP = Path(__file__).parent / "outage_app.py"
RUN = """
import json, sys
from kstreams.app import load_app, run
run(load_app(sys.argv[1], json.loads(sys.argv[2])))
"""
SKIPPING = {
    "deserialization.exception.handler": "continue",
    "processing.exception.handler": "continue",
    "production.exception.handler": "continue",
    "errors.dead.letter.queue.topic.name": "letters",
}
"""Whoever skips what fails, and keeps it elsewhere: an outage is nothing of that kind."""


@pytest.fixture
def proxy(server: RegistryServer) -> Iterator[SwitchedProxy]:
    with SwitchedProxy(server.address) as switched:
        yield switched


@pytest.fixture
def world(tmp_path: Path, proxy: SwitchedProxy) -> World:
    return world_of(tmp_path, proxy)


def world_of(folder: Path, proxy: SwitchedProxy, **home: Any) -> World:
    quick = {**QUICK, "schema.registry.max.retries": 0, "poll.ms": 20, "commit.interval.ms": 20}
    made = World(folder, **{"schema.registry.url": proxy.url}, **quick, **SKIPPING, **home)
    for topic, partitions in {"orders": 2, "marked": 2, "totals": 1, "letters": 1}.items():
        made.create(topic, partitions)
    return made


class Orders:
    """Writes orders by two schemas as another producer does, whose way to the registry is its own."""

    def __init__(self, world: World, server: RegistryServer) -> None:
        self.world, self.count = world, 0
        self.registry = registry_of(Config.of({"schema.registry.url": server.url}))
        self._ids: dict[int, int] = {}

    def write(self, count: int, *, schemas: Iterable[int] = (0,), partition: int | None = None) -> None:
        wanted = list(schemas)
        rows = [self._row(number, wanted[number % len(wanted)]) for number in range(self.count, self.count + count)]
        self.world.write("orders", rows, partition)
        self.count += count

    def expected(self) -> Counter[int]:
        return Counter(range(self.count))

    def totals(self) -> dict[str, Total]:
        made: dict[str, Total] = {}
        for number in range(self.count):
            customer = f"c{number % 7}"
            old = made.get(customer, Total(customer, 0, 0))
            made[customer] = Total(customer, old.amount + number, old.orders + 1)
        return made

    def read(self, serde: Serde[Any], topic: str, *, is_key: bool = False) -> Serde[Any]:
        """A serde that reads a topic by way of the server itself."""
        return bound(serde, self.registry, topic, is_key=is_key)

    def marked(self) -> Counter[int]:
        rows = self.world.rows("marked", str, self.read(ks.Avro(Order), "marked"))
        assert all(row.value.amount == -row.value.id for row in rows)
        return Counter(row.value.id for row in rows)

    def table(self) -> dict[str, Total]:
        key = self.read(ks.Avro('"string"'), "totals", is_key=True)
        found: dict[str, Total] = self.world.table("totals", key, self.read(ks.Avro(Total), "totals"))
        return found

    def _row(self, number: int, schema: int) -> tuple[str, bytes, int]:
        order = {"id": number, "customer": f"c{number % 7}", "amount": number, "note": NOTED[schema]}
        text = (FIRST, SECOND)[schema]
        if schema not in self._ids:
            self._ids[schema] = self.registry.register("orders-value", Schema(json.dumps(text))).id
        frame = b"\x00" + self._ids[schema].to_bytes(4, "big")
        fields = {field["name"]: order[field["name"]] for field in text["fields"]}
        return str(number), frame + by_fastavro(text, fields), 1 + number


@pytest.fixture
def orders(world: World, server: RegistryServer) -> Iterator[Orders]:
    made = Orders(world, server)
    made.registry.set_compatibility("NONE")
    yield made
    made.registry.close()


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
def test_killed_and_started_again_while_the_registry_is_away(
    world: World, orders: Orders, proxy: SwitchedProxy, guarantee: str
) -> None:
    """A new schema appears meanwhile; the new process has asked for none of them yet."""
    orders.write(500)
    first = start(world, guarantee)
    until(lambda: sum(orders.marked().values()) > 100)
    proxy.off()
    orders.write(500, schemas=(0, 1))
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    second, refused = start(world, guarantee), proxy.refused
    until(lambda: proxy.refused > refused + 3)
    os.kill(second.pid, signal.SIGKILL)  # waiting, with whatever it had begun
    second.wait()
    third, refused = start(world, guarantee), proxy.refused
    until(lambda: proxy.refused > refused + 3)
    assert third.poll() is None
    proxy.on()
    until(lambda: orders.marked().keys() == orders.expected().keys())
    until(lambda: orders.table().keys() == orders.totals().keys() and _counts(orders) >= orders.count)
    third.send_signal(signal.SIGTERM)
    assert third.wait(30) == 0, third.stderr.read() if third.stderr else ""
    if guarantee == "exactly_once_v2":
        assert orders.marked() == orders.expected()
        assert orders.table() == orders.totals()
    else:
        assert orders.marked() >= orders.expected()
        assert all(total.orders >= orders.totals()[customer].orders for customer, total in orders.table().items())
    assert world.rows("letters", bytes, bytes) == []


@pytest.mark.slow
def test_killed_at_random_while_the_registry_comes_and_goes(
    world: World, orders: Orders, proxy: SwitchedProxy, server: RegistryServer
) -> None:
    seed = int(os.environ.get("KSTREAMS_TEST_SEED", time_ns() % 2**32))
    print(f"repeat with KSTREAMS_TEST_SEED={seed}")
    moments, over = random.Random(seed), threading.Event()

    def come_and_go() -> None:
        while not over.wait(moments.uniform(0.1, 1.0)):
            moments.choice((proxy.off, proxy.on, lambda: server.fail(moments.randrange(20))))()

    for schema in (0, 1):
        orders.write(1, schemas=[schema])
    registry = threading.Thread(target=come_and_go)
    registry.start()
    for _ in range(8):
        process = start(world, "exactly_once_v2")
        for _ in range(moments.randrange(1, 6)):
            sleep(moments.uniform(0.1, 0.8))
            orders.write(50, schemas=moments.choice(([0], [1], [0, 1])))
        process.kill()
        process.wait()
    over.set()
    registry.join()
    proxy.on()
    server.fail(0)
    process = start(world, "exactly_once_v2")
    until(lambda: orders.marked() == orders.expected() and orders.table() == orders.totals())
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0
    assert world.rows("letters", bytes, bytes) == []


def _counts(orders: Orders) -> int:
    return sum(total.orders for total in orders.table().values())


def start(world: World, guarantee: str) -> subprocess.Popen[str]:
    settings = {key: str(value) for key, value in world.settings.items()} | {"processing.guarantee": guarantee}
    command = [sys.executable, "-c", RUN, str(APP), json.dumps(settings)]
    return subprocess.Popen(command, cwd=Path(__file__).parents[2], stderr=subprocess.PIPE, text=True)


def test_what_is_known_is_read_on_and_what_is_new_is_waited_for(
    world: World, orders: Orders, proxy: SwitchedProxy, caplog: pytest.LogCaptureFixture
) -> None:
    orders.write(50)
    streams = world.streams(outage_app.topology.build(), **{"processing.guarantee": "exactly_once_v2"})
    streams.start()
    until(lambda: orders.table() == orders.totals())
    proxy.off()
    orders.write(50)
    until(lambda: orders.marked() == orders.expected() and orders.table() == orders.totals())
    with caplog.at_level(logging.WARNING):
        orders.write(50, schemas=(0, 1))
        until(lambda: "waits for the schema registry" in caplog.text)
    assert proxy.url in caplog.text
    assert "the schema with the id" in caplog.text
    assert streams.state == State.RUNNING
    proxy.on()
    until(lambda: orders.marked() == orders.expected() and orders.table() == orders.totals())
    streams.close()
    assert streams.error is None
    assert world.rows("letters", bytes, bytes) == []


@pytest.mark.parametrize("handler", ["continue", "fail"])
def test_records_before_an_unknown_schema_and_other_partitions_go_on(
    world: World, orders: Orders, proxy: SwitchedProxy, handler: str
) -> None:
    """Their results are committed meanwhile, and the input that waits is behind: the application has one thread."""
    go_on_while_one_waits(world, orders, proxy, handler)


@pytest.mark.slow
@pytest.mark.kafka
def test_the_same_on_kafka(tmp_path: Path, server: RegistryServer, proxy: SwitchedProxy) -> None:
    """Longer than a transaction may stay open."""
    from tests.support.kafka_cluster import KafkaCluster, can_run

    if not can_run():
        pytest.skip("a broker needs Java, and Maven to fetch it")
    with KafkaCluster(settings={"log.message.timestamp.after.max.ms": 2**63 - 1}) as cluster:
        home = {"bootstrap.servers": cluster.bootstrap_servers, "producer.transaction.timeout.ms": 3_000}
        world = world_of(tmp_path, proxy, **home)
        orders = Orders(world, server)
        orders.registry.set_compatibility("NONE")
        go_on_while_one_waits(world, orders, proxy, "continue", at_least_s=6)
        orders.registry.close()


def go_on_while_one_waits(
    world: World, orders: Orders, proxy: SwitchedProxy, handler: str, *, at_least_s: float = 0
) -> None:
    settings = {"processing.guarantee": "exactly_once_v2", "deserialization.exception.handler": handler}
    orders.write(20)
    streams = world.streams(outage_app.topology.build(), **settings)
    streams.start()
    until(lambda: orders.table() == orders.totals())
    proxy.off()
    orders.write(10, partition=0)
    before = orders.expected()
    orders.write(5, schemas=[1], partition=0)
    waiting = orders.expected() - before
    orders.write(10, partition=0)
    waiting += orders.expected() - before - waiting
    refused = proxy.refused
    until(lambda: proxy.refused > refused + 2)
    for _ in range(3):
        orders.write(10, partition=1)
        until(lambda: orders.marked() == orders.expected() - waiting)
    sleep(at_least_s)
    assert streams.state is State.RUNNING
    proxy.on()
    until(lambda: orders.marked() == orders.expected() and orders.table() == orders.totals())
    streams.close()
    assert world.rows("letters", bytes, bytes) == []


def test_of_many_inputs_that_wait_one_asks(world: World, orders: Orders, proxy: SwitchedProxy) -> None:
    for partition in (0, 1):
        orders.write(10, schemas=[partition], partition=partition)
    proxy.off()
    slow = {"schema.registry.retries.wait.ms": 60_000, "schema.registry.retries.max.wait.ms": 60_000}
    streams = world.streams(outage_app.topology.build(), **slow)
    refused = proxy.refused
    streams.start()
    until(lambda: proxy.refused > refused)
    until(lambda: streams.state is State.RUNNING)
    sleep(0.5)
    assert proxy.refused == refused + 1
    streams.close()


@pytest.mark.parametrize("status", [500, 503, 429])
def test_a_server_that_fails_for_long_is_waited_for(
    world: World, orders: Orders, server: RegistryServer, status: int
) -> None:
    orders.write(40, schemas=(0, 1))
    server.fail(1_000_000, status)
    streams = world.streams(outage_app.topology.build(), **{"processing.guarantee": "exactly_once_v2"})
    streams.start()
    until(lambda: server.requests > 5)
    server.fail(0)
    until(lambda: orders.marked() == orders.expected() and orders.table() == orders.totals())
    streams.close()
    assert world.rows("letters", bytes, bytes) == []


def test_after_the_configured_time_it_ends_and_names_the_registry_and_what_it_asked_for(
    world: World, orders: Orders, proxy: SwitchedProxy
) -> None:
    orders.write(40)
    proxy.off()
    begun = monotonic()
    with pytest.raises(RegistryUnavailableError, match=r"does not answer for the schema with the id 1") as failure:
        world.run(outage_app.topology.build(), task_timeout_ms=700)
    assert monotonic() - begun > 0.7
    assert proxy.url in str(failure.value)
    assert orders.marked() == Counter()
    assert world.rows("letters", bytes, bytes) == []
    proxy.on()
    world.run(outage_app.topology.build())
    assert orders.marked() == orders.expected()
    assert orders.table() == orders.totals()


def test_the_subject_is_named_that_cannot_be_written_to(world: World, orders: Orders, proxy: SwitchedProxy) -> None:
    """Reading needs no more than the id, which is known; what is to be written has to be registered."""
    orders.write(1)
    builder = ks.StreamsBuilder()

    def cut(order: Order) -> Order:
        proxy.off()
        return order

    builder.stream("orders", key=str, value=ks.Avro(Order)).map_values(cut).to("marked", key=str, value=ks.Avro(Order))
    with pytest.raises(RegistryUnavailableError, match="the subject 'marked-value'"):
        world.run(builder.build(), task_timeout_ms=300)
    proxy.on()
    assert orders.marked() == Counter()
    assert world.rows("letters", bytes, bytes) == []


def test_a_store_whose_schema_cannot_be_registered_is_no_fault_of_its_record(
    world: World, orders: Orders, proxy: SwitchedProxy
) -> None:
    """The handler of processing, which skips, is not asked."""
    orders.write(3)

    class Keep(ks.Processor[str, Order, str, Order]):
        def init(self, context: Any) -> None:
            self._context, self._store = context, context.get_state_store("latest")

        def process(self, record: Any) -> None:
            proxy.off()
            self._store.put(record.key, record.value)
            self._context.forward(record)

    builder = ks.StreamsBuilder()
    builder.add_state_store(Stores.key_value("latest", key=str, value=ks.Avro(Order)))
    builder.stream("orders", key=str, value=ks.Avro(Order)).process(
        Keep, stores=["latest"], key=str, value=ks.Avro(Order)
    ).to("marked", key=str, value=ks.Avro(Order))
    with pytest.raises(RegistryUnavailableError, match="app-latest-changelog-value"):
        world.run(builder.build(), task_timeout_ms=300)
    proxy.on()
    assert orders.marked() == Counter()
    assert world.rows("letters", bytes, bytes) == []


def test_a_stop_ends_the_wait(world: World, orders: Orders, proxy: SwitchedProxy) -> None:
    orders.write(40)
    proxy.off()
    streams = world.streams(outage_app.topology.build(), **{"processing.guarantee": "exactly_once_v2"})
    streams.start()
    refused = proxy.refused
    until(lambda: proxy.refused > refused + 2)
    begun = monotonic()
    assert streams.close(timeout=20)
    assert monotonic() - begun < 5
    assert streams.error is None
    assert streams.state == State.NOT_RUNNING
    proxy.on()
    world.run(outage_app.topology.build(), **{"processing.guarantee": "exactly_once_v2"})
    assert orders.marked() == orders.expected()
