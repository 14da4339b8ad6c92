"""`max.timestamp.ahead` on Spark: a record from the future is dropped, whatever its operators could run as."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.runtime.spark import engine
from tests.spark.running import Application, Row

pytestmark = pytest.mark.spark


def test_a_record_from_the_future_closes_no_window(spark, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    grouped = builder.stream("in", key=str, value=str).group_by_key()
    counts = grouped.windowed_by(ks.TimeWindows(size=1_000, grace=0)).count()
    counts.to_stream(lambda key, _: key.key, key=str).to("out", value=int)
    types = {"in": (str, str), "out": (str, int)}
    rows = [Row("in", "k", "x", time) for time in (1, 2**60, 2, 3)]
    ahead = {"max.timestamp.ahead": 60_000}
    application = Application(spark, tmp_path, builder, types, **ahead).create("in").write(rows)
    told: list[Any] = []
    engine.run(application.topology, Config.of(application.settings), once=True, on_progress=told.append)
    assert application.table("out") == {"k": 3}
    assert Counter(told[-1].dropped) == {("KSTREAM-SOURCE-0000000000", "timestamp too far ahead of the clock"): 1}
