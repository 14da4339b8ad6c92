"""Tables on the relational path: a row is the new value of its key, and none deletes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.errors import ProcessingError
from kstreams.runtime.spark import engine
from tests.spark.running import Application, Row
from tests.spark.table_topologies import BUILDS, TYPES, Build, rows, sales, users
from tests.spark.test_relational_keyed import by_key
from tests.support.examples import few_of

pytestmark = pytest.mark.spark

RELATIONAL = {"spark.kstreams.path": "relational"}


def application(spark: Any, folder: Path, build: Build, **settings: Any) -> Application:
    builder = ks.StreamsBuilder()
    build(builder)
    return Application(spark, folder, builder, TYPES, **settings)


def explained(build: Build) -> dict[str, Any]:
    builder = ks.StreamsBuilder()
    build(builder)
    return {row.operator: row for row in engine.explain(builder.build(), Config.of({**RELATIONAL}))}


@pytest.mark.parametrize("build", few_of(BUILDS, 2))
def test_the_rows_of_each_key_are_those_of_tasks_and_of_the_native_engine(
    spark: Any, tmp_path: Path, build: Build
) -> None:
    app = application(spark, tmp_path, build, **{"spark.kstreams.max.records": 70})
    assert {row.path for row in explained(build).values()} == {"relational"}
    app.create("sales", "users", partitions=1).write(rows())
    app.run_natively()
    found = {"native": by_key(app.rows("out", ""))}
    for path in ("relational", "task"):
        where = {"spark.kstreams.prefix": f"{path}-", "spark.kstreams.checkpoint": str(tmp_path / path)}
        app.run(**where, **{"spark.kstreams.path": path})
        found[path] = by_key(app.rows("out", f"{path}-"))
    assert found["native"]
    assert found == dict.fromkeys(found, found["native"])


def test_a_table_whose_store_can_be_asked_runs_as_tasks() -> None:
    def named(builder: ks.StreamsBuilder) -> None:
        builder.table("users", key=str, value=str, materialized="people", name="read").to_stream().to("out")

    def named_view(builder: ks.StreamsBuilder) -> None:
        users(builder).filter(lambda key, name: True, materialized="people", name="kept").to_stream().to("out")

    def behind_another(builder: ks.StreamsBuilder) -> None:
        people = builder.table("users", key=str, value=str, materialized="people", name="read")
        sales(builder).join(people.filter(ks.value != "u"), lambda n, name: n, value=int).to("out")

    for said, operator in (
        (explained(named), "read"),
        (explained(named_view), "kept"),
        (explained(behind_another), "read"),
    ):
        assert said[operator].why == "its rows are in a named store, which only tasks keep"
        assert {row.path for row in said.values()} == {"task"}


def test_what_a_function_of_a_table_raises_names_operator_line_and_record(spark: Any, tmp_path: Path) -> None:
    def build(builder: ks.StreamsBuilder) -> None:
        sales(builder).to_table().map_values(lambda n: 1 // n, value=int).to_stream().to("out")

    app = application(spark, tmp_path, build, **RELATIONAL).create("sales", partitions=1)
    app.write([Row("sales", "a", None, 1), Row("sales", "a", 0, 2)])
    with pytest.raises(ProcessingError, match=r"map_values\(\) at .*test_relational_tables.*sales-0@1: ZeroDiv"):
        app.run()
