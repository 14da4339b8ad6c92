"""Queries take up partitions that are added while they run: nothing is lost, and nothing comes twice."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.errors import TopologyError
from kstreams.runtime.spark import engine
from tests.spark.running import Application, Row
from tests.support.kafka_topics import delete_everything

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

WAIT_S = 400.0
START = 3_600_000
TYPES = {"in": (str, int), "closed": (bytes, bytes), "changes": (bytes, bytes), "big": (str, int)}


def application(spark: Any, folder: Path, builder: ks.StreamsBuilder, **settings: Any) -> Application:
    often = {"spark.kstreams.path": "relational", "poll.ms": 100, "metadata.max.age.ms": 500}
    app = Application(spark, folder, builder, TYPES, **often, **settings).create("in", partitions=2)
    assert {row.path for row in engine.explain(app.topology, Config.of(app.settings))} == {"relational"}
    return app


def three_forms() -> ks.StreamsBuilder:
    """Final results, updates, and records without state: each is a query of its own."""
    builder = ks.StreamsBuilder()
    numbers = builder.stream("in", key=str, value=int)
    seconds = numbers.group_by_key().windowed_by(ks.TimeWindows(size=1_000, grace=500))
    seconds.emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE).count().to_stream().to("closed")
    seconds.count().to_stream().to("changes")
    numbers.filter(ks.value > 0).to("big")
    return builder


def rows(partition: int, start: int, count: int = 20) -> list[Row]:
    return [Row("in", f"key-{partition}", at, START + at * 300, partition) for at in range(start, start + count)]


def add_partition(app: Application) -> None:
    with app.opened() as log, log.admin() as admin:
        admin.add_partitions("in", 3)


def run_until(app: Application, *conditions: tuple[Callable[[], bool], Callable[[], object]]) -> None:
    """Run an application that reads on; do something after each condition, and stop after the last."""
    with ks.spark.start(app.topology, app.spark, app.settings) as run:
        for condition, then in conditions:
            deadline = time.monotonic() + WAIT_S
            while not condition():
                run.await_termination(0.2)
                assert time.monotonic() < deadline, "the rows did not come"
            then()


def keys(app: Application, topic: str) -> set[str]:
    is_there = f"spark-{topic}" in app.topics()
    found = [key for key, *_ in app.rows(topic)] if is_there else []
    return {key if isinstance(key, str) else key[:5].decode() for key in found}


def test_partitions_that_are_added_to_a_running_application_are_read(
    spark: Any, tmp_path: Path, home: dict[str, str]
) -> None:
    app = application(spark, tmp_path, three_forms(), **home)
    app.write([*rows(0, 1), *rows(1, 1)])

    def grow() -> None:
        """Write to the new partition alone: once the others have gone on without it, its records may be late."""
        add_partition(app)
        app.write(rows(2, 21))

    def go_on() -> None:
        app.write([*rows(2, 41), *rows(0, 21), *rows(1, 21)])

    def has_all(topic: str) -> bool:
        return keys(app, topic) >= {"key-0", "key-1", "key-2"}

    run_until(
        app,
        (lambda: all(keys(app, topic) == {"key-0", "key-1"} for topic in ("closed", "changes", "big")), grow),
        (lambda: has_all("changes") and has_all("big"), go_on),
        (lambda: has_all("closed"), lambda: None),
    )
    app.run()
    app.run_natively()
    assert Counter(app.rows("closed")) == Counter(app.rows("closed", ""))
    assert Counter(app.rows("big")) == Counter(app.rows("big", ""))
    assert app.table("changes") == app.table("changes", "")


class Pair(msgspec.Struct, frozen=True):
    one: int
    other: int


@pytest.mark.kafka
def test_a_query_that_joins_topics_says_that_it_cannot_take_up_partitions(
    spark: Any, kafka: Any, tmp_path: Path
) -> None:
    delete_everything(kafka.bootstrap_servers)
    builder = ks.StreamsBuilder()
    left, right = (builder.stream(topic, key=str, value=int) for topic in ("in", "more"))
    windows = ks.JoinWindows(before=100, after=100, grace=0)
    left.join(right, ks.struct(one=ks.left.value, other=ks.right.value), windows=windows, value=Pair).to("closed")
    app = application(spark, tmp_path, builder, **{"bootstrap.servers": kafka.bootstrap_servers})
    app.create("more", partitions=2).write(rows(0, 1))
    app.run(until_end=False)
    with app.opened() as log, log.admin() as admin:
        admin.add_partitions("in", 3)
        admin.add_partitions("more", 3)
    with pytest.raises(TopologyError, match=r"in-2, more-2 was added, and Spark cannot add a source between"):
        app.run(until_end=False)
