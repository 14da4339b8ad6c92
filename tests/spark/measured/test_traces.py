"""Traces on Spark: tasks carry them on, also where nobody gave the processes of the workers a tracer provider."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from tests.spark.running import Application, Row
from tests.spark.word_count import WORD_TYPES

pytestmark = pytest.mark.spark

TRACE = "0af7651916cd43dd8448eb211c80319c"


def test_tasks_carry_traces_on(spark: Any, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    words = builder.stream("lines", key=str, value=str).group_by(lambda _, word: word, key=str)
    words.count("counts-store").to_stream().to("counts")
    app = Application(spark, tmp_path, builder, WORD_TYPES, **{"trace.records": "sampled"}).create("lines", "counts")
    headers = [("traceparent", f"00-{TRACE}-b7ad6b7169203331-01".encode())]
    app.write([Row("lines", "a", "traced", 5, headers=headers), Row("lines", "a", "not", 6)]).run()
    found = {key: dict(named) for key, _, _, named in app.rows("counts", headers=True)}
    assert found["traced"]["traceparent"].split("-")[1] == TRACE
    assert found["not"] == {}
