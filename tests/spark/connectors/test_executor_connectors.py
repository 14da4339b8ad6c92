"""Tasks of connectors on the executors: the same results, and what cannot run there is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pyarrow.parquet as pq
import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.connectors.connectors_topic import TargetState, change_control
from kstreams.errors import ConfigError, ConnectorError
from kstreams.kernel.batch import TopicPartition
from kstreams.log import Log
from kstreams.runtime.spark.cluster.shipping import pack, unpack
from kstreams.runtime.spark.engine import explain
from kstreams.testing.connectors import Order
from tests.connectors.systems import Database, Numbered, orders, orders_in
from tests.spark.connectors.test_driver_connectors import run_to_end, settings_in, wait_until
from tests.spark.running import Application
from tests.support.postgres import NEEDED, Postgres, can_run

pytestmark = pytest.mark.spark

ON_EXECUTORS = {"spark.kstreams.connectors": "executors"}


class Trade(msgspec.Struct):
    symbol: str
    size: int


class Finished(Numbered):
    """A source that can run on executors: its splits have an end."""

    is_finished_in_turn = True


def copy_of(source: Numbered, database: Path, *refused: str) -> ks.StreamsBuilder:
    builder = ks.StreamsBuilder()
    builder.stream(source, name="orders").to(Database(database, refused), name="copy")
    return builder


def large_trades(folder: Path, target: str) -> ks.StreamsBuilder:
    builder = ks.StreamsBuilder()
    trades = builder.stream(ks.sources.json_lines(folder / "in", Trade, key="symbol"), name="trades")
    trades.filter(ks.col("size") >= 50).to(ks.sinks.files(folder / target, format="parquet"), name="large")
    return builder


def write_trades(folder: Path, file: int) -> None:
    (folder / "in").mkdir(exist_ok=True)
    lines = (json.dumps({"symbol": f"s{n % 7}", "size": n % 100}) for n in range(file * 1_000, file * 1_000 + 1_000))
    (folder / "in" / f"{file}.jsonl").write_text("\n".join(lines) + "\n")


def rows_of(folder: Path) -> list[tuple[str, int]]:
    """Return the rows of Parquet files, read by pyarrow."""
    tables = [pq.read_table(file) for file in sorted(folder.rglob("*.parquet"))]
    return sorted((row["symbol"], row["size"]) for table in tables for row in table.to_pylist())


@pytest.mark.slow
def test_files_are_read_and_written_by_executors_as_natively(spark: Any, tmp_path: Path) -> None:
    for files in (range(3), range(3, 5)):
        for file in files:
            write_trades(tmp_path, file)
        Application(None, tmp_path, large_trades(tmp_path, "native"), {}).run_natively()
        run_to_end(large_trades(tmp_path, "spark"), spark, tmp_path, **ON_EXECUTORS)
    assert len(rows_of(tmp_path / "native")) == 2_500
    assert rows_of(tmp_path / "spark") == rows_of(tmp_path / "native")


@pytest.mark.slow
def test_a_running_application_waits_for_a_target_that_is_away(spark: Any, tmp_path: Path) -> None:
    database = tmp_path / "copy.db"
    away = tmp_path / "away"
    away.touch()
    builder = copy_of(Finished(5_000), database)
    with ks.spark.start(builder, spark, settings_in(tmp_path, **ON_EXECUTORS)) as run:
        wait_until(lambda: "RESTARTING" in connector_values(run, "status", "copy-sink"))
        away.unlink()
        wait_until(lambda: len(orders_in(database)) >= 10_000)
        wait_until(lambda: sum(connector_values(run, "records-committed-total", "copy-sink")) == 10_000)
        assert sum(connector_values(run, "records-committed-total", "orders-feed")) == 10_000
    assert orders_in(database) == orders(10_000)
    app = Application(None, tmp_path, builder, {})
    with app.opened() as log, log.admin() as admin:
        sources = [TopicPartition("spark-app-copy-sink", number) for number in range(4)]
        assert admin.beginning_offsets(sources) == admin.end_offsets(sources), "what is committed is deleted"


def set_state(log: Log, state: TargetState) -> None:
    """Do what `kstreams connectors pause` and `resume` do."""
    change_control(log, "spark-app", "copy-sink", lambda control: msgspec.structs.replace(control, target_state=state))


@pytest.mark.slow
def test_partitions_are_upserted_into_postgres_by_executors(spark: Any, tmp_path: Path) -> None:
    if not can_run():
        pytest.skip(NEEDED)
    with Postgres() as server:
        for count in (2_000, 5_000):
            builder = ks.StreamsBuilder()
            orders_stream = builder.stream(Finished(count, ["a"]), name="orders")
            orders_stream.to(ks.sinks.postgres(server.url, "orders", upsert="id"), name="copy")
            run_to_end(builder, spark, tmp_path, **ON_EXECUTORS)
            with psycopg.connect(server.url) as connection:
                rows = connection.execute("SELECT id, name, amount FROM orders ORDER BY id").fetchall()
            assert [Order(*row) for row in rows] == orders(count)


def connector_values(run: Any, metric: str, connector: str) -> list[Any]:
    """Return the values of a metric of the tasks of a connector."""
    values = run.metrics().items()
    return [
        value for name, value in values if name.name == metric and name.tag("connector") == f"spark-app-{connector}"
    ]


@pytest.mark.slow
def test_a_connector_on_executors_is_paused_and_resumed(spark: Any, tmp_path: Path) -> None:
    database = tmp_path / "copy.db"
    builder = copy_of(Finished(2_000, ["a"]), database)
    app = Application(None, tmp_path, builder, {}, **ON_EXECUTORS)
    with app.opened() as log:
        set_state(log, TargetState.PAUSED)
        with ks.spark.start(builder, spark, app.settings) as run:
            wait_until(lambda: sum(connector_values(run, "records-committed-total", "orders-feed")) == 2_000)
            wait_until(lambda: set(connector_values(run, "status", "copy-sink")) == {"PAUSED"})
            assert orders_in(database) == []
            set_state(log, TargetState.STARTED)
            wait_until(lambda: len(orders_in(database)) >= 2_000)
    assert orders_in(database) == orders(2_000)


@pytest.mark.slow
def test_an_error_of_a_task_on_an_executor_ends_the_application(spark: Any, tmp_path: Path) -> None:
    builder = copy_of(Finished(10, ["a"]), tmp_path / "copy.db", "order 4")
    run = ks.spark.start(builder, spark, settings_in(tmp_path, **ON_EXECUTORS), until_end=True)
    with pytest.raises(ConnectorError, match="order 4 is not wanted"):
        run.await_termination(200)


@pytest.mark.parametrize(
    "connector",
    [
        ks.sources.csv("in", Trade),
        ks.sources.json_lines("in", Trade),
        ks.sources.text("in"),
        ks.sources.parquet("in", Trade),
        ks.sources.sql("sqlite:///shop.db", table="trades", value=Trade),
        ks.sinks.files("out", format="parquet", partition_by="symbol"),
        ks.sinks.delta("trades", mode="upsert", key="symbol"),
        ks.sinks.sql("postgresql://ada@localhost/shop", "trades", mode="insert"),
        ks.sinks.http("http://localhost/trades"),
    ],
    ids=repr,
)
def test_connectors_can_be_sent_to_executors(connector: Any) -> None:
    assert repr(unpack(pack(connector))) == repr(connector)


def test_a_source_that_stays_open_remains_in_the_driver_and_explain_says_so(tmp_path: Path) -> None:
    topology = copy_of(Numbered(10), tmp_path / "copy.db").build()
    rows: list[Any] = explain(topology, Config.of({"application.id": "app", **ON_EXECUTORS}))
    places = {row.operator: row.why.rpartition("; ")[2] for row in rows if row.path == "connector"}
    assert places == {"orders-feed": "its tasks run in the driver", "copy-sink": "its tasks run on the executors"}


@pytest.mark.parametrize(
    ("key", "place", "message"),
    [
        ("orders-feed", "executors", "orders-feed cannot be 'executors'.* stays open between reads"),
        ("order-feed", "driver", "there is no connector 'order-feed'. Did you mean 'orders-feed'?"),
        ("copy-sink", "cluster", "copy-sink cannot be 'cluster': say driver or executors"),
    ],
)
def test_a_wrong_place_is_refused(tmp_path: Path, key: str, place: str, message: str) -> None:
    topology = copy_of(Numbered(10), tmp_path / "copy.db").build()
    config = Config.of({"application.id": "app", f"spark.kstreams.connectors.{key}": place})
    with pytest.raises(ConfigError, match=message):
        explain(topology, config)
