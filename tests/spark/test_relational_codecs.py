"""Bytes on the relational path mean what they mean on every other: as typed columns and back, and when they are bad."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.errors import SerdeError
from tests.spark.running import Application, Row

pytestmark = pytest.mark.spark

RELATIONAL = {"spark.kstreams.path": "relational"}
VALUES: dict[type, list[Any]] = {
    int: [0, 1, -1, 2**63 - 1, -(2**63), None],
    float: [0.0, -0.0, 1.5, float("inf"), None],
    str: ["", "a", "größe 🦆", "\x00", None],
    bool: [True, False, None],
    bytes: [b"", b"\xff\x00", None],
}


@pytest.mark.parametrize("kind", VALUES, ids=lambda kind: kind.__name__)
def test_values_are_what_they_are_natively(spark: Any, tmp_path: Path, kind: type) -> None:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=kind).map_values(ks.value, value=kind).to("out")
    app = Application(spark, tmp_path, builder, {"in": (str, kind), "out": (str, kind)}, **RELATIONAL)
    app.create("in", partitions=1)
    app.write(Row("in", f"k{at}", value, at) for at, value in enumerate(VALUES[kind]))
    app.run_natively()
    app.run()
    assert app.rows("out") == app.rows("out", "")
    assert [value for _, value, _ in app.rows("out")] == VALUES[kind]


@pytest.mark.parametrize(("kind", "raw"), [(int, b"abc"), (str, b"a\xff"), (bool, b"\x02"), (bool, b""), (float, b"1")])
def test_bytes_of_no_such_value_end_the_run_and_are_shown(spark: Any, tmp_path: Path, kind: type, raw: bytes) -> None:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=kind).filter(~ks.value.is_null()).map_values(ks.value, value=kind).to("out")
    app = Application(spark, tmp_path, builder, {"in": (str, bytes), "out": (str, kind)}, **RELATIONAL)
    app.create("in", partitions=1).write([Row("in", "k", raw, 1)])
    with pytest.raises(SerdeError) as error:
        app.run()
    assert "\n" not in str(error.value)
    assert "SQLSTATE" not in str(error.value)


def test_bad_bytes_are_shown_as_natively(spark: Any, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=int).map_values(ks.value + 1, value=int).to("out")
    app = Application(spark, tmp_path, builder, {"in": (str, bytes), "out": (str, int)}, **RELATIONAL)
    app.create("in", partitions=1).write([Row("in", "k", b"a\xff", 1)])
    with pytest.raises(SerdeError, match=r"^b'.+' is not an integer of 8 bytes: unpack requires a buffer of 8 bytes$"):
        app.run()
