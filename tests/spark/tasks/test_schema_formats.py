"""Topics whose schemas are in a registry: Spark's tasks write the bytes that native ones write."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.log.schema_registries import registry_of
from kstreams.runtime.spark import engine
from kstreams.runtime.spark.run import start
from tests.schemas.outage_app import Order, topology
from tests.spark.running import Application, Row, changelog
from tests.support.schema_registry_server import RegistryServer
from tests.support.schema_serdes import bound
from tests.support.switched_proxy import SwitchedProxy

pytestmark = pytest.mark.spark

TYPES = {"orders": (str, bytes), "marked": (str, bytes), "totals": (bytes, bytes)}
QUICK = {
    "schema.registry.max.retries": 0,
    "schema.registry.retries.wait.ms": 50,
    "schema.registry.retries.max.wait.ms": 100,
}


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with RegistryServer() as running:
        yield running


def application(spark: Any, folder: Path, url: str) -> Application:
    """The application over 40 orders."""
    app = Application(spark, folder, topology, TYPES, **{"schema.registry.url": url, **QUICK})
    app.create("orders", "marked", "totals", "spark-marked", "spark-totals")
    with closing(registry_of(Config.of(app.settings))) as registry:
        write = bound(ks.Avro(Order), registry).serialize
        orders = (Order(number, f"c{number % 7}", number, f"n{number}") for number in range(40))
        app.write([Row("orders", str(order.id), write(order), order.id) for order in orders])
    return app


def run(app: Application, records: int) -> None:
    """Run it to the end of its input, in steps of so many records."""
    ended = start(app.topology, app.spark, {**app.settings, "spark.kstreams.max.records": records}, until_end=True)
    assert ended.await_termination(240)


def assert_equal_bytes(app: Application) -> None:
    app.run_natively()
    for topic in ("marked", "totals"):
        native, by_spark = app.rows(topic, prefix=""), app.rows(topic)
        assert len(native) == 40
        assert changelog(by_spark) == changelog(native)


@pytest.mark.parametrize("steps", [1_000, 13])
def test_both_engines_write_the_same_bytes(spark: Any, tmp_path: Path, steps: int) -> None:
    app = application(spark, tmp_path, "local:")
    run(app, steps)
    assert_equal_bytes(app)


def test_workers_ask_the_server_themselves_and_wait_while_it_is_away(
    spark: Any, tmp_path: Path, server: RegistryServer
) -> None:
    with SwitchedProxy(server.address) as proxy:
        app = application(spark, tmp_path, proxy.url)
        proxy.off()
        refused = proxy.refused

        def switch_on_after_a_refusal() -> None:
            while proxy.refused == refused:
                time.sleep(0.1)
            time.sleep(1)
            proxy.on()

        threading.Thread(target=switch_on_after_a_refusal, daemon=True).start()
        run(app, 13)
        assert proxy.refused > refused
        assert_equal_bytes(app)


def filtered(serde: Any) -> ks.Topology:
    """What Spark's own functions would do, if each record had the same schema."""
    builder = ks.StreamsBuilder()
    orders = builder.stream("orders", key=str, value=serde)
    orders.filter(ks.col("amount") > 10).to("marked", key=str, value=serde)
    return builder.build()


@pytest.mark.parametrize("path", ["auto", "relational"])
@pytest.mark.parametrize("serde", [ks.Avro(Order), ks.Protobuf(Order), ks.JsonSchema(Order)])
def test_explain_says_why_tasks_read_and_write_it(path: str, serde: Any) -> None:
    settings = {"application.id": "app", "schema.registry.url": "local:", "spark.kstreams.path": path}
    rows = engine.explain(filtered(serde), Config.of(settings))
    assert {(row.path, row.decided_by) for row in rows} == {("task", "declared")}
    assert all("each record names its schema in a registry" in row.why for row in rows)
