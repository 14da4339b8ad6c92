"""`kstreams groups` on both homes of topics: the same output."""

from __future__ import annotations

import pytest

from kstreams.kernel.batch import TopicPartition
from kstreams.log import OffsetAndMetadata, home_at, open_log
from kstreams.os.file_lock import FileLock
from tests.support.kafka_topics import delete_everything


@pytest.fixture(params=["embedded", pytest.param("kafka", marks=[pytest.mark.kafka, pytest.mark.slow])])
def log(kstreams, request, monkeypatch):
    """A home with a topic of two partitions with five words each, of which `readers` has committed three and none."""
    address = f"log:{kstreams.folder / '.kstreams' / 'log'}"
    if request.param == "kafka":
        servers = request.getfixturevalue("kafka").bootstrap_servers
        delete_everything(servers)
        monkeypatch.setenv("KSTREAMS_BOOTSTRAP_SERVERS", servers)
        address = f"kafka:{servers}"
    with home_at(address).open() as opened:
        opened.admin().create_topic("words", 2)
        with opened.producer() as producer:
            for row in range(10):
                producer.send("words", None, b"", partition=row % 2, timestamp=row + 1)
        offsets = {TopicPartition("words", number): OffsetAndMetadata(at) for number, at in ((0, 3), (1, 0))}
        opened.admin().commit("readers", offsets)
        yield opened


def committed(log):
    sources = [TopicPartition("words", number) for number in range(2)]
    return [at.offset for at in log.admin().committed("readers", sources).values()]


def test_groups_are_listed_with_their_states_and_lags(kstreams, log):
    assert kstreams.ok("groups", "list", "--json").json_lines() == [
        {"group": "readers", "state": "Empty", "members": 0, "lag": 7}
    ]
    assert kstreams.ok("groups", "list").out.splitlines() == ["group\tstate\tmembers\tlag", "readers\tEmpty\t0\t7"]


def test_members_are_shown_with_their_partitions(kstreams, log):
    settings = {"group.id": "readers", "group.instance.id": "one", "session.timeout.ms": 5_000}
    with log.consumer(settings) as consumer:
        consumer.subscribe(["words"])
        consumer.poll(timeout=60)
        me = consumer.group_metadata()
        (row,) = kstreams.ok("groups", "describe", "readers", "--json").json_lines()
        assert row["generation"] in (me.generation, None), "a cluster does not tell it"
        assert row | {"generation": 1} == {
            "group": "readers",
            "state": "Stable",
            "generation": 1,
            "strategy": "cooperative-sticky",
            "member": me.member,
            "instance": "one",
            "partitions": ["words-0", "words-1"],
        }
        behind = kstreams.ok("groups", "lag", "readers", "--json").json_lines()
        assert [line["member"] for line in behind] == [row["member"]] * 2


def test_a_group_without_members_is_described_too(kstreams, log):
    (row,) = kstreams.ok("groups", "describe", "readers", "--json").json_lines()
    assert (row["state"], row["member"], row["partitions"]) == ("Empty", None, [])


def test_the_lag_is_shown_partition_by_partition(kstreams, log):
    rows = kstreams.ok("groups", "lag", "readers", "--json").json_lines()
    assert [(row["partition"], row["committed"], row["end"], row["lag"]) for row in rows] == [
        (0, 3, 5, 2),
        (1, 0, 5, 5),
    ]


@pytest.mark.parametrize(
    ("to", "expected"),
    [("earliest", [0, 0]), ("latest", [5, 5]), ("2", [2, 2]), ("99", [5, 5]), ("by_duration:PT1H", [5, 5])],
)
def test_a_stopped_group_is_moved(kstreams, log, to, expected):
    rows = kstreams.ok("groups", "reset", "readers", "--to", to, "--json").json_lines()
    assert [(row["before"], row["after"]) for row in rows] == list(zip([3, 0], expected, strict=True))
    assert committed(log) == expected


def test_a_dry_run_changes_nothing_and_a_topic_may_be_named(kstreams, log):
    log.admin().create_topic("lines")
    log.admin().commit("readers", {TopicPartition("lines", 0): OffsetAndMetadata(0)})
    rows = kstreams.ok(
        "groups", "reset", "readers", "--to", "5", "--topic", "words", "--dry-run", "--json"
    ).json_lines()
    assert [row["topic"] for row in rows] == ["words", "words"]
    assert committed(log) == [3, 0]


def test_a_group_that_is_active_is_neither_moved_nor_deleted(kstreams, log):
    with log.consumer({"group.id": "readers"}) as consumer:
        consumer.subscribe(["words"])
        consumer.poll(timeout=60)
        for command in (("reset", "readers", "--to", "latest"), ("delete", "readers")):
            refused = kstreams("groups", *command)
            assert refused.status == 1
            assert "stop its 1 members first" in refused.err
    assert committed(log) == [3, 0]


def test_a_group_of_an_application_that_runs_is_not_moved(kstreams):
    with open_log(kstreams.folder / ".kstreams" / "log") as log:
        log.admin().create_topic("words", 2)
        log.admin().commit("readers", {TopicPartition("words", 0): OffsetAndMetadata(0)})
    with FileLock(kstreams.folder / ".kstreams" / "log" / "applications" / "readers.lock", "it"):
        refused = kstreams("groups", "reset", "readers", "--to", "latest")
        assert (refused.status, "is in use by process" in refused.err) == (1, True)


def test_a_group_is_deleted_with_its_offsets(kstreams, log):
    assert "deleted readers" in kstreams.ok("groups", "delete", "readers").err
    assert kstreams.ok("groups", "list").out == ""
    assert committed(log) == []


def test_what_cannot_be_is_one_sentence(kstreams, log):
    assert "Did you mean 'readers'?" in kstreams("groups", "lag", "reader").err
    wrong = kstreams("groups", "reset", "readers", "--to", "yesterday")
    assert (wrong.status, "by_duration:PT1H" in wrong.err) == (2, True)
    assert "committed nothing for lines" in kstreams("groups", "reset", "readers", "--to", "0", "-t", "lines").err
