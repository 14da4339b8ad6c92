"""Sources and sinks of an application on Spark: the same results as on the native engine, and exactly once."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import kstreams as ks
from kstreams.app import export_state, import_state, load_app, reset
from kstreams.cli import main
from kstreams.config import Config
from kstreams.errors import ConnectorError
from kstreams.runtime.spark.engine import explain
from kstreams.testing.connectors import Order, order_of
from tests.connectors.systems import Database, Numbered, orders, orders_in
from tests.spark.running import Application

pytestmark = pytest.mark.spark


def copy_of(source: Numbered, database: Path) -> ks.StreamsBuilder:
    builder = ks.StreamsBuilder()
    builder.stream(source, name="orders").to(Database(database), name="copy")
    return builder


def copy_file(folder: Path, count: int) -> Path:
    """Write the application file that copies so many orders."""
    app = folder / f"copy_{count}.py"
    app.write_text(
        "from pathlib import Path\n"
        "from tests.connectors.systems import Database, Numbered\n"
        "import kstreams as ks\n"
        "topology = ks.StreamsBuilder()\n"
        f"copy = Database(Path({str(folder / 'copy.db')!r}))\n"
        f"topology.stream(Numbered({count}, ['a']), name='orders').to(copy, name='copy')\n"
    )
    return app


def settings_in(folder: Path, **more: Any) -> dict[str, Any]:
    return Application(None, folder, ks.StreamsBuilder(), {}, **more).settings


def run_to_end(builder: ks.StreamsBuilder, spark: Any, folder: Path, **more: Any) -> Any:
    run = ks.spark.start(builder, spark, settings_in(folder, **more), until_end=True)
    assert run.await_termination(200)
    return run


def test_an_application_reads_a_source_and_writes_a_sink_and_goes_on_where_it_was(spark: Any, tmp_path: Path) -> None:
    for count in (1_000, 3_000):
        run_to_end(copy_of(Numbered(count, ["a"]), tmp_path / "copy.db"), spark, tmp_path)
        assert orders_in(tmp_path / "copy.db") == orders(count)


@pytest.mark.slow
def test_a_running_application_takes_rows_as_they_come(spark: Any, tmp_path: Path) -> None:
    database = tmp_path / "copy.db"
    with ks.spark.start(copy_of(Numbered(5_000, ["a"], tasks=1), database), spark, settings_in(tmp_path)) as run:
        wait_until(lambda: len(orders_in(database)) >= 5_000)
        values = {
            (name.name, name.tag("connector")): value
            for name, value in run.metrics().items()
            if name.group == "connector-task-metrics" and name.tag("task") == "0"
        }
    assert orders_in(database) == orders(5_000)
    assert values["status", "spark-app-orders-feed"] == values["status", "spark-app-copy-sink"] == "RUNNING"
    assert values["records-committed-total", "spark-app-orders-feed"] == 5_000


@pytest.mark.slow
def test_a_sink_is_paused_and_resumed_while_the_application_runs(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.path", sys.path[:])
    (tmp_path / "in").mkdir()
    app = tmp_path / "paused.py"
    app.write_text(
        "from pathlib import Path\n"
        "from tests.connectors.systems import Database, Numbered\n"
        "import kstreams as ks\n"
        "from kstreams.testing.connectors import Order\n"
        "topology = ks.StreamsBuilder()\n"
        f"source = ks.sources.json_lines({str(tmp_path / 'in' / '*.jsonl')!r}, Order, key='id')\n"
        f"topology.stream(source, name='orders').to(Database(Path({str(tmp_path / 'copy.db')!r})), name='copy')\n"
    )
    settings = settings_in(tmp_path)
    options = [part for key in ("application.id", "log.dir") for part in ("-c", f"{key}={settings[key]}")]

    def command(name: str, *arguments: str) -> str:
        assert main(["connectors", name, str(app), *arguments, "--engine", "spark", *options]) == 0
        return capsys.readouterr().out

    def write(first: int) -> None:
        lines = [msgspec.json.encode(order_of(number)).decode() for number in range(first, first + 5)]
        (tmp_path / "in" / f"{first}.jsonl").write_text("".join(f"{line}\n" for line in lines))

    write(0)
    with ks.spark.start(load_app(app).topology, spark, settings):
        wait_until(lambda: orders_in(tmp_path / "copy.db") == orders(5))
        command("pause", "copy-sink")
        wait_until(lambda: "PAUSED" in command("status", "copy-sink", "--json"))
        write(5)
        wait_until(lambda: '"lag":5' in command("list", "--json"))
        assert orders_in(tmp_path / "copy.db") == orders(5)
        command("resume", "copy-sink")
        wait_until(lambda: orders_in(tmp_path / "copy.db") == orders(10))


@pytest.mark.slow
def test_a_running_application_ends_with_the_error_of_a_connector(spark: Any, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    builder.stream(Numbered(10, ["a"])).to(Database(tmp_path / "copy.db", refused=["order 4"]))
    run = ks.spark.start(builder, spark, settings_in(tmp_path))
    with pytest.raises(ConnectorError, match="order 4 is not wanted"):
        run.await_termination(60)


@pytest.mark.slow
def test_both_engines_have_positions_of_their_own(spark: Any, tmp_path: Path) -> None:
    natively = copy_of(Numbered(100, ["a"]), tmp_path / "native.db")
    Application(None, tmp_path, natively, {}).run_natively()
    run_to_end(copy_of(Numbered(100, ["a"]), tmp_path / "spark.db"), spark, tmp_path)
    assert orders_in(tmp_path / "native.db") == orders_in(tmp_path / "spark.db") == orders(100)


@pytest.mark.slow
def test_with_an_empty_prefix_an_engine_goes_on_where_the_other_was(spark: Any, tmp_path: Path) -> None:
    """Engines share the positions of connectors then, and an export takes the positions of tasks along."""
    app = Application(None, tmp_path, ks.StreamsBuilder(), {}, **{"spark.kstreams.prefix": ""})
    settings = {**app.settings, "state.dir": str(tmp_path / "state")}
    loaded = load_app(copy_file(tmp_path, 100), settings)
    Application(None, tmp_path, loaded.topology, {}).run_natively(until_end=False)
    export_state(loaded, tmp_path / "bundle", engine="native")
    more = load_app(copy_file(tmp_path, 300), settings)
    import_state(more, tmp_path / "bundle", engine="spark")
    with ks.spark.start(more.topology, spark, settings, once=True) as run:
        assert run.await_termination(200)
    assert orders_in(tmp_path / "copy.db") == orders(300)


@pytest.mark.slow
def test_a_source_that_fills_a_topic_of_the_user_is_read_once_for_both_engines(spark: Any, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    orders_topic = builder.stream(Numbered(10, ["a"]).to_topic("all-orders", partitions=2))
    orders_topic.map_values(lambda order: order.name, value=str).to("names")
    app = Application(None, tmp_path, builder, {"names": (int, str), "all-orders": (int, Order)}).create("names")
    app.run_natively()
    run_to_end(builder, spark, tmp_path)
    assert len(app.rows("all-orders", prefix="")) == 10
    assert sorted(app.rows("names")) == sorted(app.rows("names", prefix=""))


@pytest.mark.slow
def test_a_reset_application_reads_the_source_anew_and_the_sink_takes_everything_again(
    spark: Any, tmp_path: Path
) -> None:
    loaded = load_app(copy_file(tmp_path, 100), settings_in(tmp_path))
    run_to_end(loaded.topology, spark, tmp_path)  # type: ignore[arg-type]
    planned = reset(loaded, engine="spark", dry_run=True)
    assert {(deletion.what, deletion.name) for deletion in planned} >= {
        ("topic", "spark-app-orders-feed"),
        ("topic", "spark-app-orders-feed-positions"),
        ("topic", "spark-app-copy-sink"),
        ("topic", "spark-app-connectors"),
    }
    assert reset(loaded, engine="spark") == planned
    run_to_end(loaded.topology, spark, tmp_path)  # type: ignore[arg-type]
    assert orders_in(tmp_path / "copy.db") == sorted([*orders(100), *orders(100)], key=lambda order: order.id)


@pytest.mark.slow
def test_a_topic_between_tasks_and_a_sink_has_no_delta_table(spark: Any, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    orders_stream = builder.stream(Numbered(10, ["a"]), name="orders")
    orders_stream.to(Database(tmp_path / "copy.db"), name="copy")
    orders_stream.to("all")
    run_to_end(builder, spark, tmp_path, **{"spark.kstreams.delta": str(tmp_path / "delta")})
    assert [table.name for table in (tmp_path / "delta").iterdir()] == ["all"]
    assert orders_in(tmp_path / "copy.db") == orders(10)


def test_explain_tells_the_guarantee_of_each_connector(tmp_path: Path) -> None:
    topology = copy_of(Numbered(10), tmp_path / "copy.db").build()
    rows: list[Any] = explain(topology, Config.of({"application.id": "app"}))
    reasons = {row.operator: (row.path, row.why) for row in rows}
    written = "exactly once: records and positions are written in one transaction; its tasks run in the driver"
    assert reasons["orders-feed"] == ("connector", written)
    kept = "exactly once: the target keeps the offset with the rows; its tasks run in the driver"
    assert reasons["copy-sink"] == ("connector", kept)


@pytest.mark.slow
def test_a_row_that_the_target_refuses_goes_to_the_dead_letter_topic_of_the_application(
    spark: Any, tmp_path: Path
) -> None:
    """Its name has the prefix of written topics, as for the dead letters of tasks."""
    builder = ks.StreamsBuilder()
    builder.stream(Numbered(10, ["a"])).to(Database(tmp_path / "copy.db", refused=["order 4"]))
    app = Application(None, tmp_path, builder, {"letters": (int, Order)}).create("spark-letters")
    run_to_end(builder, spark, tmp_path, **{"errors.dead.letter.queue.topic.name": "letters"})
    assert [value for _, value, _ in app.rows("letters")] == [order_of(4)]
    assert [order.id for order in orders_in(tmp_path / "copy.db")] == [0, 1, 2, 3, 5, 6, 7, 8, 9]


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.05)
