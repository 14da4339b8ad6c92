"""`kstreams sql`: what the stores of a stopped application answer."""

from __future__ import annotations

import shutil

import pytest

from kstreams.config import Config
from kstreams.runtime.native.state.locks import lock_shared

APP = """
import kstreams as ks

topology = ks.StreamsBuilder()
visits = topology.stream("visits", key=str, value=str)
visits.group_by_key().count("counts")
visits.group_by(lambda key, value: value, key=str).count("by-page")
visits.group_by_key().count(ks.Materialized("held", store="memory"))
config = {"application.id": "visits", "num.stream.threads": 2}
"""


@pytest.fixture
def counted(kstreams):
    """A folder with an application that has counted five visits."""
    (kstreams.folder / "app.py").write_text(APP)
    kstreams.ok("topics", "create", "visits", "--partitions", "4")
    kstreams.ok("produce", "visits", "-s", "=", stdin="a=x\nb=y\na=x\nc=y\na=z\n")
    kstreams.ok("run", "app.py", "--once")
    return kstreams


def rows(kstreams, query: str) -> list[dict]:
    return kstreams.ok("sql", "app.py", query, "--json").json_lines()


def test_the_last_commit_answers_and_the_application_goes_on(counted):
    query = "select key, value from counts order by key"
    assert rows(counted, query) == [{"key": "a", "value": 3}, {"key": "b", "value": 1}, {"key": "c", "value": 1}]
    joined = 'select sum(value) as n from (select value from counts union all select value from "by-page")'
    assert rows(counted, joined) == [{"n": 10}]
    counted.ok("produce", "visits", "-s", "=", stdin="a=x\n")
    counted.ok("run", "app.py", "--once")
    assert rows(counted, f"select * exclude (timestamp) from ({query.replace('value', 'value, timestamp')})")[0] == {
        "key": "a",
        "value": 4,
    }


def test_of_several_copies_the_latest_answers(counted):
    """A task that moved has left what it was in the folder of the process that had it."""
    folder = counted.folder / ".kstreams" / "state" / "visits"
    assert (folder / "topology.json").exists()
    counted.ok("state", "export", "app.py", "--to", "aside")
    shutil.copytree(folder, counted.folder / "copy")
    counted.ok("produce", "visits", "-s", "=", stdin="a=x\nb=y\nc=y\n")
    counted.ok("run", "app.py", "--once")
    (counted.folder / "copy").rename(folder / "process-2")
    query = "select key, value from counts order by key"
    latest = [{"key": "a", "value": 4}, {"key": "b", "value": 2}, {"key": "c", "value": 2}]
    assert rows(counted, query) == latest
    (folder / "process-2").rename(counted.folder / "old")
    folder.rename(counted.folder / "new")
    (counted.folder / "old").rename(folder)
    (counted.folder / "new").rename(folder / "process-2")
    assert rows(counted, query) == latest


def test_what_is_refused_is_told_in_a_sentence(counted):
    for query, said in (
        ("select * from held", "the store 'held' keeps no bytes on disk"),
        ("select * from nowhere", "The stores are: by-page, counts, held"),
    ):
        outcome = counted("sql", "app.py", query)
        assert (outcome.status, outcome.out) == (1, "")
        assert said in outcome.err
    outcome = counted("sql", "app.py", "select * from counts", "--as-of", "5")
    assert "'counts' knows the present alone" in outcome.err
    outcome = counted("sql", "app.py", "select * from counts", "-c", "application.id=other")
    assert "'other' has no state in" in outcome.err
    assert not (counted.folder / ".kstreams" / "state" / "other").exists()


def test_a_running_application_is_left_alone(counted):
    lock = lock_shared(Config.load({"application.id": "visits"}))
    try:
        outcome = counted("sql", "app.py", "select * from counts")
    finally:
        lock.release()
    assert outcome.status == 1
    assert "in use by process" in outcome.err


def test_the_state_of_another_topology_is_refused(counted):
    (counted.folder / "app.py").write_text(APP.replace("key=str, value=str", "key=int, value=bytes"))
    outcome = counted("sql", "app.py", "select * from counts")
    assert outcome.status == 1
    assert "counts" in outcome.err
