"""However many rows a step writes and however large its tables are, the driver gets reports alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from tests.spark.running import Application, Row

pytestmark = pytest.mark.spark

COUNT = 6_000
ROWS = [Row("in", f"k{i}", f"{i}".rjust(300), i) for i in range(COUNT)]
NAMES = [Row("names", f"k{i}", f"{i}".ljust(300), i) for i in range(COUNT)]
TYPES = {"in": (str, str), "names": (str, str), "out": (str, str), "more": (str, str)}


@pytest.fixture
def narrow(spark: Any) -> Iterator[Any]:
    """A session whose driver takes at most 1 MB of results per job; what a test here puts out is more."""
    conf = spark.sparkContext._jsc.sc().conf()
    conf.set("spark.driver.maxResultSize", "1m")
    yield spark
    conf.remove("spark.driver.maxResultSize")


def copied(builder: ks.StreamsBuilder) -> None:
    builder.stream("in", key=str, value=str).map_values(lambda text: text, value=str).to("out")


def doubled(builder: ks.StreamsBuilder) -> None:
    builder.stream("in", key=str, value=str).map_values(ks.value + ks.value, value=str).to("out")


def named(builder: ks.StreamsBuilder) -> None:
    names = builder.global_table("names", key=str, value=str)
    stream = builder.stream("in", key=str, value=str)
    stream.join(names, lambda text, name: text + name, key_selector=lambda key, text: key, value=str).to("out")


@pytest.mark.parametrize("delta", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["topics", "delta"])
@pytest.mark.parametrize(
    ("build", "path"),
    [(copied, "task"), (doubled, "relational"), (named, "task")],
)
def test_rows_do_not_pass_through_the_driver(narrow: Any, tmp_path: Path, build: Any, path: str, delta: bool) -> None:
    builder = ks.StreamsBuilder()
    build(builder)
    folder = str(tmp_path / "delta")
    settings = {"spark.kstreams.path": path, "spark.kstreams.delta": folder if delta else "none"}
    app = Application(narrow, tmp_path, builder, TYPES, **settings).create("in", "names").write(ROWS).write(NAMES)
    progress = app.run()
    assert progress.records_out == {"out": COUNT}
    assert len(app.rows("out")) == COUNT
    assert sum(len(key) + len(value) for key, value, _ in app.rows("out")) > 1 << 20
    if delta:
        assert narrow.read.format("delta").load(f"{folder}/out").count() == COUNT


def test_what_is_dropped_comes_as_a_count(narrow: Any, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    stream = builder.stream("in", key=str, value=str).select_key(lambda key, text: None, key=str)
    stream.group_by_key().count().to_stream().map_values(str, value=str).to("out")
    rows = [Row("in", "k", "v", i) for i in range(40_000)]
    progress = Application(narrow, tmp_path, builder, TYPES).create("in").write(rows).run()
    assert sum(progress.dropped.values()) == len(rows)
