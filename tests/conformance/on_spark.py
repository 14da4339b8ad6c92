"""Runs recorded cases as tasks inside Spark: many cases in one job, each step of a case a step of its own history.

The recordings come from a driver that takes records in the order in which they are piped. So the rows of a case are cut
wherever the topic changes, each cut is a step, and between steps the worker now and then forgets its live state.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from kstreams.config import Config
from kstreams.processor.layout import lay_out
from kstreams.processor.topology import SubTopology
from kstreams.serdes import serde_of
from tests.conformance.recorded import replay

if TYPE_CHECKING:
    from kstreams.runtime.spark.program import Program

Case = dict[str, Any]
Tables = dict[str, dict[Any, Any]]
FORGET_EVERY = 5


@dataclass(frozen=True)
class Cut:
    """One step of a case: rows of one topic that follow each other, or none when only the wall clock moves."""

    now_ms: int
    rows: pa.Table


@dataclass(frozen=True)
class Prepared:
    """A case as the workers need it."""

    program: Program
    order: list[int]
    cuts: list[Cut] = field(default_factory=list)


def failures(cases: Sequence[Case]) -> list[str]:
    """Names of the cases whose final tables on Spark are not those that were recorded."""
    from kstreams.runtime.spark.session import spark_session
    from kstreams.runtime.spark.settings import SparkSettings

    found = run_cases_spark(spark_session(SparkSettings(delta=None)), cases)
    return [case["name"] for case in cases if found[case["name"]] != recorded_tables(case)]


def run_cases_spark(session: Any, cases: Sequence[Case]) -> dict[str, Tables]:
    """The final tables of the output topics of every case, by its name."""
    from pyspark.sql import functions as F

    from kstreams.runtime.spark.rows import OUT_SCHEMA
    from kstreams.runtime.spark.shipping import pack

    with tempfile.TemporaryDirectory() as folder:
        applications = [application(case) for case in cases]
        prepared = [
            prepare(case, app, Path(folder, str(i)))
            for i, (case, app) in enumerate(zip(cases, applications, strict=True))
        ]
        packed = [pack(case) for case in prepared]
        numbers = session.range(len(cases)).select(F.col("id").cast("int").alias("id"))
        slots = session.sparkContext.defaultParallelism
        out = numbers.repartitionById(slots, F.col("id") % slots).mapInArrow(_in_worker(packed), OUT_SCHEMA).toArrow()
    found = (tables(out, number, app) for number, app in enumerate(applications))
    return dict(zip((case["name"] for case in cases), found, strict=True))


def recorded_tables(case: Case) -> Tables:
    """The last value of every key in every output topic, as recorded without the record cache."""
    found: Tables = {}
    expected = case["expected"]
    for _, topic, key, value, *_ in expected.get("output_uncached", expected["output"]):
        found.setdefault(topic, {})[key] = value
    return _present(found)


def application(case: Case) -> Any:
    """The case's topology and the types of its topics."""
    return replay().Application(case, _settings(case))


def prepare(case: Case, app: Any, folder: Path) -> Prepared:
    """Everything that is known of a case before it runs."""
    from kstreams.runtime.spark.chain import in_feeding_order
    from kstreams.runtime.spark.program import program_of
    from kstreams.runtime.spark.settings import SparkSettings

    config, topology = Config.of(_settings(case)), app.builder.build()
    existing = dict.fromkeys(app.inputs, 1)
    layout = lay_out(topology, "app", existing)
    program = program_of(topology, config, SparkSettings(snapshot_every=3), layout, existing, str(folder))
    return Prepared(program, in_feeding_order(program), list(_cuts(case, app)))


def tables(out: pa.Table, number: int, app: Any) -> Tables:
    """The final tables of one case among the rows of all: `partition` holds its number, `origin` counts its rows."""
    mine = out.filter(pc.equal(out["partition"], number)).sort_by("origin")
    found: Tables = {}
    for topic, types in app.outputs.items():
        rows = mine.filter(pc.equal(mine["topic"], topic))
        keys, values = (serde_of(types[part]).decode_rows(rows[part].combine_chunks()) for part in ("key", "value"))
        if keys:
            found[topic] = dict(zip(keys, values, strict=True))
    return _present(found)


def _settings(case: Case) -> dict[str, Any]:
    # No record cache: one step takes many records, of whose updates the cache would pass on the last one alone.
    return {"application.id": "app", **case.get("config", {}), "statestore.cache.max.bytes": 0}


def _present(found: Tables) -> Tables:
    rows = {topic: {k: v for k, v in table.items() if v is not None} for topic, table in found.items()}
    return {topic: table for topic, table in rows.items() if table}


def _cuts(case: Case, app: Any) -> Iterator[Cut]:
    now_ms, offsets = 0, dict.fromkeys(app.inputs, 0)
    yield Cut(now_ms, _rows("", [], {}, 0))  # the tasks are there before the first record
    for topic, items in groupby(case["input"], lambda item: item.get("topic")):
        if topic is None:
            for item in items:
                now_ms += item["advance_ms"]
                yield Cut(now_ms, _rows("", [], {}, 0))
        else:
            taken = list(items)
            yield Cut(now_ms, _rows(topic, taken, app.inputs[topic], offsets[topic]))
            offsets[topic] += len(taken)


def _rows(topic: str, items: Iterable[Case], types: dict[str, Any], first: int) -> pa.Table:
    from kstreams.runtime.spark.rows import ARROW_OUT_SCHEMA

    rows = []
    for offset, item in enumerate(items, first):
        key, value = (
            None if item[part] is None else serde_of(types[part]).serialize(item[part]) for part in ("key", "value")
        )
        headers = [{"name": name, "value": text.encode()} for name, text in item.get("headers", [])]
        place = {"topic": topic, "partition": 0, "offset": offset, "timestamp": item["ts"], "origin": 0}
        rows.append({**place, "key": key, "value": value, "headers": headers or None})
    return pa.Table.from_pylist(rows, schema=ARROW_OUT_SCHEMA)


def _in_worker(packed: list[bytes]) -> Any:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from kstreams.runtime.spark.shipping import unpack

        for batch in batches:
            for number in batch["id"].to_pylist():
                yield from run_case(unpack(packed[number]), number)

    return run


def run_case(case: Prepared, number: int) -> Iterator[pa.RecordBatch]:
    """All rows that one case writes to topics, step by step."""
    from kstreams.runtime.spark.live_states import LIVE
    from kstreams.runtime.spark.program import Step
    from kstreams.runtime.spark.reports import raise_first, split_reports

    written, globals_ = 0, {}
    for at, cut in enumerate(case.cuts):
        if at % FORGET_EVERY == 0:
            LIVE.clear()
        step = Step(2 * at, 2 * at - 2 if at else -1, cut.now_ms, globals=globals_)
        for sub in case.program.sub_topologies:
            if sub.is_global:
                _load(case.program, sub, step, cut.rows)
                globals_[sub.id] = step.number
        rows, reports = split_reports(pa.concat_tables(_step(case, step, cut.rows)))
        raise_first(reports)
        for batch in rows.to_batches():
            yield _numbered(batch, number, written)
            written += len(batch)
    LIVE.clear()


def _load(program: Program, sub: SubTopology, step: Any, rows: pa.Table) -> None:
    from kstreams.runtime.spark.rows import batches_of
    from kstreams.runtime.spark.task_run import run_task

    for _ in run_task(program, sub, 0, step, batches_of(_read_by(program, sub.id, rows))):
        pass  # only its state matters


def _step(case: Prepared, step: Any, rows: pa.Table) -> list[pa.Table]:
    """The output of every sub-topology; what goes to a repartition topic is read by the ones after it."""
    from kstreams.runtime.spark.rows import batches_of
    from kstreams.runtime.spark.task_run import run_task

    produced = [rows]
    for number in case.order:
        mine = pa.concat_tables([_read_by(case.program, number, table) for table in produced])
        batches = run_task(case.program, case.program.sub_topology(number), 0, step, batches_of(mine))
        produced.append(pa.Table.from_batches(list(batches)))
    return produced[1:]


def _read_by(program: Program, number: int, rows: pa.Table) -> pa.Table:
    return rows.filter(pc.is_in(rows["topic"], pa.array(program.inputs[number], pa.string())))


def _numbered(batch: pa.RecordBatch, case: int, first: int) -> pa.RecordBatch:
    count = len(batch)
    batch = batch.set_column(1, "partition", pa.array([case] * count, pa.int32()))
    return batch.set_column(batch.num_columns - 1, "origin", pa.array(range(first, first + count), pa.int64()))
