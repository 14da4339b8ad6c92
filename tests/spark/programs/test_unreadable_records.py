"""Records that queries of PySpark cannot read: skipped, counted and written as dead letters as natively."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.errors import KStreamsError, SerdeError
from kstreams.runtime.spark import engine
from kstreams.runtime.spark.settings import needs_tasks
from tests.spark.running import Application, Row
from tests.support.kafka_topics import delete_everything

pytestmark = pytest.mark.spark

HOUR = 3_600_000


class Sale(msgspec.Struct):
    item: str
    amount: int


TYPES = {"sales": (bytes, bytes), "big": (bytes, bytes), "small": (bytes, bytes), "letters": (bytes, bytes)}
RELATIONAL = {"spark.kstreams.path": "relational", "spark.kstreams.max.records": 7}
SKIP = {"deserialization.exception.handler": "continue"}
LETTERS = {**SKIP, "errors.dead.letter.queue.topic.name": "letters"}
GOOD = [
    Row("sales", b"user-%d" % (n % 3), b'{"item":"tea","amount":%d}' % n, n * 1_000, n % 3 % 2) for n in range(1, 31)
]
WRONG = [
    Row("sales", b"user-1", b'{"item":"tea"}', HOUR, 0),
    Row("sales", b"\xff", b'{"item":"tea","amount":1}', HOUR, 1),
    Row("sales", None, b'{"item":"tea","amount":1} x', HOUR, 1),
    Row("sales", b"user-2", b"\xff", HOUR, 0),
]


def branches() -> ks.StreamsBuilder:
    """Two topics, each of which has a query."""
    builder = ks.StreamsBuilder()
    sales = builder.stream("sales", key=str, value=Sale)
    sales.filter(ks.col("amount") > 10).to("big")
    sales.filter(ks.col("amount") < 5).map_values(ks.col("item"), value=str).to("small")
    return builder


def minutes() -> ks.StreamsBuilder:
    """Counts of minutes, which do not read the values."""
    builder = ks.StreamsBuilder()
    by_user = builder.stream("sales", key=str, value=Sale).group_by_key()
    closed = (
        by_user.windowed_by(ks.TimeWindows(size=10_000, grace=0)).count().suppress(ks.Suppressed.until_window_closes())
    )
    closed.to_stream().to("big")
    return builder


def application(spark: Any, folder: Path, builder: ks.StreamsBuilder, **settings: Any) -> Application:
    app = Application(spark, folder, builder, TYPES, **RELATIONAL, **settings)
    app.create(*TYPES, "spark-letters")
    paths = {row.path for row in engine.explain(app.topology, Config.of(app.settings))}
    assert paths == {"relational"}
    return app


def letters(app: Application, prefix: str) -> list[list[Any]]:
    """The dead letters of each partition, without the traces."""
    return [
        sorted(([*row, [pair for pair in headers if "stacktrace" not in pair[0]]] for *row, headers in rows), key=repr)
        for rows in app.partitions("letters", prefix, headers=True)
    ]


def test_dead_letters_are_those_of_the_native_engine_once(spark: Any, tmp_path: Path) -> None:
    app = application(spark, tmp_path, branches(), **LETTERS)
    app.write(GOOD[:10]).write(WRONG[:2]).run(until_end=False)
    app.write(WRONG[2:]).write(GOOD[10:])
    progress = app.run(until_end=False)
    app.run_natively()
    for topic in ("big", "small"):
        assert Counter(app.rows(topic)) == Counter(app.rows(topic, "")), topic
    assert letters(app, "spark-") == letters(app, "")
    assert sum(map(len, letters(app, "spark-"))) == len(WRONG)
    assert progress.dropped == {("KSTREAM-SOURCE-0000000000", "failed with SerdeError"): 2}


@pytest.mark.slow
def test_skipped_records_are_counted_once_and_close_no_windows(spark: Any, tmp_path: Path) -> None:
    for name, builder in (("branches", branches()), ("minutes", minutes())):
        app = application(spark, tmp_path / name, builder, **SKIP)
        app.write(GOOD[:10]).write(WRONG).write(GOOD[10:])
        progress = app.run()
        natively = app.run_natively()
        assert Counter(app.rows("big")) == Counter(app.rows("big", "")), name
        assert app.rows("big")
        assert dict(progress.dropped) == dict(natively.dropped), name
        assert sum(progress.dropped.values()) == len(WRONG)


@pytest.mark.slow
@pytest.mark.parametrize("wrong", WRONG, ids=["field", "key", "text behind", "bytes"])
def test_without_a_handler_a_record_ends_the_run_with_the_native_message(
    spark: Any, tmp_path: Path, wrong: Row
) -> None:
    app = application(spark, tmp_path, branches())
    app.write(GOOD[:10]).write([wrong])
    offset = sum(row.partition == wrong.partition for row in GOOD[:10])
    messages = []
    for run in (app.run, app.run_natively):
        with pytest.raises(SerdeError, match=f"sales-{wrong.partition}@{offset}") as ended:
            run()
        messages.append(str(ended.value))
    assert messages[0] == messages[1]


@pytest.mark.slow
def test_a_record_that_only_spark_cannot_read_is_named_as_such(spark: Any, tmp_path: Path) -> None:
    app = application(spark, tmp_path, branches())
    app.write([Row("sales", b"a", b'{"item":"tea","amount":%d}' % 2**64, 1, 0)])
    with pytest.raises(KStreamsError, match=r"Spark cannot read sales-0@0, which tasks read: an integer of more"):
        app.run()


@pytest.mark.slow
def test_a_joined_table_is_left_to_tasks_where_records_are_skipped(tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    names = builder.table("names", key=str, value=str)
    builder.stream("sales", key=str, value=Sale).join(names, ks.right.value, value=str).to("big")
    config = Config.of({"application.id": "app", **RELATIONAL, **SKIP})
    assert any("only tasks keep that row" in row.why for row in engine.explain(builder.build(config), config))


def test_what_a_query_cannot_do_about_errors_is_left_to_tasks() -> None:
    topic = {"errors.dead.letter.queue.topic.name": "letters"}
    for settings, reason in [
        (SKIP, None),
        (LETTERS, None),
        (topic, None),
        (topic | {"processing.guarantee": "at_least_once"}, "errors.dead.letter.queue.topic.name"),
        (LETTERS | {"errors.dead.letter.queue.dropped.records": True}, "errors.dead.letter.queue.dropped.records"),
        ({"deserialization.exception.handler": print}, "deserialization.exception.handler"),
    ]:
        assert needs_tasks(Config.of({"application.id": "app", **settings})) == reason


@pytest.mark.slow
@pytest.mark.kafka
@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
def test_dead_letters_over_kafka_are_those_of_the_native_engine(
    spark: Any, kafka: Any, tmp_path: Path, guarantee: str
) -> None:
    delete_everything(kafka.bootstrap_servers)
    settings = {"bootstrap.servers": kafka.bootstrap_servers, "processing.guarantee": guarantee}
    settings |= {"errors.dead.letter.queue.connect.headers": True}
    app = application(spark, tmp_path, branches(), **LETTERS, **settings)
    app.write(GOOD[:10]).write(WRONG).write(GOOD[10:]).run()
    app.run_natively()
    assert Counter(app.rows("big")) == Counter(app.rows("big", ""))
    assert letters(app, "spark-") == letters(app, "")
    assert sum(map(len, letters(app, "spark-"))) == len(WRONG)
