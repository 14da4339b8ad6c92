"""Schema registries for tests of serdes: in an embedded log, and a server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient

from kstreams.config import Config
from kstreams.log.schema_registries import ApplicationRegistry
from kstreams.schemas import SchemaRegistry
from kstreams.serdes.base import SerdeUse
from tests.native.world import World
from tests.support.schema_registry_server import RegistryServer
from tests.support.schema_serdes import local_registry


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[SchemaRegistry]:
    """One in an embedded log."""
    with closing(local_registry(tmp_path / "log")) as opened:
        yield opened


@pytest.fixture
def world(tmp_path: Path) -> World:
    """A folder for applications whose registry lies in their embedded log."""
    return World(tmp_path, **{"schema.registry.url": "local:"})


@pytest.fixture
def bound(world: World) -> Iterator[Any]:
    """`(serde, topic, is_key)` -> the serde of that topic."""
    config = Config.of(world.settings)
    with closing(ApplicationRegistry(config)) as registry:
        yield lambda serde, topic, is_key=False: serde.of_topic(SerdeUse(topic, is_key, config, registry))


@pytest.fixture(scope="module")
def server() -> Iterator[RegistryServer]:
    """A server with no schemas."""
    with RegistryServer() as running:
        yield running


@pytest.fixture(scope="module")
def client(server: RegistryServer) -> SchemaRegistryClient:
    """confluent-kafka's client of the server."""
    return SchemaRegistryClient({"url": server.url})
