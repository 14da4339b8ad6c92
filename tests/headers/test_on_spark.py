"""Headers on Spark: tasks in steps give what Kafka Streams gives; the relational path says what it leaves to tasks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.runtime.spark import engine
from tests.headers.recorded import INPUT, RUNS, Recorded, Row, headers_of
from tests.headers.test_recorded_cases import FINAL, built, row, topics_of
from tests.spark import running
from tests.spark.stepped import Stepped
from tests.support.examples import few_of

pytestmark = pytest.mark.spark

TEXTS = dict.fromkeys(("a", "b", "out"), (str, str))
NOT_RECORD_BY_RECORD = ("global_table_join", "foreign_key_join", "foreign_key_left_join", "process_held")
"""What a step reads at its beginning, what feeds itself, and what an attribute of a processor holds: declared as
differences."""
CASES = [run.case for run in RUNS if run.format == "default" and run.cache == 0]


def in_steps(topology: ks.Topology, folder: Path, *, forget: bool = False) -> list[Row]:
    """What tasks give in a step for each record."""
    topics = topics_of(topology)
    application, found = Stepped(topology, TEXTS, topics, folder), list[Row]()
    for topic, key, value, time, header in INPUT:
        if topic in topics:
            given = running.Row(topic, key, value, time, None, headers_of(header))
            made = application.step([given], headers=True, forget=forget)
            found += [row(*rest) for name, *rest in made if name == "out"]
    return found


@pytest.mark.parametrize("case", few_of([c for c in CASES if c not in (*FINAL, *NOT_RECORD_BY_RECORD)], 12))
def test_tasks_in_steps_give_the_headers_of_kafka_streams(case: str, tmp_path: Path) -> None:
    assert in_steps(built(case), tmp_path) == RUNS[Recorded(case, "default", 0)]


@pytest.mark.parametrize("case", ["kept_headers_rocksdb_cached", "kept_headers_of_windows", "kept_headers_of_sessions"])
def test_stores_keep_headers_from_step_to_step_in_state_files(case: str, tmp_path: Path) -> None:
    assert in_steps(built(case), tmp_path, forget=True) == RUNS[Recorded(case, "default", 0)]


def marked(stream: ks.KStream[str, str]) -> ks.KStream[str, str]:
    """All that concerns headers, in one chain."""
    some = stream.filter(ks.header("h").is_null() | (ks.header("h") != "a1"))
    placed = some.map_values(
        lambda record: f"{record.value}@{record.topic}-{record.offset}", with_record=True, value=str
    )
    return placed.with_headers(of=ks.key, at=ks.offset).map_headers(lambda headers: [*headers, ("seen", "1")])


def declared(use: Callable[[ks.KStream[str, str]], ks.KStream[Any, Any]]) -> ks.Topology:
    builder = ks.StreamsBuilder({"default.dsl.store": "in_memory"})
    use(builder.stream("a", key=str, value=str)).to("out", key=str, value=str)
    return builder.build()


def test_tasks_change_headers(tmp_path: Path) -> None:
    found = in_steps(declared(marked), tmp_path)
    assert found[:2] == [
        ["k1", "v1@a-0", 0, [["h", "a0"], ["of", "k1"], ["at", "0"], ["seen", "1"]]],
        ["k2", "v3@a-2", 4000, [["h", "a2"], ["of", "k2"], ["at", "2"], ["seen", "1"]]],
    ]


READING = "is read from the record that a task processes"
FUNCTION = "it calls a Python function"
USES: dict[str, tuple[Callable[[ks.KStream[str, str]], ks.KStream[Any, Any]], str]] = {
    "headers": (lambda s: s.filter(~ks.headers.is_null()), READING),
    "header of a total": (
        lambda s: s.group_by_key().aggregate(n=ks.header("h", type=int).sum()).to_stream().map_values(ks.header("h")),
        READING,
    ),
    "map_values": (lambda s: s.map_values(ks.topic), READING),
    "select_key": (lambda s: s.select_key(ks.offset.cast(str)), READING),
    "branch": (lambda s: s.split(name="x-").branch(ks.offset > 1, name="y").no_default_branch()["x-y"], READING),
    "with_record": (lambda s: s.filter(lambda record: record.offset > 1, with_record=True), FUNCTION),
    "aggregate": (
        lambda s: s.group_by_key().aggregate(n=ks.offset.max()).to_stream().map_values(lambda _: "", value=str),
        READING,
    ),
    "map_headers": (lambda s: s.map_headers(lambda headers: []), "headers are changed by tasks"),
    "with_headers": (lambda s: s.with_headers(a=1), "headers are changed by tasks"),
    "drop_headers": (lambda s: s.drop_headers("h"), "headers are changed by tasks"),
}


@pytest.mark.parametrize(("use", "why"), USES.values(), ids=USES)
def test_explain_says_what_the_relational_path_leaves_to_tasks(
    use: Callable[[ks.KStream[str, str]], ks.KStream[Any, Any]], why: str
) -> None:
    config = {"application.id": "app", "spark.kstreams.path": "relational", "statestore.cache.max.bytes": 0}
    rows = engine.explain(declared(use), Config.of(config))
    assert {row.path for row in rows} == {"task"}
    assert any(why in row.why for row in rows)
