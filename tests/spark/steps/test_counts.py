"""Both engines count alike: what came in and went out of the user's topics, and what was dropped on the way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.log import open_log
from tests.spark.running import Application, Row

pytestmark = pytest.mark.spark

TYPES = {"in": (str, str), "out": (str, int)}
ROWS = [
    Row("in", "a", "the cat", 1_000),
    Row("in", None, "nobody", 2_000),
    Row("in", "b", "the dog", 61_000),
    Row("in", "a", "a cat", 62_000),
    Row("in", "c", "too late", 3_000),
]


def lines(builder: ks.StreamsBuilder) -> Any:
    return builder.stream("in", key=str, value=str)


def copied(builder: ks.StreamsBuilder) -> None:
    lines(builder).map_values(len, value=int).to("out")


def counted(builder: ks.StreamsBuilder) -> None:
    """One sub-topology writes a repartition topic and drops what it has no key for, another one reads it."""
    words = lines(builder).flat_map_values(str.split, value=str)
    words.group_by(lambda key, word: None if word == "nobody" else word, key=str).count().to_stream().to("out")


def windowed_by_expressions(builder: ks.StreamsBuilder) -> None:
    counts = lines(builder).group_by_key().windowed_by(ks.TimeWindows(size=60_000, grace=0)).count()
    counts.suppress(ks.Suppressed.until_window_closes()).to_stream().to("out")


def windowed(builder: ks.StreamsBuilder) -> None:
    minutes = ks.TimeWindows(size=60_000, grace=0)
    counts = lines(builder).group_by_key().windowed_by(minutes).count()
    final = counts.suppress(ks.Suppressed.until_window_closes())
    final.to_stream(lambda window, count: window.key, key=str).to("out")


def application(spark: Any, folder: Path, build: Callable[[ks.StreamsBuilder], None], **settings: Any) -> Application:
    builder = ks.StreamsBuilder()
    build(builder)
    app = Application(spark, folder, builder, TYPES, **settings).create("in", partitions=1)
    app.write(ROWS[:2])
    with open_log(folder / "log") as log, log.producer({"transactional.id": "writer"}) as producer:
        producer.begin_transaction()
        producer.send("in", b"a", b"never seen, but it takes an offset", timestamp=1)
        producer.flush()
        producer.abort_transaction()
    return app.write(ROWS[2:])


def through(builder: ks.StreamsBuilder) -> None:
    lines(builder).flat_map_values(str.split, value=str).to("words")
    builder.stream("words", key=str, value=str).map_values(len, value=int).to("out")


@pytest.mark.parametrize("path", ["auto", "task"])
@pytest.mark.parametrize("build", [copied, counted, windowed])
def test_both_engines_count_alike(spark: Any, tmp_path: Path, build: Any, path: str) -> None:
    app = application(spark, tmp_path, build, **{"spark.kstreams.path": path})
    on_spark, natively = app.run(), app.run_natively()
    assert natively.records_in == len(ROWS)
    assert on_spark.records_in == natively.records_in
    assert on_spark.records_out == natively.records_out
    assert on_spark.dropped == natively.dropped


def test_a_query_of_sparks_own_counts_the_offsets_that_it_reads(spark: Any, tmp_path: Path) -> None:
    app = application(spark, tmp_path, windowed_by_expressions, **{"spark.kstreams.path": "relational"})
    app.types = {**TYPES, "out": (bytes, int)}
    progress = app.run()
    assert progress.records_in > len(ROWS)
    assert progress.records_out == {"out": len(app.rows("out"))}


@pytest.mark.parametrize("path", ["auto", "task"])
def test_a_topic_that_is_written_and_read_counts_on_both_sides(spark: Any, tmp_path: Path, path: str) -> None:
    app = application(spark, tmp_path, through, **{"spark.kstreams.path": path}).create("words", partitions=1)
    progress = app.run()
    assert progress.records_out == {"words": 9, "out": 9}
    assert progress.records_in == len(ROWS) + 9
