"""Results lie in Delta tables with typed columns, every step once."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from kstreams.record import Window, Windowed
from kstreams.runtime.spark.io.arrow_types import arrow_type, typed_column
from kstreams.serdes import TimeWindowedSerde, serde_of
from tests.spark.running import Application
from tests.spark.test_task_path import LINES, WORD_TYPES, word_count

pytestmark = pytest.mark.spark


class Delay(msgspec.Struct):
    origin: str
    minutes: int | None
    at: datetime
    tags: list[str]
    counts: dict[str, float]


def column(kind: Any, *values: Any) -> pa.Array:
    return serde_of(kind).encode_rows(list(values))


def test_a_struct_becomes_a_struct_column() -> None:
    delay = Delay("EWR", None, datetime(2013, 1, 1, 10, tzinfo=UTC), ["late"], {"x": 1.5})
    typed = typed_column(serde_of(Delay), column(Delay, delay, None))
    assert typed.to_pylist() == [
        {"origin": "EWR", "minutes": None, "at": delay.at, "tags": ["late"], "counts": [("x", 1.5)]},
        None,
    ]


def test_a_windowed_key_tells_its_window() -> None:
    serde = TimeWindowedSerde(serde_of(str), 10_000)
    typed = typed_column(serde, serde.encode_rows([Windowed("k", Window(5_000, 15_000))]))
    start, end = (datetime.fromtimestamp(seconds, UTC) for seconds in (5, 15))
    assert typed.to_pylist() == [{"key": "k", "window_start": start, "window_end": end}]


def test_what_has_no_arrow_type_stays_bytes() -> None:
    assert arrow_type(int | str) is None
    raw = column(int | str, "x")
    assert typed_column(serde_of(int | str), raw) is raw
    assert typed_column(None, raw) is raw


def test_a_step_that_is_written_again_counts_once(spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kstreams.runtime.spark.io.delta import DeltaSink

    apply = DeltaSink.apply

    def twice(self, step, rows):
        apply(self, step, rows)
        apply(self, step, rows)

    monkeypatch.setattr(DeltaSink, "apply", twice)
    app = Application(spark, tmp_path, word_count(), WORD_TYPES).create("lines").write(LINES)
    app.run(**{"spark.kstreams.delta": str(tmp_path / "delta")})
    assert spark.read.format("delta").load(str(tmp_path / "delta" / "counts")).count() == len(app.rows("counts"))
