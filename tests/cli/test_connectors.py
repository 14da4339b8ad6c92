"""`kstreams connectors`: the sources and sinks of an application are shown, paused, restarted, and read again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow.parquet as pq
import pytest

import kstreams as ks
from kstreams.app import load_app
from kstreams.errors import ConnectorError
from kstreams.testing.connectors import order_of
from tests.cli.conftest import Shell
from tests.connectors.lake.driving import commit_all, trades
from tests.connectors.systems import orders, orders_in
from tests.support.kafka_topics import delete_everything

APP = """
from pathlib import Path
import kstreams as ks
from kstreams.testing.connectors import Order
from tests.connectors.systems import Database
config = {"application.id": "app", "processing.guarantee": "exactly_once_v2"}
topology = ks.StreamsBuilder()
source = ks.sources.json_lines("in/*.jsonl", Order, key="id")
topology.stream(source, name="orders").to(Database(Path("copy.db").absolute(), refused=["order 13"]), name="copy")
"""
CONNECT_FILE = """
[sources.orders]
type = "json_lines"
location = "in/*.jsonl"

[sinks.copy]
from = "orders"
type = "sql"
url = "postgresql://ada:secret@db.example/shop"
table = "orders"
mode = "insert"
"""
PROCESS = [sys.executable, "-c", "import sys; from kstreams.cli import main; sys.exit(main(sys.argv[1:]))"]


class Copying:
    """An application that copies orders from files into a database, and the commands on its connectors."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self.folder = shell.folder
        (self.folder / "app.py").write_text(APP)
        (self.folder / "in").mkdir()

    def write(self, first: int, count: int) -> None:
        """Add a file of orders."""
        lines = [json.dumps(vars_of(number)) for number in range(first, first + count)]
        (self.folder / f"{first}.new").write_text("".join(f"{line}\n" for line in lines))
        (self.folder / f"{first}.new").rename(self.folder / "in" / f"{first:04}.jsonl")

    def rows(self, command: str, *names: str) -> list[dict[str, Any]]:
        return self.shell.ok("connectors", command, "app.py", *names, "--json").json_lines()

    def ok(self, command: str, *arguments: str) -> str:
        return self.shell.ok("connectors", command, "app.py", *arguments).err

    def refused(self, command: str, *arguments: str) -> str:
        outcome = self.shell("connectors", command, "app.py", *arguments)
        assert outcome.status == 1, outcome
        return outcome.err

    def state(self, name: str = "copy-sink") -> str:
        """The state of the first task."""
        return str(self.rows("status", name)[0]["state"])

    @property
    def copied(self) -> list[Any]:
        return orders_in(self.folder / "copy.db")

    @contextmanager
    def running(self) -> Iterator[ks.KafkaStreams]:
        """Run the application in this process."""
        loaded = load_app("app.py")
        with ks.KafkaStreams(loaded.topology, loaded.config) as streams:
            streams.start()
            yield streams

    def start(self) -> subprocess.Popen[bytes]:
        """Run the application in a process of its own."""
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        return subprocess.Popen([*PROCESS, "run", "app.py"], env=environment, stderr=subprocess.DEVNULL)


def vars_of(number: int) -> dict[str, Any]:
    order = order_of(number)
    return {"id": order.id, "name": order.name, "amount": order.amount}


@pytest.fixture
def copying(kstreams: Shell) -> Copying:
    return Copying(kstreams)


@pytest.fixture(params=["embedded", pytest.param("kafka", marks=[pytest.mark.kafka, pytest.mark.slow])])
def at_home(kstreams: Shell, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Copying:
    """The application on each home of topics."""
    if request.param == "kafka":
        servers = request.getfixturevalue("kafka").bootstrap_servers
        delete_everything(servers)
        monkeypatch.setenv("KSTREAMS_BOOTSTRAP_SERVERS", servers)
    return Copying(kstreams)


def test_a_paused_sink_gets_nothing_over_a_kill_and_then_everything_once(at_home: Copying) -> None:
    at_home.write(0, 5)
    process = at_home.start()
    try:
        until(lambda: len(at_home.copied) == 5)
        until(lambda: at_home.state() == "RUNNING")
        assert "PAUSED within a second" in at_home.ok("pause", "copy-sink")
        until(lambda: at_home.state() == "PAUSED")
        at_home.write(5, 5)
        until(lambda: lag_of(at_home) >= 5)  # Kafka also counts ends of transactions
    finally:
        process.kill()
        process.wait()
    until(lambda: at_home.state() == "UNASSIGNED")
    with at_home.running():
        until(lambda: at_home.state() == "PAUSED")
        assert at_home.copied == orders(5)
        assert lag_of(at_home) >= 5
        at_home.ok("resume", "copy-sink")
        until(lambda: len(at_home.copied) >= 10)
    assert at_home.copied == orders(10)


def test_list_shows_each_connector_also_before_the_first_run(copying: Copying) -> None:
    copying.shell.ok("topics", "create", "other")
    rows = copying.rows("list")
    assert [list(row.values()) for row in rows] == [
        ["orders-feed", "source", "UNASSIGNED", 0, None, "exactly once", "app-orders-feed", rows[0]["type"]],
        ["copy-sink", "sink", "UNASSIGNED", 0, 0, "exactly once", "app-copy-sink", "Database"],
    ]
    assert "in/*.jsonl" in rows[0]["type"]


def test_status_shows_the_error_of_a_target_that_is_away_and_the_process(copying: Copying) -> None:
    (copying.folder / "away").touch()
    with copying.running():
        until(lambda: copying.state() == "RESTARTING")
        row = copying.rows("status", "copy-sink")[0]
        assert "copy.db is away" in row["error"]
        assert row["worker"].endswith(f":{os.getpid()}")
        assert (row["rows"], row["commit_age_s"]) == (0, None)
        (copying.folder / "away").unlink()
        copying.write(0, 5)
        until(lambda: copying.rows("status", "copy-sink")[0]["error"] is None)
    until(lambda: sum(row["rows"] for row in copying.rows("status", "copy-sink")) == 5)
    assert copying.state() == "UNASSIGNED"
    assert copying.rows("status", "copy-sink")[0]["commit_age_s"] is not None
    assert "no process runs" in copying.ok("status")


def test_status_shows_the_error_that_has_ended_the_application(copying: Copying) -> None:
    copying.write(13, 1)
    loaded = load_app("app.py")
    streams = ks.KafkaStreams(loaded.topology, loaded.config)
    streams.start()
    with pytest.raises(ConnectorError, match="order 13 is not wanted"):
        streams.wait(60)
    failed = [row for row in copying.rows("status", "copy-sink") if row["state"] == "FAILED"]
    assert ["order 13 is not wanted" in row["error"] for row in failed] == [True]
    assert [row["state"] for row in copying.rows("list")] == ["UNASSIGNED", "FAILED"]


@pytest.mark.slow
def test_a_restart_ends_the_wait_after_errors(copying: Copying) -> None:
    copying.write(0, 5)
    (copying.folder / "away").touch()
    with copying.running():
        until(lambda: copying.rows("status", "copy-sink")[0]["retries"] >= 6)
        (copying.folder / "away").unlink()
        copying.ok("restart", "copy-sink")
        restarted = time.monotonic()
        until(lambda: len(copying.copied) == 5)
        assert time.monotonic() - restarted < 4  # the wait is of 6.4 s or more


def test_a_source_is_paused_while_the_rest_goes_on_and_its_positions_are_altered(copying: Copying) -> None:
    for first in (0, 5):
        copying.write(first, 5)
    with copying.running():
        until(lambda: len(copying.copied) == 10)
        splits = {row["split"]: row["position"] for row in copying.rows("offsets", "orders-feed")}
        first, second = sorted(splits)
        assert "pause it first" in copying.refused("offsets", "orders-feed", "--reset", first)
        assert "its tasks are 0 to" in copying.refused("restart", "copy-sink", "--task", "99")
        copying.ok("pause", "orders-feed")
        until(lambda: copying.state("orders-feed") == "PAUSED")
        assert [row["state"] for row in copying.rows("list")] == ["PAUSED", "RUNNING"]
        assert "is paused" in copying.refused("restart", "orders-feed")
        copying.write(20, 5)
        assert "no position" in copying.refused("offsets", "orders-feed", "--set", f"{first}=x")
        assert f"mean '{first}'" in copying.refused("offsets", "orders-feed", "--reset", first[:-1])
        copying.ok("offsets", "orders-feed", "--set", f"{second}={json.dumps(splits[second])}", "--reset", first)
        assert [row["split"] for row in copying.rows("offsets", "orders-feed")] == [second]
        assert len(copying.copied) == 10
        copying.ok("resume", "--all")
        until(lambda: len(copying.copied) >= 20)
    assert [order.id for order in copying.copied] == sorted([*range(10), *range(5), *range(20, 25)])


def test_the_offset_of_a_sink_is_set_while_the_application_is_stopped(copying: Copying) -> None:
    copying.write(0, 10)
    with copying.running():
        until(lambda: len(copying.copied) == 10)
        assert "stop its" in copying.refused("offsets", "copy-sink", "--set", "0=0")
    rows = copying.rows("offsets", "copy-sink")
    assert [(row["lag"], row["committed"]) for row in rows] == [(0, row["end"]) for row in rows]
    end = rows[0]["end"]
    assert "is no offset" in copying.refused("offsets", "copy-sink", "--set", f"0={end + 1}")
    dry = copying.shell.ok("connectors", "offsets", "app.py", "copy-sink", "--reset-all", "--dry-run", "--json")
    assert {row["after"] for row in dry.json_lines()} == {0}
    copying.ok("offsets", "copy-sink", "--set", f"0={end - 1}")
    assert copying.rows("offsets", "copy-sink")[0]["lag"] == 1
    copying.shell.ok("run", "app.py", "--until-end")
    assert len(copying.copied) == 11
    copying.ok("offsets", "copy-sink", "--reset-all")
    copying.shell.ok("run", "app.py", "--until-end")
    assert len(copying.copied) == 21
    assert sum(row["rows"] for row in copying.rows("status", "copy-sink")) == 10
    copying.write(13, 1)
    assert copying.shell("run", "app.py", "--until-end").status == 1
    assert "FAILED" in [row["state"] for row in copying.rows("status", "copy-sink")]


def test_errors_say_what_to_do_and_connect_files_are_applications(copying: Copying) -> None:
    copying.shell.ok("topics", "create", "other")
    assert "Did you mean 'copy-sink'?" in copying.refused("status", "copysink")
    assert "no process runs" in copying.refused("restart", "copy-sink")
    assert copying.shell("connectors", "pause", "app.py").status == 2
    assert "from the next start on" in copying.ok("pause", "--all")
    refused = copying.shell("run", "app.py", "--until-end")
    assert refused.status == 1
    assert "kstreams connectors resume APP orders-feed" in refused.err
    (copying.folder / "copy.toml").write_text(CONNECT_FILE)
    rows = copying.shell.ok("connectors", "list", "copy.toml", "--json").json_lines()
    assert [(row["connector"], row["type"]) for row in rows] == [
        ("orders-feed", "FileSource('in/*.jsonl')"),
        ("copy-sink", "SqlSink(postgresql://ada:***@db.example/shop, 'orders', mode='insert')"),
    ]
    (copying.folder / "app.py").write_text(
        "import kstreams as ks\ntopology = ks.StreamsBuilder()\ntopology.stream('other', key=str, value=str)"
    )
    assert "has no connectors" in copying.refused("list")


def lag_of(copying: Copying) -> int:
    return sum(row["lag"] for row in copying.rows("offsets", "copy-sink"))


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 90
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.3)


def test_small_files_of_a_sink_are_merged(kstreams: Shell) -> None:
    for first in range(0, 100, 10):
        commit_all(ks.sinks.files(kstreams.folder / "trades"), trades(first, first + 10))
    assert kstreams.ok("connectors", "merge-files", "trades").out == "merged 10 small files of trades\n"
    (file,) = (kstreams.folder / "trades").glob("*.parquet")
    assert pq.read_table(file)["number"].to_pylist() == list(range(100))
    assert kstreams.ok("connectors", "merge-files", "trades").out == "trades has no small files to merge\n"


def test_a_folder_whose_name_is_wrong_is_named(kstreams: Shell) -> None:
    outcome = kstreams("connectors", "merge-files", "trade")
    expected = "kstreams: there is no folder trade: name the folder of a file sink\n"
    assert (outcome.status, outcome.err) == (1, expected)
