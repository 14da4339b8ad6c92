"""How often, and for how long, the registry of an application asks a server that is away."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kstreams.config import Config
from kstreams.errors import RegistryError, RegistryUnavailableError, SchemaNotFoundError
from kstreams.kernel.clock import ManualClock
from kstreams.log.schema_registries import registry_of
from kstreams.schemas import Schema, SchemaRegistry
from kstreams.schemas.retrying import RetryingRegistry, RetryPolicy, without_waiting
from tests.support.schema_registry_server import RegistryServer
from tests.support.switched_proxy import SwitchedProxy

NUMBER = Schema('"int"')


@pytest.fixture
def proxy(server: RegistryServer) -> Iterator[SwitchedProxy]:
    with SwitchedProxy(server.address) as switched:
        yield switched


@pytest.fixture
def asked(proxy: SwitchedProxy) -> Iterator[SchemaRegistry]:
    registry = registry_of(Config.of({"schema.registry.url": proxy.url, "schema.registry.max.retries": 0}))
    yield registry
    registry.close()


def patient(registry: SchemaRegistry, clock: ManualClock, timeout_ms: int = 1_000) -> RetryingRegistry:
    return RetryingRegistry(registry, RetryPolicy(timeout_ms, first_wait_ms=100, longest_wait_ms=400), clock)


def test_the_waits_double_up_to_the_longest_and_end_with_the_timeout(
    asked: SchemaRegistry, proxy: SwitchedProxy
) -> None:
    clock = ManualClock()
    proxy.off()
    before = proxy.refused
    with pytest.raises(RegistryUnavailableError, match="the schema with the id 7"):
        patient(asked, clock).schema(7)
    assert clock.uptime_ms() == 1_000
    assert proxy.refused - before == 5, "at 0, 100, 300, 700 and 1,000 ms"


def test_without_a_timeout_it_asks_once(asked: SchemaRegistry, proxy: SwitchedProxy) -> None:
    proxy.off()
    with pytest.raises(RegistryUnavailableError):
        patient(asked, ManualClock(), timeout_ms=0).register("orders-value", NUMBER)
    assert proxy.refused == 1


def test_what_it_has_asked_for_once_it_answers_at_once(asked: SchemaRegistry, proxy: SwitchedProxy) -> None:
    clock = ManualClock()
    registry = patient(asked, clock)
    number = registry.register("orders-value", NUMBER).id
    schema = registry.schema(number)
    proxy.off()
    assert registry.schema(number) == schema
    assert registry.register("orders-value", NUMBER).id == number
    assert clock.uptime_ms() == 0


def test_a_refusal_is_not_waited_for(asked: SchemaRegistry, server: RegistryServer) -> None:
    clock = ManualClock()
    with pytest.raises(SchemaNotFoundError):
        patient(asked, clock).schema(7)
    server.fail(1, 401, code=40101, message="Unauthorized")
    with pytest.raises(RegistryError, match="HTTP 401"):
        patient(asked, clock).subjects()
    assert clock.uptime_ms() == 0


def test_whoever_waits_in_another_way_is_answered_at_once(asked: SchemaRegistry, proxy: SwitchedProxy) -> None:
    clock = ManualClock()
    registry = patient(asked, clock)
    proxy.off()
    with without_waiting():
        for _ in range(3):
            with pytest.raises(RegistryUnavailableError):
                registry.schema(7)
        assert (clock.uptime_ms(), proxy.refused) == (0, 1), "only the first one has asked"
        clock.advance(100)
        with pytest.raises(RegistryUnavailableError):
            registry.schema(7)
        assert proxy.refused == 2
        proxy.on()
        clock.advance(200)
        assert registry.register("orders-value", NUMBER).version == 1
