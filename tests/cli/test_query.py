"""`kstreams query` and its like: what they show of an application that runs, and of one that has ended."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

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


@pytest.fixture
def visits(kstreams: Any) -> Any:
    (kstreams.folder / "app.py").write_text(APP)
    kstreams.ok("topics", "create", "visits", "--partitions", "4")
    kstreams.ok("produce", "visits", "-s", "=", stdin="anna=x\nben=y\nanna=z\na/b c=x\n")
    return kstreams


@pytest.fixture
def serving(visits: Any) -> Iterator[subprocess.Popen[str]]:
    """The application in a process of its own, once it has counted."""
    with started(visits) as process:
        yield process


@contextmanager
def started(visits: Any) -> Iterator[subprocess.Popen[str]]:
    command = [COMMAND, "run", "app.py", "--serve"]
    with subprocess.Popen(command, cwd=visits.folder, stderr=subprocess.PIPE, text=True) as process:
        try:
            until(lambda: "anna" in visits("query", "counts", "anna").out and len(rows(visits, "--all")) == 3)
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(WAIT_S) == 0


def rows(kstreams: Any, *arguments: str, store: str = "counts") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = kstreams.ok("query", store, *arguments, "--json").json_lines()
    return found


def test_a_running_application_answers(visits: Any, serving: subprocess.Popen[str]) -> None:
    assert [(row["key"], row["value"]) for row in rows(visits, "anna")] == [("anna", 2)]
    assert rows(visits, "a/b c")[0]["value"] == 1
    assert {row["key"] for row in rows(visits, "--prefix", "a")} == {"a/b c", "anna"}
    assert {row["key"] for row in rows(visits, "--range", "anna", "b")} == {"anna"}
    assert len(rows(visits, "--all", "--limit", "2")) == 2
    (window, *_) = rows(visits, "ben", "--window", "0", str(2**61), store="windows")
    assert rows(visits, "ben", "--as-of", str(window["window_start"]), store="windows") == [window]
    assert visits.ok("query", "counts", "anna").out.splitlines()[0].split("\t")[:2] == ["key", "value"]
    assert [line["name"] for line in visits.ok("stores", "--json").json_lines()] == ["counts", "windows"]
    (process,) = visits.ok("ps", "--json").json_lines()
    assert (process["application_id"], process["pid"]) == ("visits", serving.pid)
    (state,) = visits.ok("status", "--json").json_lines()
    assert (state["state"], state["records_in"]) == ("RUNNING", 4)
    assert {line["store"] for line in visits.ok("lag", "--json").json_lines()} == {"counts", "windows"}


def test_sql_asks_a_running_application(visits: Any, serving: subprocess.Popen[str]) -> None:
    def asked(query: str, *arguments: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = visits.ok("sql", query, *arguments, "--json").json_lines()
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
    assert visits.ok("sql", "app.py", "select value from counts where key = 'anna'", "--json").json_lines() == [
        {"value": 2}
    ]
    assert "The stores are: counts, windows" in visits("sql", "select * from private").err
    assert visits("sql", "app.py").status == visits("sql", "select 1", "--step", "3").status == 2


def test_a_store_without_rows_has_columns_in_sql(visits: Any, serving: subprocess.Popen[str]) -> None:
    assert visits.ok("sql", "select key, value, timestamp from windows", "--as-of", "1", "--json").json_lines() == []


def test_a_watch_shows_each_change(visits: Any, serving: subprocess.Popen[str]) -> None:
    command = [COMMAND, "query", "counts", "anna", "--watch"]
    with subprocess.Popen(command, cwd=visits.folder, stdout=subprocess.PIPE, text=True) as watch:
        assert watch.stdout is not None
        assert json.loads(watch.stdout.readline())["value"] == 2
        visits.ok("produce", "visits", "-s", "=", stdin="anna=w\n")
        assert json.loads(watch.stdout.readline())["value"] == 3
        watch.send_signal(signal.SIGINT)
        assert watch.wait(WAIT_S) == 130


def test_options_do_what_they_say_together(visits: Any, serving: subprocess.Popen[str]) -> None:
    assert {row["key"] for row in rows(visits, "--prefix", "")} == {"anna", "ben", "a/b c"}
    watched = visits.ok("query", "counts", "--all", "--watch", "--limit", "2").json_lines()
    assert [event["event"] for event in watched] == ["row", "row"]
    for arguments in (("--prefix", "a"), ("--range", "a", "b"), ("--all",)):
        outcome = visits("query", "counts", "anna", *arguments)
        assert (outcome.status, "a key stands without" in outcome.err) == (2, True), outcome


def test_an_instance_that_goes_while_it_is_looked_for_is_none(visits: Any, serving: subprocess.Popen[str]) -> None:
    (visits.folder / ".kstreams/state/visits/.server/1-gone.json").symlink_to("nowhere")
    assert len(visits.ok("ps", "--json").json_lines()) == 1


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


def test_what_is_refused_is_told_in_a_sentence(visits: Any, serving: subprocess.Popen[str]) -> None:
    for arguments, said in (
        (("private", "anna"), "no such store, or it is not declared queryable"),
        (("counts", "anna", "--as-of", "5"), "cannot be queried by `as_of`"),
        (("counts", "anna", "-a", "other"), "'other' does not run"),
    ):
        outcome = visits("query", *arguments)
        assert (outcome.status, outcome.out) == (1, "")
        assert said in outcome.err
    assert visits("query", "counts").status == 2


def test_a_state_folder_is_read_without_the_application(visits: Any, serving: subprocess.Popen[str]) -> None:
    at = ("--state-dir", ".kstreams/state")
    by_server = rows(visits, "--all", *at), rows(visits, "ben", *at, store="windows")
    serving.send_signal(signal.SIGTERM)
    assert serving.wait(WAIT_S) == 0
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
