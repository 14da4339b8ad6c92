"""Deduplication on the relational path: the records that go on are those of the native engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.errors import ProcessingError
from kstreams.runtime.spark import engine
from tests.spark.running import IN_ONE_STEP, Application, Row
from tests.support.examples import few_of

pytestmark = pytest.mark.spark

RELATIONAL = {"spark.kstreams.path": "relational"}
TYPES = {"events": (str, str), "out": (str, str)}
Build = Callable[[ks.StreamsBuilder], None]


def id_of(key: str | None, event: str | None) -> str | None:
    return None if event is None or event == "e5" else event


def by_key(builder: ks.StreamsBuilder) -> None:
    builder.stream("events", key=str, value=str).deduplicate(40).to("out")


def by_id(builder: ks.StreamsBuilder) -> None:
    """Of what a filter lets through; some events have no id."""
    kept = builder.stream("events", key=str, value=str).filter(ks.key != "k1")
    kept.deduplicate(60, by=id_of, key=str).to("out")


BUILDS: tuple[Build, ...] = (by_key, by_id)


def application(spark: Any, folder: Path, build: Build, **settings: Any) -> Application:
    builder = ks.StreamsBuilder()
    build(builder)
    return Application(spark, folder, builder, TYPES, **settings).create("events", partitions=1)


def events() -> list[Row]:
    """Some without a key or a value, and every ninth a little late."""
    found = []
    for at in range(150):
        key, value = None if at % 17 == 0 else f"k{at % 5}", None if at % 13 == 0 else f"e{at % 7}"
        found.append(Row("events", key, value, 1_000 + at * 10 - (25 if at % 9 == 0 else 0), 0))
    return found


@pytest.mark.parametrize("build", few_of(BUILDS, 1))
@pytest.mark.parametrize("per_trigger", [20, IN_ONE_STEP])
def test_the_records_that_go_on_are_those_of_tasks_and_of_the_native_engine(
    spark: Any, tmp_path: Path, build: Build, per_trigger: int
) -> None:
    app = application(spark, tmp_path, build, **{"spark.kstreams.max.records": per_trigger}).write(events())
    assert {row.path for row in engine.explain(app.topology, Config.of(RELATIONAL))} == {"relational"}
    app.run_natively()
    found = {"native": sorted(app.rows("out", ""), key=repr)}
    for path in ("relational", "task"):
        where = {"spark.kstreams.prefix": f"{path}-", "spark.kstreams.checkpoint": str(tmp_path / path)}
        app.run(**where, **{"spark.kstreams.path": path})
        found[path] = sorted(app.rows("out", f"{path}-"), key=repr)
    assert 0 < len(found["native"]) < len(events())
    assert found == dict.fromkeys(found, found["native"])


def test_what_was_seen_is_known_in_the_next_run(spark: Any, tmp_path: Path) -> None:
    app = application(spark, tmp_path, by_key, **RELATIONAL)
    for time in (1, 30, 100):
        app.write([Row("events", "a", f"at {time}", time)]).run(until_end=False)
    assert [value for _, value, _ in app.rows("out")] == ["at 1", "at 100"]


def test_what_a_mark_raises_names_operator_line_and_record(spark: Any, tmp_path: Path) -> None:
    def build(builder: ks.StreamsBuilder) -> None:
        builder.stream("events", key=str, value=str).deduplicate(9, by=lambda key, event: int(event), key=int).to("out")

    app = application(spark, tmp_path, build, **RELATIONAL).write([Row("events", "a", "one", 1)])
    with pytest.raises(ProcessingError, match=r"deduplicate\(\) at .*test_relational_deduplication.*events-0@0: Value"):
        app.run()
