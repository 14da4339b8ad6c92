"""Java writes, an application reads, marks each record and writes it, Java reads: nothing is lost or changed.

Three versions of each schema are mixed in one topic. Java's own resolution says what a reader of the newest one gets.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.log.schema_registries import registry_of
from kstreams.schemas import Schema, SchemaRegistry
from tests.interop.avro_schemas import CUSTOMER_KEY, ORDERS
from tests.interop.java_side import Job, Version, differences, write
from tests.native.world import World
from tests.support.kafka_topics import delete_everything
from tests.support.schema_registry_server import RegistryServer

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

COUNT, KEYS, PARTITIONS = 100_000, 1_000, 6


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with RegistryServer() as running:
        yield running


@pytest.fixture
def registry(server: RegistryServer) -> Iterator[SchemaRegistry]:
    registry = registry_of(Config.of({"schema.registry.url": server.url}))
    yield registry
    registry.close()


@pytest.fixture
def world(kafka: Any, server: RegistryServer, tmp_path: Path) -> World:
    delete_everything(kafka.bootstrap_servers)
    homes = {"bootstrap.servers": kafka.bootstrap_servers, "schema.registry.url": server.url}
    world = World(tmp_path, **homes, **{"processing.guarantee": "exactly_once_v2"})
    for topic in ("orders", "customers", "marked"):
        world.create(topic, PARTITIONS)
    return world


def marked(order: dict[str, Any]) -> dict[str, Any]:
    return {**order, "note": f"seen {order['note']}"}


def versions(registry: SchemaRegistry, subject: str, texts: list[str]) -> list[Version]:
    return [Version(registry.register(subject, Schema(text)).id, text) for text in texts]


def avro_job(world: World, registry: SchemaRegistry, topic: str, count: int) -> Job:
    key = versions(registry, f"{topic}-key", [CUSTOMER_KEY])[0]
    orders = versions(registry, f"{topic}-value", ORDERS)
    return Job(world.settings["bootstrap.servers"], topic, "AVRO", count, KEYS, key, orders)


def test_avro_of_three_versions_comes_back_as_java_would_read_it(
    world: World, registry: SchemaRegistry, tmp_path: Path
) -> None:
    job = avro_job(world, registry, "orders", COUNT)
    write(job, tmp_path)
    builder = ks.StreamsBuilder()
    key, order = ks.Avro(CUSTOMER_KEY), ks.Avro(ORDERS[-1])
    builder.stream("orders", key=key, value=order).map_values(marked, value=order).to("marked")
    world.run(builder.build())
    assert differences(job._replace(topic="marked"), tmp_path) == 0


def test_keys_that_are_grouped_anew_meet_those_that_java_partitioned(
    world: World, registry: SchemaRegistry, tmp_path: Path
) -> None:
    write(avro_job(world, registry, "customers", KEYS), tmp_path)
    write(avro_job(world, registry, "orders", 10 * KEYS), tmp_path)
    builder = ks.StreamsBuilder()
    key, order = ks.Avro(CUSTOMER_KEY), ks.Avro(ORDERS[-1])
    customers = builder.table("customers", key=key, value=order)
    regrouped = builder.stream("orders", key=key, value=order).select_key(lambda key, order: key, key=key)
    joined = regrouped.join(customers, lambda order, customer: [order["number"], customer["number"]], value=list[int])
    joined.to("marked", key=key)
    world.run(builder.build())
    met = [row.value for row in world.rows("marked", bytes, list[int])]
    assert sorted(met) == [[number, number % KEYS] for number in range(10 * KEYS)]
