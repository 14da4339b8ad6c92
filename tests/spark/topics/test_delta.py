"""Results lie in Delta tables with typed columns, every step once."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

import kstreams as ks
from kstreams.errors import ConfigError
from kstreams.record import Window, Windowed
from kstreams.runtime.spark.settings import SparkSettings
from kstreams.serdes import TimeWindowedSerde, serde_of
from kstreams.serdes.arrow_types import arrow_type, typed_column
from tests.spark.running import Application, Row
from tests.spark.word_count import LINES, WORD_TYPES, word_count

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


@pytest.fixture
def twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step is brought into its tables twice, as by a driver that dies between Delta and the log."""
    from kstreams.runtime.spark.io.delta import DeltaSink

    apply = DeltaSink.apply

    def again(self, step, rows, topics):
        apply(self, step, rows, topics)
        apply(self, step, rows, topics)

    monkeypatch.setattr(DeltaSink, "apply", again)


def words(spark: Any, folder: Path, **settings: Any) -> Application:
    delta = {"spark.kstreams.delta": str(folder / "delta"), "spark.kstreams.max.records": 2}
    return Application(spark, folder, word_count(), WORD_TYPES, **delta, **settings).create("lines").write(LINES)


def table(spark: Any, folder: Path, topic: str) -> Any:
    return spark.read.format("delta").load(str(folder / "delta" / topic))


def test_a_step_that_is_written_again_counts_once(spark, tmp_path: Path, twice: None) -> None:
    app = words(spark, tmp_path)
    app.run()
    assert table(spark, tmp_path, "counts").count() == len(app.rows("counts"))


def test_a_merged_table_holds_the_last_value_of_each_key(spark, tmp_path: Path, twice: None) -> None:
    app = words(spark, tmp_path, **{"spark.kstreams.delta.merge": "counts"})
    app.run()
    found = table(spark, tmp_path, "counts")
    assert sorted((row.key, row.value) for row in found.collect()) == sorted(app.table("counts").items())
    assert found.where("value > 2").count() == 2
    app.write([Row("lines", "e", "the end", 9)]).run()
    assert {row.key: row.value for row in table(spark, tmp_path, "counts").collect()} == app.table("counts")


@pytest.mark.slow
def test_a_step_merged_again_after_a_later_one_changes_nothing(spark, tmp_path: Path) -> None:
    """Delta itself keeps a repeated step from setting values back, not the order in which steps are applied."""
    from kstreams.runtime.spark.io.delta import DeltaSink

    app = words(spark, tmp_path, **{"spark.kstreams.delta.merge": "counts"})
    app.run()
    history = table(spark, tmp_path, "counts")
    before = sorted(history.select("key", "value").collect())
    steps: list[tuple[Any, ...]] = []
    apply = DeltaSink.apply

    def earlier(self, step, rows, topics):
        steps.append((step, list(topics)))
        apply(self, 0, rows, topics)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DeltaSink, "apply", earlier)
        app.write([Row("lines", "e", "the end", 9)]).run()
    assert steps[0][1] == ["counts"]
    assert sorted(table(spark, tmp_path, "counts").select("key", "value").collect()) == before


def test_a_tombstone_deletes_the_row_of_its_key(spark, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    cheap = builder.table("prices", key=str, value=int).filter(lambda key, price: price < 10)
    cheap.to_stream().to("cheap")
    types = {"prices": (str, int), "cheap": (str, int)}
    delta = {"spark.kstreams.delta": str(tmp_path / "delta"), "spark.kstreams.delta.merge": "cheap"}
    app = Application(spark, tmp_path, builder, types, **delta).create("prices")
    app.write([Row("prices", key, price, at) for at, (key, price) in enumerate([("a", 1), ("b", 2), ("c", 30)])]).run()
    assert {row.key: row.value for row in table(spark, tmp_path, "cheap").collect()} == {"a": 1, "b": 2}
    app.write([Row("prices", "a", 10, 5), Row("prices", "b", 3, 6), Row("prices", "c", 4, 7)]).run()
    assert {row.key: row.value for row in table(spark, tmp_path, "cheap").collect()} == {"b": 3, "c": 4}


def test_a_windowed_key_is_merged_by_key_and_window(spark, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    windows = ks.TimeWindows(size=10, grace=5)
    builder.stream("in", key=str, value=int).group_by_key().windowed_by(windows).count().to_stream().to("counts")
    types = {"in": (str, int)}
    delta = {"spark.kstreams.delta": str(tmp_path / "delta"), "spark.kstreams.delta.merge": "counts"}
    settings = {**delta, "spark.kstreams.max.records": 2}
    app = Application(spark, tmp_path, builder, types, **settings).create("in", partitions=1)
    app.write([Row("in", "k", 0, time) for time in (1, 2, 3, 11, 12)]).run()
    found = table(spark, tmp_path, "counts").selectExpr("unix_millis(key.window_start)", "value")
    assert sorted(map(tuple, found.collect())) == [(0, 3), (10, 2)]


def test_tables_are_partitioned_on_request_and_hold_headers(spark, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=int).map_values(lambda n: n + 1, value=int).to("out")
    delta = {"spark.kstreams.delta": str(tmp_path / "delta"), "spark.kstreams.delta.partition.by": "date,partition"}
    types = {"in": (str, int), "out": (str, int)}
    app = Application(spark, tmp_path, builder, types, **delta).create("in", partitions=2)
    day = 86_400_000
    app.write([Row("in", "a", n, n * day, n % 2, [("n", b"%d" % n)]) for n in range(4)]).run()
    found = table(spark, tmp_path, "out")
    days = [(n + 1, f"1970-01-0{n + 1}") for n in range(4)]
    assert sorted((row.value, str(row.date)) for row in found.collect()) == days
    assert {tuple(row.headers[0]) for row in found.collect()} == {("n", b"%d" % n) for n in range(4)}
    folders = (tmp_path / "delta" / "out").glob("date=*/partition=*")
    assert sorted(folder.parent.name for folder in folders) == [f"date={day}" for _, day in days]


def test_what_tables_cannot_be_partitioned_by_is_said() -> None:
    with pytest.raises(ConfigError, match=r"delta\.partition\.by cannot be 'value': say date or partition"):
        SparkSettings.of({"spark.kstreams.delta.partition.by": "date, value"})


@pytest.mark.slow
def test_a_table_of_an_earlier_version_gets_the_columns_that_it_lacks(spark, tmp_path: Path) -> None:
    app = words(spark, tmp_path)
    app.run()
    shutil.rmtree(tmp_path / "delta" / "counts")
    old = spark.createDataFrame([("a", 1)], "key string, value bigint").selectExpr(
        "*", "timestamp_millis(5) AS timestamp", "0 AS partition"
    )
    old.write.format("delta").save(str(tmp_path / "delta" / "counts"))
    app.write([Row("lines", "e", "end", 9)]).run()
    found = {(row.key, row.value, row.headers is None) for row in table(spark, tmp_path, "counts").collect()}
    assert found == {("a", 1, True), ("end", 1, True)}
