"""`kstreams ui` and `kstreams top`: an application at work, on a page and in the terminal."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple
from urllib.request import Request, urlopen

import pytest

import kstreams as ks
from kstreams.cli.activity_tables import tables
from kstreams.cli.commands.top import _snapshots, throttle_sentence
from kstreams.config import Config
from kstreams.log import open_log
from tests.cli.conftest import Shell, shell_in
from tests.cli.test_applications import COMMAND
from tests.native.world import WAIT_S, World, until
from tests.server.served import served

APP = """
import kstreams as ks

topology = ks.StreamsBuilder()
visits = topology.stream("visits", key=str, value=str)
visits.map_values(str.upper).to("loud", key=str, value=str)
visits.group_by_key().count(ks.Materialized("counts", queryable=True))
config = {"application.id": "visits", "commit.interval.ms": 50}
"""


class Running(NamedTuple):
    """An application that `kstreams ui` has started, and the address that it has printed."""

    folder: Path
    address: str


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The application that several tests look at: they change nothing."""
    folder = tmp_path_factory.mktemp("visits")
    (folder / "app.py").write_text(APP)
    with open_log(folder / ".kstreams" / "log") as log, log.admin() as admin, log.producer() as producer:
        for topic in ("visits", "loud"):
            admin.create_topic(topic, 2)
        for key, value in (("anna", "x"), ("ben", "y"), ("anna", "z")):
            producer.send("visits", key.encode(), value.encode())
    with subprocess.Popen([COMMAND, "ui", "app.py"], cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            lines = iter(process.stderr.readline, "")
            address = next(line.removeprefix("page at ").strip() for line in lines if line.startswith("page at "))
            yield Running(folder, address)
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(WAIT_S) == 130


@pytest.fixture
def visits(running: Running, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Shell]:
    """Commands in the folder of the application, once that has done its work."""
    with shell_in(running.folder, monkeypatch, capsys) as shell:
        until(lambda: is_done(shell))
        yield shell


def is_done(kstreams: Any) -> bool:
    """Whether the three records are read and written, and nothing waits."""
    found = kstreams("top", "--once", "--json", "--interval", "0.2")
    if not found.out:
        return False
    look = json.loads(found.out)
    records = [sum(row["records"] or 0 for row in look[name]) for name in ("sources", "topics")]
    return [*records, sum(topic["lag"] or 0 for topic in look["topics"])] == [3, 3, 0]


def test_ui_runs_the_application_and_tells_where_the_page_is(visits: Shell, running: Running) -> None:
    place, _, token = running.address.partition("#token=")
    assert place.endswith("/ui")
    with urlopen(place, timeout=WAIT_S) as answer:
        assert b"<title>kstreams</title>" in answer.read()
    status = Request(place.replace("/ui", "/v1/status"), headers={"Authorization": f"Bearer {token}"})
    with urlopen(status, timeout=WAIT_S) as answer:
        assert json.loads(answer.read())["application_id"] == "visits"
    # One that runs already goes on, and its page is named again.
    assert visits.ok("ui", "app.py").out.strip() == running.address


def test_top_shows_what_is_done_in_numbers(visits: Shell) -> None:
    look = json.loads(visits.ok("top", "visits", "--once", "--json", "--interval", "0.2").out)
    assert look["application_id"] == "visits"
    assert [(each["state"], each["tasks"]) for each in look["instances"]] == [("RUNNING", 2)]
    assert [each["records"] for each in look["sources"]] == [3]
    assert {each["topic"]: (each["lag"], each["records"]) for each in look["topics"]} == {
        "visits": (0, None),
        "loud": (None, 3),
    }
    assert [each["task"] for each in look["tasks"]] == ["0_0", "0_1"]
    table = visits.ok("top", "--once", "--interval", "0.2").out
    assert all(word in table for word in ("RUNNING", "loud", "0_1"))


def test_a_repartition_topic_has_one_row_with_what_is_written_and_what_waits() -> None:
    counted = {"kind": "repartitioned", "of": "words-repartition", "by": "t", "count": 7, "reason": ""}
    instance = {
        "instance": "a", "pid": 1, "state": "RUNNING", "failed_threads": 0, "counts": [counted],
        "lags": [{"topic": "app-words-repartition", "partition": 0, "lag": 3}],
        "threads": [], "tasks": [], "stores": [], "restores": [],
    }  # fmt: skip
    assert tables([instance], {("repartitioned", "words-repartition"): 2.0})["topics"] == [
        {"topic": "app-words-repartition", "lag": 3, "per_second": 2.0, "records": 7}
    ]


def test_top_goes_on_until_ctrl_c(visits: Shell) -> None:
    command = [COMMAND, "top", "--json", "--interval", "0.2"]
    with subprocess.Popen(command, cwd=visits.folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        looks = [json.loads(process.stdout.readline()) for _ in range(3)]
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_S) == 130
    assert {each["sources"][0]["per_second"] for each in looks} == {0.0}


def test_top_goes_on_with_instances_that_came_later_and_its_sums_do_not_fall(tmp_path: Path) -> None:
    world = World(tmp_path, **{"commit.interval.ms": 20})
    world.create("words", 1)
    topology = ks.Topology().add_source("in", "words", key=str, value=str)
    with ExitStack() as first, ExitStack() as second:
        world.write("words", [("k", "v", number) for number in range(5)])
        first.enter_context(served(world, topology))
        looks = _snapshots(Config.of(world.settings), 0.2)
        until(lambda: next(looks)["sources"] == [{"source": "in", "per_second": 0.0, "records": 5}])
        client, _ = second.enter_context(served(world, topology))
        first.close()
        world.write("words", [("k", "v", 6)])
        until(lambda: next(looks)["sources"] == [{"source": "in", "per_second": 0.0, "records": 6}])
        assert [each["instance"] for each in next(looks)["instances"]] == [str(client.host)]


def test_top_of_what_does_not_run_says_how_to_start_it(kstreams: Any) -> None:
    refused = kstreams("top", "visits")
    assert refused.status == 1
    assert "kstreams run --serve" in refused.err


def test_delays_by_quotas_are_a_sentence(tmp_path: Path) -> None:
    world = World(tmp_path, **{"commit.interval.ms": 20})
    world.create("words", 1)
    with world.log() as log, log.admin() as admin:
        admin.alter_client_quotas("app", {"consumer_byte_rate": 1})
    world.write("words", [("k", "v" * 1_000, 1)])
    with served(world, ks.Topology().add_source("in", "words", key=str, value=str)):
        looks = _snapshots(Config.of(world.settings), 0.2)
        until(lambda: next(looks)["throttled"] != [])
        (delays,) = next(looks)["throttled"]
        assert throttle_sentence(delays).startswith("Quotas delayed reading: 1,0")


def test_the_share_of_delays_is_that_of_the_time_of_all_threads() -> None:
    counted = {"kind": "throttled", "of": "producing", "by": "t", "count": 4_200, "reason": ""}
    instance = {
        "instance": "a", "pid": 1, "state": "RUNNING", "failed_threads": 0, "counts": [counted],
        "lags": [], "threads": [{"name": "t", "state": "RUNNING", "tasks": []}] * 2, "tasks": [], "stores": [],
        "restores": [],
    }  # fmt: skip
    (delays,) = tables([instance], {("throttled", "producing"): 1_240.0})["throttled"]
    assert throttle_sentence(delays) == (
        "Quotas delay producing: 62 % of the time now, 4.2 s so far (kstreams quotas list)."
    )
