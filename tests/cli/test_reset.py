"""`kstreams reset` on both homes of topics: everything of an application goes, or nothing does."""

from __future__ import annotations

import pytest

from kstreams.errors import LogError
from kstreams.log import home_at
from kstreams.log.embedded.admin import EmbeddedAdmin
from tests.native.world import until
from tests.support.kafka_topics import delete_everything

COUNTS = """
import kstreams as ks

topology = ks.StreamsBuilder()
words = topology.stream("words", key=str, value=str)
counts = words.group_by(lambda _, word: word, key=str).count(materialized="counted")
counts.to_stream().to("counts", key=str, value=int)
"""
LEFT = [
    ("topic", "app-counted-changelog"),
    ("topic", "app-counted-repartition"),
    ("state", ".kstreams/state/app"),
    ("offsets", "app"),
]


@pytest.fixture(params=["embedded", pytest.param("kafka", marks=[pytest.mark.kafka, pytest.mark.slow])])
def log(kstreams, request, monkeypatch):
    """A home with three words, which the application `app` has counted."""
    address = f"log:{kstreams.folder / '.kstreams' / 'log'}"
    if request.param == "kafka":
        servers = request.getfixturevalue("kafka").bootstrap_servers
        delete_everything(servers)
        monkeypatch.setenv("KSTREAMS_BOOTSTRAP_SERVERS", servers)
        address = f"kafka:{servers}"
    monkeypatch.setenv("KSTREAMS_APPLICATION_ID", "app")
    (kstreams.folder / "app.py").write_text(COUNTS)
    kstreams.ok("topics", "create", "words")
    kstreams.ok("topics", "create", "counts")
    kstreams.ok("produce", "words", stdin="to\nbe\nto\n")
    kstreams.ok("run", "app.py", "--once")
    with home_at(address).open() as opened:
        yield opened


def told(kstreams, *options):
    return [(row["what"], row["name"]) for row in kstreams.ok("reset", "app.py", "--json", *options).json_lines()]


def left(kstreams, log):
    """What is there of the application."""
    topics = [("topic", name) for name in sorted(log.admin().topics()) if name.startswith("app-")]
    folder = kstreams.folder / ".kstreams" / "state" / "app"
    state = [("state", ".kstreams/state/app")] if any(entry.is_dir() for entry in folder.iterdir()) else []
    return topics + state + [("offsets", group) for group in log.admin().groups()]


def counts(kstreams):
    read = ("consume", "counts", "--from-beginning", "--until-end", "--json", "--key-type", "str")
    return {row["key"]: row["value"] for row in kstreams.ok(*read, "--value-type", "int").json_lines()}


def test_what_an_application_has_left_is_deleted_and_told(kstreams, log):
    assert told(kstreams) == LEFT
    assert left(kstreams, log) == []
    assert sorted(log.admin().topics()) == ["counts", "words"]
    kstreams.ok("run", "app.py", "--once")
    assert counts(kstreams) == {"to": 2, "be": 1}
    assert kstreams.ok("reset", "app.py").out.splitlines() == ["what\tname", *("\t".join(row) for row in LEFT)]
    again = kstreams.ok("reset", "app.py")
    assert (again.out, again.err) == ("", "app has left nothing that could be deleted\n")


def test_a_dry_run_lists_the_same_and_deletes_nothing(kstreams, log):
    assert told(kstreams, "--dry-run") == LEFT
    assert left(kstreams, log) == LEFT
    assert "would be reset" in kstreams.ok("reset", "app.py", "--dry-run").err


def test_while_the_group_is_active_nothing_is_deleted(kstreams, log):
    with log.consumer({"group.id": "app"}) as consumer:
        consumer.subscribe(["words"])
        until(lambda: consumer.poll(timeout=0.1) or consumer.assignment())
        refused = kstreams("reset", "app.py")
        assert (refused.status, refused.out) == (1, "")
        assert "1 processes run the application 'app': stop them first" in refused.err
    assert left(kstreams, log) == LEFT


@pytest.mark.parametrize("log", ["embedded"], indirect=True)
@pytest.mark.parametrize("step", ["delete_topic", "delete_group"])
def test_a_reset_that_was_interrupted_is_finished_before_the_application_starts(kstreams, log, monkeypatch, step):
    def fail(self, name):
        raise LogError("the disk is gone")

    with monkeypatch.context() as broken:
        broken.setattr(EmbeddedAdmin, step, fail)
        assert "the disk is gone" in kstreams("reset", "app.py").err
    refused = kstreams("run", "app.py", "--once")
    assert (refused.status, "finish it with `kstreams reset`" in refused.err) == (1, True)
    kstreams.ok("reset", "app.py")
    kstreams.ok("run", "app.py", "--once")
    assert counts(kstreams) == {"to": 2, "be": 1}


def test_a_home_that_is_not_there_is_not_made(kstreams):
    (kstreams.folder / "app.py").write_text(COUNTS)
    refused = kstreams("reset", "app.py")
    assert refused.status == 1
    assert not (kstreams.folder / ".kstreams").exists()
