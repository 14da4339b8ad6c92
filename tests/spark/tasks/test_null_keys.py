"""Records without a key: both engines drop or keep the same ones, and put them into the same partitions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from tests.spark.running import Application, Row

pytestmark = pytest.mark.spark

WORDS = ["ant", "-", "bee", "-", "cat", "-", "ant", "-", "-"]
ROWS = [Row("in", None, word, time, partition=time % 3) for time, word in enumerate(WORDS)]
TYPES = {"in": (str, str), "names": (str, str), "out": (str, str)}


def words(builder: ks.StreamsBuilder) -> ks.KStream[str, str]:
    """Words under themselves; a dash has no key."""
    stream = builder.stream("in", key=str, value=str)
    return stream.select_key(lambda key, word: None if word == "-" else word, key=str)


def written(builder: ks.StreamsBuilder) -> None:
    builder.stream("in", key=str, value=str).to("out")


def repartitioned(builder: ks.StreamsBuilder) -> None:
    words(builder).repartition().to("out")


def looked_up(builder: ks.StreamsBuilder) -> None:
    names = builder.table("names", key=str, value=str)
    words(builder).left_join(names, lambda word, name: f"{word} {name}", value=str).to("out")


def looked_up_behind_a_repartition(builder: ks.StreamsBuilder) -> None:
    names = builder.table("names", key=str, value=str)
    words(builder).repartition().left_join(names, lambda word, name: f"{word} {name}", value=str).to("out")


def grouped(builder: ks.StreamsBuilder) -> None:
    counts = words(builder).group_by_key().count()
    counts.to_stream().map_values(str, value=str).to("out")


BUILDS = [written, repartitioned, looked_up, looked_up_behind_a_repartition, grouped]


@pytest.mark.parametrize("build", BUILDS, ids=[build.__name__ for build in BUILDS])
def test_all_paths_keep_the_same_and_put_it_in_the_same_place(
    spark: Any, tmp_path: Path, build: Callable[[ks.StreamsBuilder], None]
) -> None:
    builder = ks.StreamsBuilder()
    build(builder)
    app = Application(spark, tmp_path, builder, TYPES).create("in", "names", "out", partitions=3)
    for prefix in ("task-", "auto-"):
        app.create(f"{prefix}out", partitions=3)
    app.write(ROWS).run_natively()
    found = {"native": app.partitions("out", prefix="")}
    for path in ("task", "auto"):
        of_path = {"spark.kstreams.path": path, "spark.kstreams.prefix": f"{path}-"}
        app.run(**of_path, **{"spark.kstreams.checkpoint": str(tmp_path / path)})
        found[path] = app.partitions("out", prefix=f"{path}-")
    assert found == dict.fromkeys(found, found["native"])
    dashes = sum(row[1].startswith("-") for rows in found["native"] for row in rows)
    assert dashes == (0 if build in (repartitioned, grouped) else WORDS.count("-"))
