"""Queries whose text `explain --code` prints, as the engine runs them: results, times, restarts, and ends of input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.errors import LogError, SerdeError
from kstreams.runtime.spark import engine
from tests.spark.running import Application, Row

pytestmark = pytest.mark.spark

RELATIONAL = {"spark.kstreams.path": "relational"}
HOUR = 3_600_000


class Sale(msgspec.Struct):
    item: str
    amount: int


class Total(msgspec.Struct):
    sales: int
    amount: int | None


TYPES = {"sales": (str, Sale), "out": (str, Total), "big": (str, Sale), "names": (str, str), "counts": (bytes, int)}
MINUTES = ks.TimeWindows(size=60_000, grace=10_000)


def sales(builder: ks.StreamsBuilder) -> ks.KStream[str, Sale]:
    return builder.stream("sales", key=str, value=Sale)


def application(spark: Any, folder: Path, builder: ks.StreamsBuilder, **settings: Any) -> Application:
    return Application(spark, folder, builder, TYPES, **RELATIONAL, **settings).create("sales")


def rows(count: int, *, skew_ms: int = 0) -> list[Row]:
    """Sales of three users for each of two partitions, of which the second may be ahead of the first."""
    return [
        Row(
            "sales",
            f"user-{partition}-{n % 3}",
            Sale("tea" if n % 2 else "cup", n),
            n * 3_000 + partition * skew_ms,
            partition,
        )
        for n in range(1, count)
        for partition in range(2)
    ]


def paths(app: Application, **settings: str) -> set[str]:
    config = Config.of({**app.settings, **settings})
    return {row.path for row in engine.explain(app.topology, config)}


def sorted_rows(records: list[Any]) -> list[str]:
    """Records of two input partitions come to one output partition in no particular order."""
    return sorted(map(repr, records))


def minutes(builder: ks.StreamsBuilder) -> Any:
    by_user = sales(builder).filter(ks.col("amount") > 1).group_by_key()
    return by_user.windowed_by(MINUTES).aggregate(sales=ks.len(), amount=ks.col("amount").sum(), value=Total)


def final_minutes(builder: ks.StreamsBuilder) -> None:
    minutes(builder).suppress(ks.Suppressed.until_window_closes()).to_stream().to("counts")


@pytest.mark.slow
def test_stateless_operators_keep_times_and_partitions(spark: Any, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    sales(builder).filter(ks.col("amount") % 3 == 0).to("big")
    app = application(spark, tmp_path, builder).write(rows(30))
    app.run_natively()
    app.run()
    assert list(map(sorted_rows, app.partitions("big"))) == list(map(sorted_rows, app.partitions("big", "")))
    assert paths(app) == {"relational"}


def test_final_windows_of_partitions_an_hour_apart_are_all_emitted_at_the_end_of_the_input(
    spark: Any, tmp_path: Path
) -> None:
    builder = ks.StreamsBuilder()
    final_minutes(builder)
    app = application(spark, tmp_path, builder, **{"spark.kstreams.max.records": 50})
    app.types = {**TYPES, "counts": (bytes, bytes)}
    app.write(rows(120, skew_ms=HOUR))
    app.run_natively()
    app.run()
    assert sorted(app.rows("counts")) == sorted(app.rows("counts", ""))
    assert len(app.rows("counts")) > 12


def test_a_query_goes_on_after_a_stop_and_has_the_last_update_of_every_window(spark: Any, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    minutes(builder).to_stream().to("counts")
    app = application(spark, tmp_path, builder, **{"spark.kstreams.max.records": 60})
    app.types = {**TYPES, "counts": (bytes, bytes)}
    some = rows(120, skew_ms=HOUR)
    app.write(some[:100])
    app.run(until_end=False)
    app.write(some[100:])
    progress = app.run(until_end=False)
    app.run_natively()
    assert app.table("counts") == {key: value for key, value, _ in app.rows("counts", "")}
    assert progress.records_in == len(some) - 100
    assert progress.commits > 1


@pytest.mark.slow
def test_after_its_end_an_input_with_closed_windows_takes_no_more_records(spark: Any, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    final_minutes(builder)
    app = application(spark, tmp_path, builder).write(rows(10))
    app.run()
    app.run()
    app.write(rows(10))
    with pytest.raises(LogError, match="was run until the end of its input"):
        app.run()


@pytest.mark.slow
def test_records_without_a_key_go_to_the_partitions_of_their_tasks(spark: Any, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    sales(builder).filter(ks.col("amount") > 0).to("big")
    app = application(spark, tmp_path, builder)
    app.write([Row("sales", None, Sale("cup", n), n, n % 2) for n in range(1, 21)])
    app.run()
    assert sorted(row[2] for row in app.rows("big")) == list(range(1, 21))


@pytest.mark.slow
def test_a_record_that_cannot_be_read_ends_the_run_and_nothing_of_its_step_is_written(
    spark: Any, tmp_path: Path
) -> None:
    builder = ks.StreamsBuilder()
    sales(builder).filter(ks.col("amount") > 0).to("big")
    app = application(spark, tmp_path, builder)
    app.write(rows(20))
    app.types = {**TYPES, "sales": (str, bytes)}
    app.write([Row("sales", "a", b'{"item":"x"}', 60_000, 1)])
    with pytest.raises(SerdeError) as on_spark:
        app.run()
    with pytest.raises(SerdeError) as natively:
        app.run_natively()
    assert str(on_spark.value) == str(natively.value)
    assert app.rows("big") == []


@pytest.mark.slow
def test_rows_before_one_that_fails_in_a_batch_are_not_committed(spark: Any, tmp_path: Path) -> None:
    """Spark ends the rows of a failed task in good order: its writer sees the end of its input."""
    builder = ks.StreamsBuilder()
    sales(builder).filter(ks.col("amount") > 0).to("big")
    app = application(spark, tmp_path, builder)
    count = 25_000  # several Arrow batches, of which the first are written before the failure
    app.write(Row("sales", f"user-{n}", Sale("tea", n), n, 0) for n in range(1, count))
    app.types = {**TYPES, "sales": (str, bytes)}
    app.write([Row("sales", "a", b'{"item":"x"}', count, 0)])
    for _ in range(2):
        with pytest.raises(SerdeError, match=r"cannot decode the value of sales-0@24999"):
            app.run()
    assert app.rows("big") == []


@pytest.mark.slow
def test_a_table_is_read_as_of_each_batch(spark: Any, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    names = builder.table("names", key=str, value=str)
    sales(builder).join(names, ks.right.value, value=str).to("counts")
    app = application(spark, tmp_path, builder).create("names")
    app.types = {**TYPES, "counts": (str, str)}
    app.write([Row("names", "user-0-1", "Ann", 1), Row("names", "user-1-1", "Bo", 1)])
    app.write(rows(5))
    app.run(until_end=False)
    app.write([Row("names", "user-0-1", "Anna", 2)])
    app.write(rows(5))
    app.run(until_end=False)
    assert sorted(value for _, value, _ in app.rows("counts")) == ["Ann", "Ann", "Anna", "Anna", "Bo", "Bo", "Bo", "Bo"]


@pytest.mark.slow
def test_two_topics_of_one_sub_topology_are_two_queries(spark: Any, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    bought = sales(builder)
    bought.filter(ks.col("amount") > 5).to("big")
    bought.map_values(ks.col("item"), value=str).to("names")
    app = application(spark, tmp_path, builder).write(rows(20))
    app.run_natively()
    app.run()
    for topic in ("big", "names"):
        assert list(map(sorted_rows, app.partitions(topic))) == list(map(sorted_rows, app.partitions(topic, "")))


@pytest.mark.slow
def test_counts_behind_a_repartition_are_one_query(spark: Any, tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    sales(builder).group_by(ks.col("item"), key=str).count().to_stream().to("counts")
    app = application(spark, tmp_path, builder).write(rows(40))
    app.types = {**TYPES, "counts": (str, int)}
    app.run_natively()
    app.run()
    assert app.table("counts") == {key: value for key, value, _ in app.rows("counts", "")}
    assert not [topic for topic in app.topics() if "repartition" in topic and "spark" in topic]
