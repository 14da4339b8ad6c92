"""`kstreams query` and its like: what they show of an application that runs, and of one that has ended."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kstreams.log import open_log
from tests.cli.conftest import Shell, shell_in
from tests.cli.test_applications import COMMAND
from tests.native.world import WAIT_S, until

APP = """
import kstreams as ks

topology = ks.StreamsBuilder()
visits = topology.stream("visits", key=str, value=str).group_by_key()
visits.count(ks.Materialized("counts", queryable=True))
visits.windowed_by(ks.TimeWindows(size=1000)).count(ks.Materialized("windows", retention=10**15, queryable=True))
visits.reduce(lambda old, new: new, materialized="private")
config = {"application.id": "visits", "commit.interval.ms": 50}
"""


VISITS = (("anna", "x"), ("ben", "y"), ("anna", "z"), ("a/b c", "x"))


class Running(NamedTuple):
    """An application in a process of its own."""

    folder: Path
    process: subprocess.Popen[str]


@pytest.fixture
def visits(kstreams: Any) -> Any:
    """A folder of a test alone, in which the application does not run yet."""
    prepare(kstreams.folder)
    return kstreams


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The application that several tests ask: they change nothing."""
    folder = tmp_path_factory.mktemp("visits")
    prepare(folder)
    with process_in(folder) as process:
        yield Running(folder, process)


@pytest.fixture
def serving(running: Running, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Shell]:
    """Commands in the folder of the application that several tests ask, once it has counted."""
    with shell_in(running.folder, monkeypatch, capsys) as shell:
        await_counts(shell)
        yield shell


def prepare(folder: Path) -> None:
    (folder / "app.py").write_text(APP)
    with open_log(folder / ".kstreams" / "log") as log, log.admin() as admin, log.producer() as producer:
        admin.create_topic("visits", 4)
        for key, value in VISITS:
            producer.send("visits", key.encode(), value.encode())


@contextmanager
def started(visits: Any) -> Iterator[subprocess.Popen[str]]:
    """The application in a process of its own, once it has counted."""
    with process_in(visits.folder) as process:
        await_counts(visits)
        yield process


@contextmanager
def process_in(folder: Path) -> Iterator[subprocess.Popen[str]]:
    command = [COMMAND, "run", "app.py", "--serve"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(WAIT_S) == 0


def await_counts(visits: Any) -> None:
    until(lambda: "anna" in visits("query", "counts", "anna").out and len(rows(visits, "--all")) == 3)


def rows(kstreams: Any, *arguments: str, store: str = "counts") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = kstreams.ok("query", store, *arguments, "--json").json_lines()
    return found


def test_a_running_application_answers(serving: Shell, running: Running) -> None:
    assert [(row["key"], row["value"]) for row in rows(serving, "anna")] == [("anna", 2)]
    assert rows(serving, "a/b c")[0]["value"] == 1
    assert {row["key"] for row in rows(serving, "--prefix", "a")} == {"a/b c", "anna"}
    assert {row["key"] for row in rows(serving, "--range", "anna", "b")} == {"anna"}
    assert len(rows(serving, "--all", "--limit", "2")) == 2
    (window, *_) = rows(serving, "ben", "--window", "0", str(2**61), store="windows")
    assert rows(serving, "ben", "--as-of", str(window["window_start"]), store="windows") == [window]
    assert serving.ok("query", "counts", "anna").out.splitlines()[0].split("\t")[:2] == ["key", "value"]
    assert [line["name"] for line in serving.ok("stores", "--json").json_lines()] == ["counts", "windows"]
    (process,) = serving.ok("ps", "--json").json_lines()
    assert (process["application_id"], process["pid"]) == ("visits", running.process.pid)
    (state,) = serving.ok("status", "--json").json_lines()
    assert (state["state"], state["records_in"]) == ("RUNNING", 4)
    assert {line["store"] for line in serving.ok("lag", "--json").json_lines()} == {"counts", "windows"}


def test_sql_asks_a_running_application(serving: Shell) -> None:
    def asked(query: str, *arguments: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = serving.ok("sql", query, *arguments, "--json").json_lines()
        return found

    assert asked("select key, value from counts order by key") == [
        {"key": "a/b c", "value": 1},
        {"key": "anna", "value": 2},
        {"key": "ben", "value": 1},
    ]
    assert asked("select sum(w.value) as n from windows w join counts c on w.key = c.key where c.value > 1") == [
        {"n": 2}
    ]
    (start,) = asked("select min(window_start) as start from windows where key = 'ben'")
    at_start = str(start["start"])
    assert {"n": 1} in asked("select value as n from windows where key = 'ben'", "--as-of", at_start)
    assert serving.ok("sql", "app.py", "select value from counts where key = 'anna'", "--json").json_lines() == [
        {"value": 2}
    ]
    assert "The stores are: counts, windows" in serving("sql", "select * from private").err
    assert serving("sql", "app.py").status == serving("sql", "select 1", "--step", "3").status == 2


def test_a_store_without_rows_has_columns_in_sql(serving: Shell) -> None:
    assert serving.ok("sql", "select key, value, timestamp from windows", "--as-of", "1", "--json").json_lines() == []


def test_a_watch_shows_each_change(visits: Any) -> None:
    command = [COMMAND, "query", "counts", "anna", "--watch"]
    with (
        started(visits),
        subprocess.Popen(command, cwd=visits.folder, stdout=subprocess.PIPE, text=True) as watch,
    ):
        assert watch.stdout is not None
        assert json.loads(watch.stdout.readline())["value"] == 2
        visits.ok("produce", "visits", "-s", "=", stdin="anna=w\n")
        assert json.loads(watch.stdout.readline())["value"] == 3
        watch.send_signal(signal.SIGINT)
        assert watch.wait(WAIT_S) == 130


def test_options_do_what_they_say_together(serving: Shell) -> None:
    assert {row["key"] for row in rows(serving, "--prefix", "")} == {"anna", "ben", "a/b c"}
    watched = serving.ok("query", "counts", "--all", "--watch", "--limit", "2").json_lines()
    assert [event["event"] for event in watched] == ["row", "row"]
    for arguments in (("--prefix", "a"), ("--range", "a", "b"), ("--all",)):
        outcome = serving("query", "counts", "anna", *arguments)
        assert (outcome.status, "a key stands without" in outcome.err) == (2, True), outcome


def test_an_instance_that_goes_while_it_is_looked_for_is_none(serving: Shell) -> None:
    gone = serving.folder / ".kstreams/state/visits/.server/1-gone.json"
    gone.symlink_to("nowhere")
    assert len(serving.ok("ps", "--json").json_lines()) == 1
    gone.unlink(missing_ok=True)


def test_a_watch_goes_on_when_the_application_comes_back(visits: Any) -> None:
    command = [COMMAND, "query", "counts", "anna", "--watch"]
    with started(visits):
        watch = subprocess.Popen(command, cwd=visits.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert watch.stdout is not None
        assert json.loads(watch.stdout.readline())["value"] == 2
    visits.ok("produce", "visits", "-s", "=", stdin="anna=w\n")
    with started(visits):
        until(lambda: json.loads(watch.stdout.readline())["value"] == 3)
        watch.send_signal(signal.SIGINT)
        watch.communicate(timeout=WAIT_S)


def test_what_is_refused_is_told_in_a_sentence(serving: Shell) -> None:
    for arguments, said in (
        (("private", "anna"), "no such store, or it is not declared queryable"),
        (("counts", "anna", "--as-of", "5"), "cannot be queried by `as_of`"),
        (("counts", "anna", "-a", "other"), "'other' does not run"),
    ):
        outcome = serving("query", *arguments)
        assert (outcome.status, outcome.out) == (1, "")
        assert said in outcome.err
    assert serving("query", "counts").status == 2


def test_a_state_folder_is_read_without_the_application(visits: Any) -> None:
    at = ("--state-dir", ".kstreams/state")
    with started(visits):
        by_server = rows(visits, "--all", *at), rows(visits, "ben", *at, store="windows")
    (visits.folder / "app.py").rename(visits.folder / "gone.py")
    assert sorted(rows(visits, "--all", *at), key=str) == sorted(by_server[0], key=str)
    assert rows(visits, "ben", *at, store="windows") == by_server[1]
    assert "there is no store 'nobody'; there are: " in visits("query", "nobody", "x", *at).err
    assert (
        "no application runs or has left stores in nowhere"
        in visits("query", "counts", "x", "--state-dir", "nowhere").err
    )
    assert "--application-id" not in visits("query", "counts", "anna", *at, "-a", "visits").err
    assert "'other' runs or has left" in visits("query", "counts", "anna", *at, "-a", "other").err


def test_stores_of_types_that_only_the_application_knows_are_told(visits: Any) -> None:
    means = (
        "topology = ks.StreamsBuilder()\n"
        + "seen = topology.stream('visits', key=str, value=str).map_values(len, value=int)\n"
    )
    means += "seen.group_by_key().aggregate(mean=ks.value.mean(), materialized='means')\n"
    (visits.folder / "means.py").write_text(f"import kstreams as ks\n\n{means}")
    visits.ok("run", "means.py", "--once")
    said = visits("query", "means", "anna", "--state-dir", ".kstreams/state", "-a", "means").err
    assert "name its file by --app" in said


def test_serve_stands_alone_or_before_an_address(visits: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert f"the server cannot listen at {address}" in visits("run", "--serve", address, "app.py", "--once").err
    assert f"queries at http://{address}/v1" in visits.ok("run", "--serve", address, "app.py", "--once").err
    assert "queries at http://127.0.0.1:" in visits.ok("run", "--serve", "app.py", "--once").err
    assert "write HOST:PORT" in visits("run", "app.py", "--serve", "8080", "--once").err


def test_an_application_that_has_ended_is_read_from_its_state(visits: Any) -> None:
    visits.ok("run", "app.py", "--once")
    outcome = visits("query", "counts", "anna")
    assert outcome.status == 1
    assert "kstreams run --serve" in outcome.err
    of_app = ("--app", "app.py")
    assert [row["value"] for row in rows(visits, "anna", *of_app)] == [2]
    assert {row["key"] for row in rows(visits, "--all", *of_app)} == {"anna", "ben", "a/b c"}
    assert len(rows(visits, "--all", "--limit", "2", *of_app)) == 2
    assert [row["key"] for row in rows(visits, "ben", *of_app, store="windows")] == ["ben"]
    assert "cannot be queried by `as_of`" in visits("query", "counts", "anna", "--as-of", "5", *of_app).err
