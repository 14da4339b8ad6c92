"""A home without a coordinator: positions are committed once, and rows of a step that counts are published once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kstreams.errors import FencedError, LogError, StateError, UncertainCommitError
from kstreams.kernel.batch import Batch, Row, TopicPartition
from kstreams.kernel.clock import ManualClock
from kstreams.log import Log, OffsetAndMetadata
from kstreams.runtime.spark.io.open_homes import HomeAddress
from kstreams.runtime.spark.io.position_commits import MAX_ATTEMPTS, PositionCommits
from kstreams.runtime.spark.io.staged import publication
from kstreams.runtime.spark.io.staged.publication import Publication
from kstreams.runtime.spark.io.staged.rows import StagedRows, shares_of
from kstreams.runtime.spark.steps import AppliedStep
from tests.log.contract.reading import commits_are_awaited, values_of
from tests.support.kafka_topics import delete_everything

pytestmark = pytest.mark.spark

WORDS, OUT = TopicPartition("words", 0), TopicPartition("out", 0)
AT = {WORDS: OffsetAndMetadata(5, "step 0")}


@pytest.fixture(params=["embedded", pytest.param("kafka", marks=[pytest.mark.kafka, pytest.mark.slow])])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> HomeAddress:
    if request.param == "embedded":
        return HomeAddress(str(tmp_path / "log"))
    servers = request.getfixturevalue("kafka").bootstrap_servers
    delete_everything(servers)
    return HomeAddress(f"kafka:{servers}")


@pytest.fixture
def log(home: HomeAddress) -> Iterator[Log]:
    with home.opened() as opened, opened.admin() as admin:
        admin.create_topic("words", 2)
        admin.create_topic("out")
        with commits_are_awaited(opened):
            yield opened


class Publishing:
    """Steps whose rows are staged, announced and published."""

    def __init__(self, home: HomeAddress, folder: Path, history: str = "one") -> None:
        self.rows = StagedRows(str(folder / "checkpoint"))
        self.publication = Publication(
            home, self.rows, "app-spark", history, (WORDS, WORDS._replace(partition=1)), 60_000
        )

    def step(self, number: int, *values: bytes) -> list[str]:
        """One object of one writer for each value."""
        batches = [Batch.of_rows(OUT, [Row(b"k", value, 7, (("h", b"1"),))]) for value in values]
        return [self.rows.write(number, f"0_{at}", [batch]) for at, batch in enumerate(batches)]


@pytest.fixture
def publishing(home: HomeAddress, log: Log, tmp_path: Path) -> Publishing:
    return Publishing(home, tmp_path)


def test_positions_are_committed_and_an_older_process_is_fenced(log: Log) -> None:
    with PositionCommits(log, "app", ManualClock()) as older, PositionCommits(log, "app", ManualClock()) as newer:
        newer.commit(AT)
        with pytest.raises(FencedError):
            older.commit({WORDS: OffsetAndMetadata(9)})
        assert log.admin().committed("app", [WORDS]) == AT


@pytest.mark.parametrize("counts", [True, False])
def test_a_commit_without_an_answer_is_looked_up(log: Log, monkeypatch: pytest.MonkeyPatch, counts: bool) -> None:
    with PositionCommits(log, "app", ManualClock()) as steps:
        producer: Any = steps._producer
        commit = producer.commit_transaction

        def unanswered(*given: Any) -> None:
            if counts:
                commit(*given)
            raise UncertainCommitError("no answer")

        monkeypatch.setattr(producer, "commit_transaction", unanswered)
        steps.commit(AT)
        assert log.admin().committed("app", [WORDS]) == AT


def test_what_another_process_has_committed_meanwhile_stays(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    with PositionCommits(log, "app", ManualClock()) as older:
        producer: Any = older._producer

        def overtaken(*given: Any) -> None:
            with PositionCommits(log, "app", ManualClock()) as newer:
                newer.commit(AT)
            raise UncertainCommitError("no answer")

        monkeypatch.setattr(producer, "commit_transaction", overtaken)
        with pytest.raises(FencedError, match="Another process has committed"):
            older.commit({WORDS: OffsetAndMetadata(9)})
    assert log.admin().committed("app", [WORDS]) == AT


def test_rows_are_published_as_they_were_staged(log: Log, publishing: Publishing) -> None:
    publishing.publication.publish(0, 0, publishing.step(0, b"a", b"b"))
    with log.consumer() as consumer:
        consumer.assign([OUT])
        rows = [row for batch in consumer.poll(10) for row in batch.rows()]
    assert rows == [Row(b"k", b"a", 7, (("h", b"1"),)), Row(b"k", b"b", 7, (("h", b"1"),))]


def test_a_step_that_is_published_again_writes_nothing(log: Log, publishing: Publishing) -> None:
    first, second = publishing.step(0, b"a", b"b"), publishing.step(2, b"c")
    for _ in range(2):
        publishing.publication.publish(0, 0, first[:1])
        publishing.publication.publish(0, 1, first[1:])
    publishing.publication.publish(2, 0, second)
    publishing.publication.publish(0, 0, first[:1])  # by a driver of long ago
    assert sorted(values_of(log, "out")) == [b"a", b"b", b"c"]


def test_another_checkpoint_has_steps_of_its_own(
    home: HomeAddress, log: Log, publishing: Publishing, tmp_path: Path
) -> None:
    publishing.publication.publish(4, 0, publishing.step(4, b"a"))
    other = Publishing(home, tmp_path / "other", "two")
    other.publication.publish(0, 0, other.step(0, b"b"))
    assert values_of(log, "out") == [b"a", b"b"]


def test_a_publisher_that_died_in_the_middle_is_never_seen(log: Log, publishing: Publishing) -> None:
    names = publishing.step(0, b"a")
    dead = log.producer({"transactional.id": publishing.rows.claim(0, 0, "app-spark-out-dead")})
    dead.begin_transaction()
    dead.send("out", b"k", b"half", partition=0)
    dead.flush()
    publishing.publication.publish(0, 0, names)
    assert values_of(log, "out") == [b"a"]
    with pytest.raises(LogError):
        dead.commit_transaction({WORDS: OffsetAndMetadata(0)}, "app-spark-out")
    assert values_of(log, "out") == [b"a"]


def test_all_attempts_at_a_share_have_the_transactional_id_of_the_first(publishing: Publishing) -> None:
    rows = publishing.rows
    assert [rows.claim(2, 0, name) for name in ("first", "second")] == ["first", "first"]
    assert rows.claim(2, 1, "second") == "second"


def test_of_two_publishers_at_once_one_writes(
    log: Log, publishing: Publishing, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, read, runs = publishing.step(0, b"a"), StagedRows.read, [0]

    def beside(rows: StagedRows, name: str) -> Iterator[Batch]:
        runs[0] += 1
        if runs[0] == 1:
            publishing.publication.publish(0, 0, names)
        return read(rows, name)

    monkeypatch.setattr(publication, "PAUSE_SECONDS", 0)
    monkeypatch.setattr(StagedRows, "read", beside)
    publishing.publication.publish(0, 0, names)
    assert runs == [2]
    assert values_of(log, "out") == [b"a"]


def test_a_home_that_takes_nothing_ends_the_publication(
    log: Log, publishing: Publishing, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, tries = publishing.step(0, b"a"), list[int]()
    monkeypatch.setattr(publication, "PAUSE_SECONDS", 0)
    log.admin().delete_topic("out")
    monkeypatch.setattr(StagedRows, "read", lambda rows, name: tries.append(1) or iter(_refused()))
    with pytest.raises(LogError, match="nothing is taken"):
        publishing.publication.publish(0, 0, names)
    assert len(tries) == MAX_ATTEMPTS


def _refused() -> Iterator[Batch]:
    raise LogError("nothing is taken")
    yield


@pytest.mark.parametrize("change", ["missing", "flipped"])
def test_staged_rows_that_are_not_what_was_written_are_refused(
    log: Log, publishing: Publishing, tmp_path: Path, change: str
) -> None:
    (name,) = publishing.step(0, b"a")
    file = tmp_path / "checkpoint" / name
    raw = bytearray(file.read_bytes())
    raw[len(raw) // 2] ^= 1
    file.unlink() if change == "missing" else file.write_bytes(raw)
    with pytest.raises(StateError, match=rf"{file.name} is (missing|damaged)"):
        publishing.publication.publish(0, 0, [name])
    assert values_of(log, "out") == []


def test_what_is_published_goes_and_what_may_be_needed_stays(publishing: Publishing) -> None:
    rows = publishing.rows
    orphan, first, second = publishing.step(0, b"x"), publishing.step(0, b"a", b"b"), publishing.step(2, b"c")
    done = AppliedStep(0, "", rows.announce(0, shares_of(first, 2)))
    assert rows.announced(done) == [[name] for name in first]
    rows.claim(0, 0, "app-spark-out-a")
    rows.delete_published(0, shares_of(first, 2))
    rows.clean_up(done)
    assert rows.announced(done) == [[name] for name in first]
    kept = rows._storage.names("outputs")
    assert orphan[0].rpartition("/")[2] not in kept
    assert second[0].rpartition("/")[2] in kept
