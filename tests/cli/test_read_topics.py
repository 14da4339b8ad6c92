"""`kstreams topics delete` on both homes, of topics that somebody reads."""

from __future__ import annotations

import time

import pytest

import kstreams as ks
from kstreams.kernel.batch import TopicPartition
from kstreams.log import OffsetAndMetadata, home_at, open_log
from kstreams.os.file_lock import FileLock
from tests.native.world import until
from tests.support.kafka_topics import delete_everything

WORDS = TopicPartition("words", 0)


@pytest.fixture(params=["embedded", pytest.param("kafka", marks=[pytest.mark.kafka, pytest.mark.slow])])
def settings(kstreams, request, monkeypatch):
    """Where an application finds a home with a topic that it is to read, and one that nobody reads."""
    found = {"log.dir": str(kstreams.folder / ".kstreams" / "log")}
    if request.param == "kafka":
        servers = request.getfixturevalue("kafka").bootstrap_servers
        delete_everything(servers)
        monkeypatch.setenv("KSTREAMS_BOOTSTRAP_SERVERS", servers)
        found = {"bootstrap.servers": servers}
    for topic in ("words", "counts", "others"):
        kstreams.ok("topics", "create", topic)
    kstreams.ok("produce", "words", stdin="to\nbe\n")
    return found | {"application.id": "app", "state.dir": str(kstreams.folder / "state")}


def counting():
    builder = ks.StreamsBuilder()
    words = builder.stream("words", key=str, value=str)
    counts = words.group_by(lambda _, word: word, key=str).count(materialized="counted")
    counts.to_stream().to("counts", key=str, value=int)
    return builder.build()


def wait_for_commit(settings):
    with home_at(settings.get("log.dir") or f"kafka:{settings['bootstrap.servers']}").open() as log:
        while not log.admin().committed("app", [WORDS]):
            time.sleep(0.05)


def test_what_a_running_application_reads_is_deleted_only_by_force(kstreams, settings):
    with ks.KafkaStreams(counting(), settings) as streams:
        streams.start()
        wait_for_commit(settings)
        for topic in ("words", "app-counted-repartition", "app-counted-changelog", "app-KSTREAMS-ASSIGNMENT"):
            refused = kstreams("topics", "delete", topic)
            assert refused.status == 1
            assert f"without --force, {topic} is not deleted while the group app reads it" in refused.err
            assert "stop its 1 members first" in refused.err
        kstreams.ok("topics", "delete", "others")
    assert "holds 2 records" in kstreams("topics", "delete", "words").err
    kstreams.ok("topics", "delete", "words", "--force")


def test_by_force_it_is_deleted_under_its_readers(kstreams, settings):
    where = settings.get("log.dir") or f"kafka:{settings['bootstrap.servers']}"
    with home_at(where).open() as log, log.consumer({"group.id": "readers"}) as consumer:
        consumer.subscribe(["others"])
        until(lambda: consumer.poll(timeout=0.1) or consumer.assignment())
        assert "the group readers reads it" in kstreams("topics", "delete", "others").err
        kstreams.ok("topics", "delete", "others", "--force")
    assert "others" not in kstreams.ok("topics", "list").out


@pytest.mark.parametrize("settings", ["embedded"], indirect=True)
@pytest.mark.parametrize("lock", ["app", "app-spark"], ids=["a run until the end", "Spark"])
def test_what_a_run_without_members_reads_is_deleted_only_by_force(kstreams, settings, lock):
    kstreams.ok("topics", "delete", "words", "--force")
    kstreams.ok("topics", "create", "words")
    with open_log(settings["log.dir"]) as log:
        log.admin().commit(lock, {WORDS: OffsetAndMetadata(0)})
    with FileLock(kstreams.folder / ".kstreams" / "log" / "applications" / f"{lock}.lock", "it"):
        refused = kstreams("topics", "delete", "words")
        assert (refused.status, f"while the group {lock} reads it" in refused.err) == (1, True)
        assert "is in use by process" in refused.err
    kstreams.ok("topics", "delete", "words")
