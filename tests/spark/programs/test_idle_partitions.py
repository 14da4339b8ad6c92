"""A partition without records holds the windows of a query open only until it is idle, as its source declares."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.runtime.native.streams import KafkaStreams
from kstreams.runtime.spark import engine
from tests.spark.running import Application, Row

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600)]

WAIT_S = 90.0
HOUR = 3_600_000
IDLE = timedelta(seconds=1)
TYPES = {"in": (str, int), "more": (str, int), "out": (bytes, bytes)}


def application(spark: Any, folder: Path, builder: ks.StreamsBuilder, **settings: Any) -> Application:
    relational = {"spark.kstreams.path": "relational", "poll.ms": 100}
    return Application(spark, folder, builder, TYPES, **relational, **settings).create("in", "more", partitions=3)


def closed_seconds(idle: timedelta | None) -> ks.StreamsBuilder:
    builder = ks.StreamsBuilder()
    windows = builder.stream("in", key=str, value=int, idle=idle).filter(ks.value > 0).group_by_key()
    closed = windows.windowed_by(ks.TimeWindows(size=1_000, grace=500)).emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE)
    closed.count().to_stream().to("out")
    return builder


def rows(partition: int, start_ms: int, count: int = 10) -> list[Row]:
    return [Row("in", f"key-{partition}", 1, start_ms + at * 300, partition) for at in range(count)]


def on_spark(app: Application, until: Callable[[], bool]) -> None:
    """Run an application that reads on, until a condition holds."""
    assert {row.path for row in engine.explain(app.topology, Config.of(app.settings))} == {"relational"}
    with ks.spark.start(app.topology, app.spark, app.settings) as run:
        _wait(until, lambda: run.await_termination(0.2))


def natively(app: Application, until: Callable[[], bool]) -> None:
    with KafkaStreams(app.topology, {**app.settings, "state.dir": str(app.folder / "state")}) as streams:
        streams.start()
        _wait(until, lambda: streams.wait(0.2))


def _wait(until: Callable[[], bool], pause: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not until():
        pause()
        assert time.monotonic() < deadline, "the rows did not come"


def results(app: Application, prefix: str = "spark-") -> list[Any]:
    return sorted(app.rows("out", prefix)) if f"{prefix}out" in app.topics() else []


def test_windows_close_as_natively_though_a_partition_is_empty(
    spark: Any, tmp_path: Path, home: dict[str, str]
) -> None:
    app = application(spark, tmp_path, closed_seconds(IDLE), **home)
    app.write([*rows(0, HOUR), *rows(1, HOUR + 400)])
    natively(app, lambda: len(results(app, "")) == 7)
    on_spark(app, lambda: len(results(app)) == 7)
    assert results(app) == results(app, "")


def test_a_partition_that_ended_an_hour_before_the_others_holds_no_window_open(spark: Any, tmp_path: Path) -> None:
    app = application(spark, tmp_path, closed_seconds(IDLE))
    app.write([*rows(0, 2 * HOUR), *rows(1, HOUR), *rows(2, 2 * HOUR)])
    last_ms = 2 * HOUR + 3_000

    def closes_while_records_come() -> bool:
        nonlocal last_ms
        last_ms += 100
        app.write(Row("in", f"key-{partition}", 1, last_ms, partition) for partition in (0, 2))
        return {row[0][:5] for row in results(app)} == {b"key-0", b"key-1", b"key-2"}

    on_spark(app, closes_while_records_come)


def test_a_partition_that_is_never_idle_holds_windows_open(spark: Any, tmp_path: Path) -> None:
    app = application(spark, tmp_path, closed_seconds(None))
    app.write([*rows(0, HOUR), *rows(1, HOUR + 400)])
    started = time.monotonic()
    on_spark(app, lambda: time.monotonic() > started + 10)
    assert results(app) == []


def test_windows_that_were_open_at_a_stop_close_after_the_idle_time(spark: Any, tmp_path: Path) -> None:
    app = application(spark, tmp_path, closed_seconds(IDLE))
    app.write([*rows(0, HOUR), *rows(1, HOUR + 400)])
    app.run(until_end=False)
    assert results(app) == []
    on_spark(app, lambda: len(results(app)) == 7)
    natively(app, lambda: len(results(app, "")) == 7)
    assert results(app) == results(app, "")


class Pair(msgspec.Struct, frozen=True):
    one: int
    other: int | None


def test_records_without_a_match_come_out_though_a_topic_of_the_join_is_idle(spark: Any, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    left, right = (builder.stream(topic, key=str, value=int, idle=IDLE) for topic in ("in", "more"))
    windows = ks.JoinWindows(before=500, after=500, grace=0)
    pair = ks.struct(one=ks.left.value, other=ks.right.value)
    left.left_join(right, pair, windows=windows, value=Pair).to("out")
    app = application(spark, tmp_path, builder)
    app.write(rows(0, HOUR))
    on_spark(app, lambda: len(results(app)) == 10)
    natively(app, lambda: len(results(app, "")) == 10)
    assert results(app) == results(app, "")
