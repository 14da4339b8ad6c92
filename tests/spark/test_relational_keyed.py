"""Aggregations by key and joins with tables on the relational path: Spark's state, native rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.errors import ProcessingError
from kstreams.runtime.spark import engine
from tests.spark.running import Application, Row
from tests.support.examples import few_of

pytestmark = pytest.mark.spark

Build = Callable[[ks.StreamsBuilder], None]


def sales(builder: ks.StreamsBuilder) -> Any:
    return builder.stream("sales", key=str, value=int)


def counted(builder: ks.StreamsBuilder) -> None:
    sales(builder).group_by_key().count().to_stream().to("out")


def reduced(builder: ks.StreamsBuilder) -> None:
    sales(builder).group_by_key().reduce(lambda old, new: old * 3 + new).to_stream().to("out")


def aggregated(builder: ks.StreamsBuilder) -> None:
    """An aggregate that is deleted now and then, of what a filter lets through."""
    kept = sales(builder).filter(ks.value != 3).group_by_key()
    kept.aggregate(lambda: 0, lambda key, n, total: total + n if n != 5 else None, value=int).to_stream().to("out")


def joined(builder: ks.StreamsBuilder) -> None:
    users = builder.table("users", key=str, value=str)
    sales(builder).join(users, lambda n, user: len(user) + n, value=int).to("out")


def joined_by_expression(builder: ks.StreamsBuilder) -> None:
    users = builder.table("users", key=str, value=str)
    bonus = ks.when(ks.right.value == "").then(1).otherwise(2)
    sales(builder).join(users, ks.left.value * 2 + bonus, value=int).to("out")


def left_joined(builder: ks.StreamsBuilder) -> None:
    users = builder.table("users", key=str, value=str)
    sales(builder).left_join(users, lambda n, user: n if user is None else -n, value=int).to("out")


def windowed_least(builder: ks.StreamsBuilder) -> None:
    kept = sales(builder).filter(~ks.value.is_null()).group_by_key()
    windows = kept.windowed_by(ks.TimeWindows(size=100, grace=50))
    windows.reduce(min).to_stream(lambda key, _: f"{key.key}@{key.window.start_ms}", key=str).to("out")


def windowed_sums(builder: ks.StreamsBuilder) -> None:
    """Windows that overlap, summed by a function, behind another one."""
    kept = sales(builder).filter(lambda key, n: n != 2).group_by_key()
    windows = kept.windowed_by(ks.TimeWindows(size=100, advance=30, grace=50))
    sums = windows.aggregate(lambda: 0, lambda key, n, total: total + (n or 0), value=int)
    sums.to_stream(lambda key, _: f"{key.key}@{key.window.start_ms}", key=str).to("out")


def sessions(builder: ks.StreamsBuilder) -> Any:
    return sales(builder).group_by_key().windowed_by(ks.SessionWindows(gap=60, grace=100))


def session_counts(builder: ks.StreamsBuilder) -> None:
    """With sessions of several records, some of which become one."""
    out(sessions(builder).count())


class Seen(msgspec.Struct):
    sales: int
    most: int | None


def session_aggregates(builder: ks.StreamsBuilder) -> None:
    seen = sessions(builder).aggregate(sales=ks.len(), most=ks.value.max(), value=Seen)
    out(seen.map_values(lambda seen: seen.sales * 100 + (seen.most or 0), value=int))


def session_greatest(builder: ks.StreamsBuilder) -> None:
    """Every session of a zero is deleted."""
    named = sessions(builder).aggregate(
        lambda: 0,
        lambda key, n, most: None if n == 0 else max(most, n or 0),
        merger=lambda key, one, other: one * 10 + other,
        value=int,
    )
    out(named)


def out(table: Any) -> None:
    named = table.to_stream(lambda key, _: f"{key.key}@{key.window.start_ms}-{key.window.end_ms}", key=str)
    named.to("out")


BUILDS = (
    counted,
    reduced,
    aggregated,
    joined,
    joined_by_expression,
    left_joined,
    windowed_least,
    windowed_sums,
    session_counts,
    session_aggregates,
    session_greatest,
)
TYPES = {"sales": (str, int), "users": (str, str), "out": (str, int)}
RELATIONAL = {"spark.kstreams.path": "relational"}


def application(spark: Any, folder: Path, build: Build, **settings: Any) -> Application:
    builder = ks.StreamsBuilder()
    build(builder)
    return Application(spark, folder, builder, TYPES, **RELATIONAL, **settings)


def rows() -> list[Row]:
    """Sales of five people, some without a key or a value, some late; users who come, change and go."""
    found = []
    for at in range(120):
        key, value = None if at % 17 == 0 else f"k{at % 5}", None if at % 13 == 0 else at % 7
        found.append(Row("sales", key, value, 1_000 + at * 10 - (35 if at % 11 == 0 else 0), 0))
    for at in range(30):
        found.append(Row("users", f"k{at % 6}", None if at % 7 == 0 else "u" * at, 1_003 + at * 40, 0))
    return found


def by_key(found: list[tuple[Any, ...]]) -> dict[Any, list[tuple[Any, ...]]]:
    return {key: [row for row in found if row[0] == key] for key in {row[0] for row in found}}


@pytest.mark.parametrize("build", few_of(BUILDS, 2))
def test_the_rows_of_each_key_are_those_of_the_native_engine(spark: Any, tmp_path: Path, build: Build) -> None:
    app = application(spark, tmp_path, build, **{"spark.kstreams.max.records": 70})
    assert {each.path for each in engine.explain(app.topology, Config.of(app.settings))} == {"relational"}
    app.create("sales", "users", partitions=1).write(rows())
    app.run_natively()
    app.run()
    found, native = app.rows("out"), app.rows("out", "")
    assert native
    assert by_key(found) == by_key(native)


def test_state_goes_on_from_run_to_run(spark: Any, tmp_path: Path) -> None:
    app = application(spark, tmp_path, counted).create("sales")
    for total in (1, 2, 3):
        app.write([Row("sales", "a", 7, total)])
        app.run(until_end=False)
        assert app.rows("out")[-1] == ("a", total, total)


def test_what_an_aggregator_raises_names_operator_line_and_record(spark: Any, tmp_path: Path) -> None:
    def build(builder: ks.StreamsBuilder) -> None:
        sales(builder).group_by_key().reduce(lambda old, new: old // new).to_stream().to("out")

    app = application(spark, tmp_path, build).create("sales", partitions=1)
    app.write([Row("sales", "a", 7, 1), Row("sales", "a", 0, 2)])
    with pytest.raises(ProcessingError, match=r"^reduce\(\) at .*test_relational_keyed.*sales-0@1: ZeroDiv"):
        app.run()
