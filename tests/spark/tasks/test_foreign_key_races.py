"""A step hands over all left rows before any answer: no result of a foreign-key join stays behind for that."""

from __future__ import annotations

from pathlib import Path

import pytest

import kstreams as ks
from tests.spark.running import Row
from tests.spark.stepped import Output, Stepped

pytestmark = pytest.mark.spark

TYPES = {topic: (str, str) for topic in ("left", "right", "out")}


@pytest.mark.parametrize("cache_bytes", [0, 1_000], ids=["uncached", "cached"])
def test_a_row_that_is_deleted_and_set_to_a_key_without_a_row_loses_its_result(
    tmp_path: Path, cache_bytes: int
) -> None:
    builder = ks.StreamsBuilder()
    left, right = (builder.table(topic, key=str, value=str) for topic in ("left", "right"))
    joined = left.join(right, lambda a, b: f"{a}+{b}", foreign_key=lambda value: value[0], value=str)
    joined.to_stream().to("out")
    app = Stepped(builder, TYPES, ["left", "right"], tmp_path, **{"statestore.cache.max.bytes": cache_bytes})
    rows = [Row("left", key, f"y-{key}", time) for time, key in enumerate("abc")]
    out = app.step([Row("right", "y", "1", 0), *rows])
    assert table_of(out) == {"a": "y-a+1", "b": "y-b+1", "c": "y-c+1"}
    changes = [("a", None), ("a", "z-1"), ("b", "z-1"), ("c", "z-1"), ("c", "z-2")]
    out += app.step([Row("left", key, value, 3) for key, value in changes])
    assert table_of(out) == {}


def table_of(out: list[Output]) -> dict[str, str]:
    last = {key: value for _, key, value, _ in out}
    return {key: value for key, value in last.items() if value is not None}
