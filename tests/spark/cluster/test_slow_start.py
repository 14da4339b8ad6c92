"""A machine that is so busy that Spark gives up waiting for a Python process: the query begins again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from tests.spark.running import Application, Row

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SLOW_ONCE = """#!/bin/sh
case "$*" in *streaming_source*) if mkdir {flag} 2>/dev/null; then sleep 12; fi ;; esac
exec {python} "$@"
"""


def test_a_python_process_that_starts_too_slowly_ends_no_application(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    python, flag = tmp_path / "python", tmp_path / "was-slow"
    python.write_text(SLOW_ONCE.format(flag=flag, python=sys.executable))
    python.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python))
    builder = ks.StreamsBuilder()
    windows = builder.stream("in", key=str, value=int).group_by_key().windowed_by(ks.TimeWindows(size=10, grace=0))
    final = windows.emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE).count()
    final.to_stream().to("out")
    types = {"in": (str, int), "out": (bytes, int)}
    application = Application(spark, tmp_path, builder, types, **{"spark.kstreams.path": "relational"})
    application.create("in", "out").write([Row("in", "a", 1, 1)]).run()
    assert flag.exists()
    assert [(key[:1], count) for key, count, _ in application.rows("out")] == [(b"a", 1)]
    assert "the query is started again" in caplog.text
