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
    out = app.step([Row("right", "y", "1", 0), Row("left", "a", "y-1", 1), Row("left", "b", "y-2", 2)])
    assert table_of(out) == {"a": "y-1+1", "b": "y-2+1"}
    out += app.step([Row("left", "a", None, 3), Row("left", "a", "z-3", 4), Row("left", "b", "z-4", 5)])
    assert table_of(out) == {}


def table_of(out: list[Output]) -> dict[str, str]:
    last = {key: value for _, key, value, _ in out}
    return {key: value for key, value in last.items() if value is not None}
