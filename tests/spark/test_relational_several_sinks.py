"""State whose rows go to several topics: Spark computes them once, and each batch goes every way from there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.runtime.spark import engine
from tests.spark.running import Application
from tests.spark.test_relational_keyed import by_key, rows, sales
from tests.spark.windowed_topologies import CACHED
from tests.support.examples import few_of

pytestmark = pytest.mark.spark

RELATIONAL = {"spark.kstreams.path": "relational"}
TYPES = {"sales": (str, int), "users": (str, str), "out": (str, int), "often": (str, int), "copy": (str, int)}
Build = Callable[[ks.StreamsBuilder], None]


def to_both(results: Any) -> None:
    results.to("out")
    results.filter(ks.value > 2).map_values(lambda n: n * 10, value=int).to("often")


def counted(builder: ks.StreamsBuilder) -> None:
    to_both(sales(builder).group_by_key().count().to_stream())


def counted_and_copied(builder: ks.StreamsBuilder) -> None:
    """One of three topics has the records as they came."""
    sold = sales(builder)
    sold.to("copy")
    to_both(sold.group_by_key().count().to_stream())


def windowed(windows: Any) -> None:
    to_both(windows.to_stream(lambda key, _: f"{key.key}@{key.window.start_ms}", key=str))


def windows_by_function(builder: ks.StreamsBuilder) -> None:
    kept = sales(builder).filter(~ks.value.is_null()).group_by_key()
    windowed(kept.windowed_by(ks.TimeWindows(size=100, grace=50)).reduce(max))


def joined(builder: ks.StreamsBuilder) -> None:
    users = builder.table("users", key=str, value=str)
    to_both(sales(builder).join(users, lambda n, user: n + len(user), value=int))


def updated_windows(builder: ks.StreamsBuilder) -> None:
    windowed(sales(builder).group_by_key().windowed_by(ks.TimeWindows(size=100, grace=5000)).count())


def final_windows(builder: ks.StreamsBuilder) -> None:
    windows = sales(builder).group_by_key().windowed_by(ks.TimeWindows(size=100, grace=5000))
    windowed(windows.emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE).count())


def final_windows_and_copies(builder: ks.StreamsBuilder) -> None:
    """What ends the input of windows is no record of the others."""
    sold = sales(builder)
    sold.to("copy")
    kept = sold.group_by_key().windowed_by(ks.TimeWindows(size=100, grace=5000))
    windowed(kept.emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE).count())


EXACT: tuple[Build, ...] = (
    counted,
    counted_and_copied,
    windows_by_function,
    joined,
    final_windows,
    final_windows_and_copies,
)


def application(spark: Any, folder: Path, build: Build, **settings: Any) -> Application:
    builder = ks.StreamsBuilder()
    build(builder)
    app = Application(spark, folder, builder, TYPES, **settings).create("sales", "users", partitions=1)
    return app.write(rows())


def paths(app: Application) -> set[str]:
    return {row.path for row in engine.explain(app.topology, Config.of(RELATIONAL))}


def results(app: Application, path: str, prefix: str) -> dict[str, Any]:
    if path:
        app.run(**{"spark.kstreams.path": path, "spark.kstreams.prefix": prefix}, **checkpoint(app, path))
    else:
        app.run_natively()
    topics = [topic for topic in TYPES if prefix + topic in app.topics() and topic not in ("sales", "users")]
    return {topic: app.rows(topic, prefix) for topic in topics}


def checkpoint(app: Application, path: str) -> dict[str, str]:
    return {"spark.kstreams.checkpoint": str(app.folder / path)}


@pytest.mark.parametrize("build", few_of(EXACT, 1))
def test_every_topic_gets_the_rows_of_tasks_and_of_the_native_engine(spark: Any, tmp_path: Path, build: Build) -> None:
    cached = CACHED if build in (final_windows, final_windows_and_copies) else {}
    app = application(spark, tmp_path, build, **{"spark.kstreams.max.records": 70}, **cached)
    assert paths(app) == {"relational"}
    native = results(app, "", "")
    assert all(native.values())
    for path in ("relational", "task"):
        found = results(app, path, f"{path}-")
        assert {topic: by_key(got) for topic, got in found.items()} == {t: by_key(got) for t, got in native.items()}


def test_updates_of_windows_leave_the_tables_of_tasks_in_every_topic(spark: Any, tmp_path: Path) -> None:
    app = application(spark, tmp_path, updated_windows, **{"spark.kstreams.max.records": 30})
    assert paths(app) == {"relational"}
    last = {}
    for path in ("relational", "task"):
        found = results(app, path, f"{path}-")
        last[path] = {topic: {key: value for key, value, _ in got} for topic, got in found.items()}
    assert last["relational"] == last["task"]
    assert last["task"].keys() == {"out", "often"}


def test_each_record_is_aggregated_once(spark: Any, tmp_path: Path) -> None:
    calls = tmp_path / "calls"

    def build(builder: ks.StreamsBuilder) -> None:
        def add(old: int, new: int) -> int:
            with calls.open("a") as file:
                file.write(".")
            return old + new

        to_both(sales(builder).group_by_key().reduce(add).to_stream())

    application(spark, tmp_path, build, **RELATIONAL).run()
    counted = [row for row in rows() if row.topic == "sales" and row.key is not None and row.value is not None]
    assert len(calls.read_text()) == len(counted) - len({row.key for row in counted})


def test_what_meets_other_records_behind_the_state_runs_as_tasks(spark: Any, tmp_path: Path) -> None:
    def build(builder: ks.StreamsBuilder) -> None:
        sold = sales(builder)
        counts = sold.group_by_key().count().to_stream()
        counts.to("out")
        counts.merge(sold).to("often")

    app = application(spark, tmp_path, build, **RELATIONAL)
    decisions = engine.explain(app.topology, Config.of(RELATIONAL))
    assert {row.path for row in decisions} == {"task"}
    assert "its rows branch and meet other rows there: Spark would compute them once for each branch" in {
        row.why for row in decisions
    }
    app.run()
    assert app.rows("out")
    assert app.rows("often")
