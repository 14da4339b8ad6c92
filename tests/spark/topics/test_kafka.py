"""Topics of a real Kafka: read and written by Spark's tasks, each record once, with the native engine's results."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.errors import FencedError, KStreamsError, UncertainCommitError
from kstreams.log.kafka.producer import KafkaProducer
from kstreams.runtime.spark import engine
from kstreams.runtime.spark.io.position_commits import PositionCommits
from kstreams.runtime.spark.io.staged import commits, publication
from kstreams.runtime.spark.io.staged.rows import StagedRows
from tests.connectors.systems import Database, Numbered, orders, orders_in
from tests.spark.running import Application, Row
from tests.spark.shop import INPUTS, OUTPUTS, START, TYPES, results, shop, shop_rows
from tests.spark.word_count import COUNTS, LINES, WORD_TYPES, word_count
from tests.support.kafka_topics import delete_everything

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(600)]

ROWS = 3_000


@pytest.fixture
def settings(kafka: Any) -> dict[str, str]:
    delete_everything(kafka.bootstrap_servers)
    return {"bootstrap.servers": kafka.bootstrap_servers}


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
def test_from_kafka_to_kafka_as_natively(spark: Any, tmp_path: Path, settings: dict[str, str], guarantee: str) -> None:
    app = Application(spark, tmp_path, shop(), TYPES, **settings, **{"processing.guarantee": guarantee})
    app.create(*INPUTS, partitions=3).create(*OUTPUTS)
    app.write(shop_rows(1, ROWS))
    app.run_natively()
    progress = app.run(**{"spark.kstreams.max.records": 700})
    assert progress.commits >= 4
    assert progress.records_in == ROWS
    found = results(app)
    assert found == results(app, "")
    assert all(found.values())


def test_records_are_taken_in_the_order_of_time_though_their_topics_were_written_in_transactions(
    spark: Any, tmp_path: Path, settings: dict[str, str]
) -> None:
    """Marks of transactions have the time of their commit, years after these records."""
    app = Application(spark, tmp_path, shop(), TYPES, **settings)
    app.create(*INPUTS, partitions=3).create(*OUTPUTS)
    rows = shop_rows(2, 1_000)
    for start in range(0, len(rows), 100):
        app.write(rows[start : start + 100], **{"transactional.id": "writer"})
    app.run_natively()
    app.run(**{"spark.kstreams.max.records": 150})
    assert results(app) == results(app, "")


def test_the_rows_of_a_dataframe_are_in_kafka_once(spark: Any, tmp_path: Path, settings: dict[str, str]) -> None:
    frame = spark.createDataFrame(
        [(row.key, row.value, 1_000 * n + 1) for n, row in enumerate(LINES)], "k string, v string, at long"
    )
    builder = ks.StreamsBuilder()
    lines = builder.from_dataframe(frame, key="k", timestamp="at", name="rows").map_values(lambda row: row.v, value=str)
    words = lines.flat_map_values(str.split, value=str).group_by(lambda key, word: word, key=str)
    words.count().to_stream().to("counts")
    app = Application(spark, tmp_path, builder, {**WORD_TYPES, "rows-feed": (str, bytes)}, **settings)
    for _ in range(2):
        app.run()
    assert app.table("counts") == COUNTS
    assert len(app.rows("counts")) == sum(COUNTS.values())
    assert len(app.rows("rows-feed", prefix="app-")) == len(LINES)


@pytest.mark.parametrize("place", ["driver", "executors"])
def test_a_source_and_a_sink_are_connected_by_topics_in_kafka(
    spark: Any, tmp_path: Path, settings: dict[str, str], place: str
) -> None:
    for count in (1_000, 3_000):
        builder = ks.StreamsBuilder()
        builder.stream(Numbered(count, ["a"]), name="orders").to(Database(tmp_path / "copy.db"), name="copy")
        app = Application(None, tmp_path, builder, {}, **settings, **{"spark.kstreams.connectors": place})
        with ks.spark.start(builder, spark, app.settings, until_end=True) as run:
            assert run.await_termination(200)
        assert orders_in(tmp_path / "copy.db") == orders(count)


@pytest.fixture
def words(spark: Any, tmp_path: Path, settings: dict[str, str]) -> Application:
    later = [row._replace(timestamp=START + row.timestamp) for row in LINES]
    app = Application(spark, tmp_path, word_count(), WORD_TYPES, **{"spark.kstreams.max.records": 2}, **settings)
    return app.create("lines").write(later)


def dies_once(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, at: int, *, after: bool = False) -> None:
    """Let a call end the run, once: the one with this number, before it does anything or after it has."""
    call, calls = getattr(owner, name), [0]

    def dying(*given: Any, **named: Any) -> Any:
        calls[0] += 1
        if calls[0] == at and not after:
            raise RuntimeError("the driver dies")
        found = call(*given, **named)
        if calls[0] == at:
            raise RuntimeError("the driver dies")
        return found

    monkeypatch.setattr(owner, name, dying)


@pytest.mark.parametrize(
    ("owner", "name", "after"),
    [
        (StagedRows, "announce", False),
        (PositionCommits, "commit", False),
        (PositionCommits, "commit", True),
        (publication, "taken_reports", True),
        (StagedRows, "delete_published", True),
    ],
    ids=["unannounced", "undecided", "unpublished", "published", "tidied"],
)
def test_a_driver_that_dies_at_any_moment_of_a_step_goes_on(
    words: Application, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, after: bool
) -> None:
    dies_once(monkeypatch, owner, name, 2, after=after)
    with pytest.raises(KStreamsError, match="the driver dies"):
        words.run()
    words.run()
    assert words.table("counts") == COUNTS
    assert len(words.rows("counts")) == sum(COUNTS.values())


def test_a_driver_without_answer_to_its_commit_goes_on(words: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    commit, lost = KafkaProducer.commit_transaction, list[int]()

    def unanswered(producer: KafkaProducer, *given: Any) -> None:
        commit(producer, *given)
        if len(lost) < 2:
            lost.append(1)
            raise UncertainCommitError("no answer")

    monkeypatch.setattr(KafkaProducer, "commit_transaction", unanswered)
    words.run()
    assert len(lost) == 2
    assert words.table("counts") == COUNTS
    assert len(words.rows("counts")) == sum(COUNTS.values())


def test_a_newer_driver_ends_an_older_one(words: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    commit = PositionCommits.commit

    def overtaken(commits: PositionCommits, offsets: Any) -> None:
        with words.opened() as log:
            log.producer({"transactional.id": "app-spark"}).close()
        commit(commits, offsets)

    with monkeypatch.context() as disturbed:
        disturbed.setattr(PositionCommits, "commit", overtaken)
        with pytest.raises(FencedError):
            words.run()
    assert words.rows("counts") == []
    words.run()
    assert words.table("counts") == COUNTS


def test_after_a_reset_everything_is_processed_again(words: Application) -> None:
    config = Config.of(words.settings)
    words.run()
    assert [each.what for each in engine.reset(words.topology, config)] == ["checkpoint", "offsets", "offsets"]
    assert engine.reset(words.topology, config) == []
    words.run()
    assert len(words.rows("counts")) == 2 * sum(COUNTS.values())
    assert words.table("counts") == COUNTS


def stateless() -> ks.StreamsBuilder:
    builder = ks.StreamsBuilder()
    orders = builder.stream("orders", key=str, value=int).filter(ks.value > 100)
    orders.map_values(ks.value * 2, value=int).to("large", key=str)
    return builder


def windowed() -> ks.StreamsBuilder:
    builder = ks.StreamsBuilder()
    windows = (
        builder.stream("orders", key=str, value=int).group_by_key().windowed_by(ks.TimeWindows(size=1_000, grace=0))
    )
    final = windows.count().suppress(ks.Suppressed.until_window_closes()).to_stream()
    final.to("large")
    return builder


@pytest.mark.parametrize("build", [stateless, windowed])
def test_the_relational_path_reads_and_writes_kafka(
    spark: Any, tmp_path: Path, settings: dict[str, str], build: Callable[[], ks.StreamsBuilder]
) -> None:
    relational = {"spark.kstreams.path": "relational", "spark.kstreams.max.records": 60}
    types = {**TYPES, "large": (bytes, int)}
    app = Application(spark, tmp_path, build(), types, **relational, **settings).create("orders", partitions=2)
    assert {each.path for each in engine.explain(app.topology, Config.of(app.settings))} == {"relational"}
    app.write(Row("orders", f"k{at % 3}", at, START + at * 50) for at in range(200))
    app.run_natively()
    app.run()
    found = app.rows("large")
    assert found
    assert sorted(found) == sorted(app.rows("large", ""))


def test_queries_beside_each_other_keep_what_each_has_staged(
    spark: Any, tmp_path: Path, settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tasks are many steps ahead of the window, and tidy up after each of them."""
    monkeypatch.setattr(commits, "_CLEANUP_INTERVAL", 1)
    builder = windowed()
    builder.stream("payments", key=str, value=int).peek(lambda key, amount: None).to("paid")
    relational = {"spark.kstreams.path": "relational", "spark.kstreams.max.records": 20}
    types = TYPES | {"payments": TYPES["orders"], "paid": TYPES["orders"], "large": (bytes, int)}
    app = Application(spark, tmp_path, builder, types, **relational, **settings).create("orders", "payments")
    paths = {each.path for each in engine.explain(app.topology, Config.of(app.settings))}
    assert paths == {"relational", "task"}
    app.write(Row("orders", f"k{at % 3}", at, START + at * 50) for at in range(100))
    app.write(Row("payments", "k", at, START + at * 50) for at in range(600))
    app.run_natively()
    app.run()
    assert sorted(app.rows("large")) == sorted(app.rows("large", "")) != []
    assert app.rows("paid") == app.rows("paid", "") != []
