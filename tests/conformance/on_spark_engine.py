"""Runs recorded cases through the whole Spark engine: topics in a log, a streaming query, the sink's transaction.

All input is there when the query starts, and is one step. So it takes cases that a task reads in the recorded order,
and those of tables alone: what they end with does not depend on the order between them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.conformance import expressions, recorded
from tests.conformance.on_spark import WHOLE, application, output, pieces
from tests.conformance.recorded import Case, Rows, replay
from tests.spark.running import Application, Row
from tests.support.kafka_topics import delete_everything


def suitable(cases: Sequence[Case], path: str) -> list[Case]:
    """The cases whose input may be there at once; for the relational path, those that take it entirely and exactly."""
    return [case for case in cases if _at_once(case) and (path == "task" or _is_relational(case))]


def _application(case: Case, path: str) -> Any:
    """The case's topology, by functions for tasks and by expressions for queries of PySpark."""
    return application(case) if path == "task" else expressions.application(case)


def after_time_zero(cases: Sequence[Case]) -> list[Case]:
    """The cases without a record of time 0 or before, which Kafka's client cannot write."""
    return [case for case in cases if all(time > 0 for time in _times(case))]


def failures(cases: Sequence[Case], path: str) -> list[str]:
    """Names of the cases that differ through log, query and sink, with all operators on a path."""
    from kstreams.runtime.spark.cluster.session import spark_session
    from kstreams.runtime.spark.settings import SparkSettings

    session = spark_session(SparkSettings(delta=None))
    with tempfile.TemporaryDirectory() as folder:
        return differing(session, cases, path, Path(folder))


def differing(session: Any, cases: Sequence[Case], path: str, folder: Path, **settings: Any) -> list[str]:
    """Names of the cases whose output is not what was recorded: records in order, or final tables."""
    return [case["name"] for case in cases if _differs(session, case, path, folder / case["name"], settings)]


def _differs(session: Any, case: Case, path: str, folder: Path, settings: dict[str, Any]) -> bool:
    exact = recorded.tasks_of(case) == 1 and path == "task" and len(list(pieces(case, WHOLE))) == 1
    view = replay().by_topic if exact else recorded.final_tables
    return bool(view(run_case(session, case, path, folder, **settings)) != view(output(case)))


def run_case(session: Any, case: Case, path: str, folder: Path, **settings: Any) -> Rows:
    """The output of one case, run once over all of its input."""
    case_app = _application(case, path)
    types = {topic: (of["key"], of["value"]) for topic, of in (case_app.inputs | case_app.outputs).items()}
    given = {**case.get("config", {}), "spark.kstreams.path": path, "statestore.cache.max.bytes": 0, **settings}
    if "bootstrap.servers" in settings:
        delete_everything(settings["bootstrap.servers"])
    app = Application(session, folder, case_app.builder, types, **given).create(*case_app.inputs, partitions=1)
    app.write([Row(item["topic"], item["key"], item["value"], item["ts"], 0, _headers(item)) for item in case["input"]])
    app.run(until_end=False)
    return [[0, topic, *row] for topic in case_app.outputs for row in app.rows(topic, headers=True)]


def _times(case: Case) -> list[int]:
    return [*(item.get("ts", 1) for item in case["input"]), *(row[4] for row in output(case))]


def _headers(item: Case) -> list[tuple[str, bytes]]:
    return [(name, text.encode()) for name, text in item.get("headers", [])]


def _at_once(case: Case) -> bool:
    tables_alone = all(node["op"] not in ("stream", "global_table") for node in case["topology"])
    return tables_alone or (len(list(pieces(case, WHOLE))) == 1 and "advance_ms" not in case["input"][0])


_WITH_THE_SAME_TABLES = {"decoding", "headers", "updates"}
"""The differences of which final tables show nothing."""


def _is_relational(case: Case) -> bool:
    """Whether every operator takes the relational path, where the final tables of the case are the same."""
    from kstreams.runtime.spark.code.forms import differences_of
    from kstreams.runtime.spark.relational.path_plan import plan_of
    from kstreams.runtime.spark.settings import PathSettings

    topology = _application(case, "relational").builder.build()
    plan = plan_of(topology, PathSettings("relational"))
    names = {difference.name for node in plan.typed.graph for difference in differences_of(node, plan.typed)}
    return {decision.path for decision in plan.decisions} == {"relational"} and names <= _WITH_THE_SAME_TABLES
