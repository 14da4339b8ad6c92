"""Tasks on Spark run nothing while no records come, so idle input is noticed with the next step; a warning says so.

What merely waits for a later step is not idle.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.processor.topology.layout import lay_out
from kstreams.runtime.spark.program import program_of
from kstreams.runtime.spark.runner import warn_of_idle_sources
from kstreams.runtime.spark.settings import SparkSettings
from kstreams.runtime.spark.tasks.state_cache import STATE_CACHE
from tests.spark.stepped import Row, Stepped

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("idle", [30, None])
def test_idle_sources_are_named_in_a_warning(
    idle: int | None, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str, idle=idle).to("out")
    topology, config = builder.build(), Config.of({"application.id": "app"})
    layout = lay_out(topology, "app", {"in": 1})
    program = program_of(topology, config, SparkSettings.of(config), layout, {"in": 1}, str(tmp_path))
    with caplog.at_level(logging.WARNING):
        warn_of_idle_sources(program.idle_sources_of([0]))
    said = "KSTREAM-SOURCE-0000000000: in tasks on Spark, idle input closes windows only when the next record"
    assert (said in caplog.text) == (idle is not None)


TYPES = {"in": (str, int), "more": (str, int), "out": (str, int)}
MINUTE = ks.TimeWindows(size=10, grace=0)


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    STATE_CACHE.clear()
    yield
    STATE_CACHE.clear()


def counts(stream: ks.KStream) -> None:
    windows = stream.windowed_by(MINUTE).count().suppress(ks.Suppressed.until_window_closes())
    windows.to_stream(lambda key, count: key.key, key=str).to("out", value=int)


def test_what_waits_for_a_later_step_is_not_idle(tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    counts(builder.stream("in", key=str, value=int, idle=50).group_by_key())
    app = Stepped(builder, TYPES, ["in"], tmp_path)
    assert app.step([Row("in", "a", 1, 1)], now_ms=1_000) == []
    assert app.step([], now_ms=1_050, behind=["in"]) == []
    assert app.step([], now_ms=1_099) == []
    assert app.step([], now_ms=1_100) == [("out", "a", 1, 1)]


def test_a_repartition_topic_is_not_idle_while_what_feeds_it_waits(tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    counts(builder.stream("in", key=str, value=int, idle=50).group_by(lambda key, value: key, key=str))
    app = Stepped(builder, TYPES, ["in"], tmp_path)
    assert app.step([Row("in", "a", 1, 1)], now_ms=1_000) == []
    assert app.step([], now_ms=1_050, behind=["in"]) == []
    assert app.step([], now_ms=1_100) == [("out", "a", 1, 1)]
