"""What Spark drops as late is counted, and what still waits at the end of a run is told."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from tests.spark.running import Application, Row

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TYPES = {"in": (str, int), "out": (bytes, bytes)}


def closed_seconds() -> ks.StreamsBuilder:
    builder = ks.StreamsBuilder()
    windows = builder.stream("in", key=str, value=int).group_by_key().windowed_by(ks.TimeWindows(size=1_000, grace=0))
    windows.emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE).count().to_stream().to("out")
    return builder


def rows(*times_ms: int) -> list[Row]:
    return [Row("in", f"key-{partition}", 1, time_ms, partition) for time_ms in times_ms for partition in range(2)]


def test_late_rows_are_counted_as_natively_and_open_windows_are_told(
    spark: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = Application(spark, tmp_path, closed_seconds(), TYPES, **{"spark.kstreams.path": "relational"})
    app.create("in").write(rows(1_500, 2_500, 9_500))
    with caplog.at_level(logging.INFO):
        app.run(until_end=False)
    assert "KSTREAM-AGGREGATE-0000000002: 2 windows or rows are still open" in caplog.text
    app.write(rows(3_500, 9_600))
    with caplog.at_level(logging.WARNING):
        progress = app.run(until_end=False)
    native = app.run_natively(until_end=False)
    late = {operator: count for (operator, reason), count in progress.dropped.items() if reason.startswith("late")}
    assert late == {"KSTREAM-AGGREGATE-0000000002": 2}
    assert native.dropped.total() == 2
    assert "late: the watermark of Spark has passed it" in caplog.text
    assert sorted(app.rows("out")) == sorted(app.rows("out", ""))
