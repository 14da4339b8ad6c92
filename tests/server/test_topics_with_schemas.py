"""The page shows the records of topics whose schemas are in a registry."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import kstreams as ks
from kstreams.config import Config
from kstreams.log.schema_registries import ApplicationRegistry
from kstreams.serdes.base import SerdeUse
from tests.native.world import World, until
from tests.schemas.conftest import QUICK
from tests.server.served import Client, served
from tests.support.schema_registry_server import RegistryServer
from tests.support.switched_proxy import SwitchedProxy


@dataclasses.dataclass(frozen=True)
class Order:
    id: int
    note: str


def doubled() -> ks.Topology:
    builder = ks.StreamsBuilder()
    orders = builder.stream("orders", key=str, value=ks.Avro(Order))
    orders.map_values(lambda order: dataclasses.replace(order, id=2 * order.id)).to("doubled", value=ks.Avro(Order))
    return builder.build()


def world_of(folder: Path, url: str) -> World:
    """Orders by another producer, which notes nothing in the settings of the topic."""
    world = World(folder, **{"schema.registry.url": url, **QUICK})
    for topic in ("orders", "doubled"):
        world.create(topic)
    config = Config.of(world.settings)
    registry = ApplicationRegistry(config)
    write = ks.Avro(Order).of_topic(SerdeUse("orders", False, config, registry)).serialize
    world.write("orders", [("k", write(Order(number, "x")), number) for number in range(3)])
    registry.close()
    return world


def values(client: Client, topic: str) -> list[Any]:
    return [record["value"] for record in client.ask(f"/v1/topics/{topic}/tail").json()["records"]]


def test_records_are_read_with_the_schemas_that_they_name(tmp_path: Path) -> None:
    world = world_of(tmp_path, "local:")
    with served(world, doubled(), server_tail_topics="*") as (client, _):
        until(lambda: len(values(client, "doubled")) == 3)
        assert values(client, "doubled") == [{"id": 2 * number, "note": "x"} for number in range(3)]
        assert values(client, "orders") == [{"id": number, "note": "x"} for number in range(3)]


def test_while_the_registry_is_away_the_page_shows_what_it_can(tmp_path: Path) -> None:
    with RegistryServer() as server, SwitchedProxy(server.address) as proxy:
        world = world_of(tmp_path, proxy.url)
        with served(world, doubled(), server_tail_topics="*") as (client, _):
            until(lambda: len(values(client, "doubled")) == 3)
            assert values(client, "orders") == [{"id": number, "note": "x"} for number in range(3)]
            proxy.off()
            refused = proxy.refused
            assert all("base64" in value for value in values(client, "orders"))
            assert proxy.refused == refused + 1
            proxy.on()
            assert values(client, "orders") == [{"id": number, "note": "x"} for number in range(3)]
