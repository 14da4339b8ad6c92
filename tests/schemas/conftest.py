"""Both kinds of schema registries, for tests that hold for each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kstreams.config import Config
from kstreams.log.schema_registries import registry_of
from kstreams.schemas import SchemaRegistry
from tests.support.schema_registry_server import RegistryServer

QUICK = {"schema.registry.retries.wait.ms": 20, "schema.registry.retries.max.wait.ms": 40}


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with RegistryServer() as running:
        yield running


@pytest.fixture
def asked(server: RegistryServer) -> Iterator[SchemaRegistry]:
    """The registry of a server."""
    registry = registry_of(Config.of({"schema.registry.url": server.url, **QUICK}))
    yield registry
    registry.close()


@pytest.fixture
def local(tmp_path: Path) -> Iterator[SchemaRegistry]:
    """The registry in an embedded log."""
    registry = registry_of(Config.of({"schema.registry.url": "local:", "log.dir": tmp_path / "log"}))
    yield registry
    registry.close()


@pytest.fixture(params=["local", "asked"])
def registry(request: pytest.FixtureRequest) -> SchemaRegistry:
    """Each of both."""
    found: SchemaRegistry = request.getfixturevalue(request.param)
    return found
