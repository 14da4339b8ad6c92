"""Exception handlers and dead letters on Spark: tasks follow them, and say the same as the native engine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.errors import KStreamsError, ProcessingError, UnknownTopicError
from kstreams.log import open_log
from kstreams.runtime.spark.relational.path_plan import plan_of
from kstreams.runtime.spark.settings import AUTO, needs_tasks
from tests.spark.running import Application, Row

TYPES = {"in": (str, bytes), "out": (str, int), "letters": (bytes, bytes)}
CONTINUE = {f"{kind}.exception.handler": "continue" for kind in ("deserialization", "processing", "production")}
LETTERS = {"errors.dead.letter.queue.topic.name": "letters", "errors.dead.letter.queue.dropped.records": True}
ROWS = [
    Row("in", "a", b"1", 1),
    Row("in", "a", b"x", 2),
    Row("in", "a", b"\xff", 3),
    Row("in", None, b"4", 4),
    Row("in", "a", b"5", 50),
    Row("in", "a", b"6", 6),
]


def counts() -> ks.StreamsBuilder:
    builder = ks.StreamsBuilder()
    numbers = builder.stream("in", key=str, value=str).map_values(int, value=int)
    counts = numbers.group_by_key().windowed_by(ks.TimeWindows(size=10, grace=0)).count()
    counts.to_stream(lambda window, _: window.key, key=str).to("out", value=int)
    return builder


def mapped() -> ks.StreamsBuilder:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).map_values(int, value=int).to("out")
    return builder


def told(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Value, and the headers that say where and why."""
    found = []
    for _, value, _, headers in rows:
        named = {name.removeprefix("__streams.errors."): text for name, text in headers}
        found.append((value, named["offset"], named["operator"], named["reason"], named.get("exception")))
    return sorted(found)


@pytest.mark.spark
def test_tasks_on_spark_leave_out_what_the_native_engine_leaves_out(spark: Any, tmp_path: Path) -> None:
    app = Application(spark, tmp_path, counts(), TYPES, **CONTINUE, **LETTERS)
    app.create("in", "letters", "spark-letters", partitions=1).write(ROWS)
    progress = app.run(**{"spark.kstreams.max.records": 2})
    app.run_natively()
    assert app.rows("out") == app.rows("out", prefix="")
    on_spark, natively = (told(app.rows("letters", prefix=prefix, headers=True)) for prefix in ("spark-", ""))
    assert [value for value, *_ in on_spark] == [b"4", b"6", b"x", b"\xff"]
    assert on_spark == natively
    assert sorted(reason for _, reason in progress.dropped) == [
        "failed with SerdeError",
        "failed with ValueError",
        "late: its window is closed",
        "null key",
    ]


@pytest.mark.spark
def test_a_function_of_the_users_is_asked_on_the_workers(spark: Any, tmp_path: Path) -> None:
    def handler(context: ks.ErrorHandlerContext, record: Any, error: Exception) -> ks.Response:
        if context.offset == 1:
            return ks.Response.resume([ks.ProducerRecord("letters", None, record.value.encode(), 7)])
        return ks.Response.fail()

    app = Application(spark, tmp_path, mapped(), TYPES, **{"processing.exception.handler": handler})
    app.create("in", partitions=1).write(ROWS[:2])
    app.run()
    assert [row[1] for row in app.rows("out")] == [1]
    assert [row[1] for row in app.rows("letters")] == [b"x"]
    app.write([Row("in", "a", b"y", 9)])
    with pytest.raises(ProcessingError, match="in-0@2"):
        app.run()


@pytest.mark.spark
def test_the_dead_letter_topic_must_be_there(spark: Any, tmp_path: Path) -> None:
    app = Application(spark, tmp_path, mapped(), TYPES, **LETTERS).create("in", partitions=1)
    with pytest.raises(UnknownTopicError, match=r"'spark-letters'.*errors\.dead\.letter\.queue\.topic\.name"):
        app.run()


def test_explain_says_that_handlers_need_tasks() -> None:
    config = Config.of({"application.id": "app", "processing.exception.handler": "continue"})
    (decision, *_) = plan_of(mapped().build(), AUTO, needs_tasks(config)).decisions
    assert decision.path == "task"
    assert decision.why == "processing.exception.handler is set: only tasks can follow it"
    assert needs_tasks(Config.of({"application.id": "app"})) is None


@pytest.mark.spark
def test_an_error_while_a_global_table_is_read_ends_the_run_as_natively(spark: Any, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    rates = builder.global_table("rates", key=str, value=int)
    named = builder.stream("in", key=str, value=str).left_join(rates, rate_of, key_selector=lambda key, _: key)
    named.to("out")
    app = Application(spark, tmp_path, builder, {"in": (str, bytes), "rates": (str, bytes), "out": (str, int)})
    app.create("in", "rates", partitions=1).write([Row("rates", "a", b"no integer", 1), Row("in", "a", b"x", 2)])
    messages = []
    for run in (app.run, app.run_natively):
        with pytest.raises(KStreamsError) as caught:
            run()
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def rate_of(value: str, rate: int | None) -> int:
    return rate or 0


@pytest.mark.spark
def test_a_record_that_its_topic_refuses_is_left_out_as_natively(spark: Any, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).map_values(lambda text: text * 1_000, value=str).to("out")
    settings = {"production.exception.handler": "continue"}
    app = Application(spark, tmp_path, builder, {"in": (str, str), "out": (str, str)}, **settings)
    app.create("in", partitions=1).write([Row("in", "a", text, at) for at, text in enumerate(["x", "xx", "y"])])
    with open_log(tmp_path / "log") as log, log.admin() as admin:
        for topic in ("out", "spark-out"):
            admin.create_topic(topic, config={"max.message.bytes": "1500"})
    on_spark, natively = app.run(), app.run_natively()
    assert app.rows("out") == app.rows("out", prefix="") == [("a", "x" * 1_000, 0), ("a", "y" * 1_000, 2)]
    assert on_spark.records_out == natively.records_out == {"out": 2}
    assert sum(on_spark.dropped.values()) == sum(natively.dropped.values()) == 1
