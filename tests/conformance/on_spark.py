"""Runs recorded cases as tasks inside Spark: many cases in one job, each step of a case a step of its own history.

The recordings come from a driver that takes records in the order in which they are piped. A task takes those of a step
by time. So a step holds as many records as a task takes in the recorded order, or fewer when that is asked for; between
steps the worker now and then forgets its live state.

With one sub-topology every output record is compared, in order. With several, those of a step come in another order,
one sub-topology after the other, and final tables are compared; one record a step leaves no choice: all is compared.
"""

from __future__ import annotations

import logging
import tempfile
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from kstreams.config import Config
from kstreams.processor.topology.layout import lay_out
from kstreams.serdes import serde_of
from tests.conformance import recorded
from tests.conformance.recorded import Case, Rows, replay

if TYPE_CHECKING:
    from kstreams.runtime.spark.program import Program

FORGET_EVERY = 5
FAILED = "failed"
"""Not a topic, but why a case has no output."""
WHOLE = 1 << 30
"""As many records in a step as a task takes in the recorded order."""


@dataclass(frozen=True)
class Cut:
    """One step of a case: rows that follow each other, or none when only the wall clock moves."""

    now_ms: int
    rows: pa.Table


@dataclass(frozen=True)
class Prepared:
    """A case as the workers need it."""

    program: Program
    cuts: list[Cut] = field(default_factory=list)


def failures(cases: Sequence[Case]) -> list[str]:
    """Names of the cases that differ on Spark, in steps as large as can be or cut after seven records."""
    from kstreams.runtime.spark.cluster.session import spark_session
    from kstreams.runtime.spark.settings import SparkSettings

    session = spark_session(SparkSettings(delta=None))
    different = {*differing(session, cases, WHOLE), *differing(session, cases, 7)}
    return [case["name"] for case in cases if case["name"] in different]


def differing(session: Any, cases: Sequence[Case], most: int) -> list[str]:
    """Names of the cases whose output is not what was recorded without the record cache."""
    found = run_cases_spark(session, cases, most)
    return [case["name"] for case in cases if _view(case, most)(found[case["name"]]) != _view(case, most)(output(case))]


def output(case: Case) -> Rows:
    """What was recorded without the record cache."""
    return recorded.wanted(case, cached=False)[0]


def _view(case: Case, most: int) -> Any:
    return replay().by_topic if recorded.tasks_of(case) == 1 or most == 1 else recorded.final_tables


def run_cases_spark(session: Any, cases: Sequence[Case], most: int) -> dict[str, Rows]:
    """The output of every case, by its name, with at most so many records in a step."""
    from pyspark.sql import functions as F

    from kstreams.runtime.spark.cluster.shipping import pack
    from kstreams.runtime.spark.exchange.rows import OUT_SCHEMA

    with tempfile.TemporaryDirectory() as folder:
        applications = [application(case) for case in cases]
        numbered = enumerate(zip(cases, applications, strict=True))
        packed = [pack(prepare(case, app, Path(folder, str(i)), most)) for i, (case, app) in numbered]
        numbers = session.range(len(cases)).select(F.col("id").cast("int").alias("id"))
        slots = session.sparkContext.defaultParallelism
        out = numbers.repartitionById(slots, F.col("id") % slots).mapInArrow(_in_worker(packed), OUT_SCHEMA).toArrow()
    found = (output_rows(out, number, app) for number, app in enumerate(applications))
    return dict(zip((case["name"] for case in cases), found, strict=True))


def application(case: Case) -> Any:
    """The case's topology and the types of its topics."""
    return replay().Application(case, settings_of(case))


def prepare(case: Case, app: Any, folder: Path, most: int) -> Prepared:
    """Everything that is known of a case before it runs."""
    from kstreams.runtime.spark.program import program_of
    from kstreams.runtime.spark.settings import SparkSettings

    config, topology = Config.of(settings_of(case)), app.builder.build()
    existing = dict.fromkeys(app.inputs, 1)
    layout = lay_out(topology, "app", existing)
    program = program_of(
        topology,
        config,
        SparkSettings(snapshot_every=3, state_dir=str(folder / "local")),
        layout,
        existing,
        str(folder),
    )
    return Prepared(program, list(_cuts(case, app, most)))


def output_rows(out: pa.Table, number: int, app: Any) -> Rows:
    """The output of one case among the rows of all: `partition` holds its number, `origin` counts its rows."""
    mine = out.filter(pc.equal(out["partition"], number)).sort_by("origin")
    failed = mine.filter(pc.equal(mine["topic"], FAILED))
    if len(failed):
        return [[0, FAILED, None, failed["value"][0].as_py().decode(), 0, []]]
    return [row for topic, types in app.outputs.items() for row in _of_topic(mine, topic, types)]


def _of_topic(rows: pa.Table, topic: str, types: dict[str, Any]) -> Iterator[list[Any]]:
    rows = rows.filter(pc.equal(rows["topic"], topic))
    columns = (serde_of(types[part]).decode_rows(rows[part].combine_chunks()) for part in ("key", "value"))
    for key, value, timestamp, headers in zip(
        *columns, rows["timestamp"].to_pylist(), rows["headers"].to_pylist(), strict=True
    ):
        named = [[h["name"], None if h["value"] is None else h["value"].decode()] for h in headers or []]
        yield [0, topic, key, value, timestamp, named]


def settings_of(case: Case) -> dict[str, Any]:
    # No record cache: one step takes many records, of whose updates the cache would pass on the last one alone.
    return {"application.id": "app", **case.get("config", {}), "statestore.cache.max.bytes": 0}


def _cuts(case: Case, app: Any, most: int) -> Iterator[Cut]:
    now_ms, offsets = 0, dict.fromkeys(app.inputs, 0)
    yield Cut(now_ms, _rows([], app, offsets))  # the tasks are there before the first record
    for items in pieces(case, most):
        now_ms += items[0].get("advance_ms", 0)
        yield Cut(now_ms, _rows([item for item in items if "topic" in item], app, offsets))


def pieces(case: Case, most: int) -> Iterator[list[Case]]:
    """The input in pieces that a task takes in the order in which they were piped."""
    own_times = any("timestamp_extractor" in node for node in case["topology"])
    global_ = {node["topic"] for node in case["topology"] if node["op"] == "global_table"}
    piece: list[Case] = []
    for item in case["input"]:
        topics = {item.get("topic"), *(other.get("topic") for other in piece)}
        alone = len(topics) > 1 and (own_times or not topics.isdisjoint({None, *global_}))
        if piece and (alone or len(piece) == most or "advance_ms" in item or not _as_piped([*piece, item])):
            yield piece
            piece = []
        piece.append(item)
    if piece:
        yield piece


def _as_piped(items: Sequence[Case]) -> bool:
    """Whether a task takes records in this order: each time that of the topic whose next record has the lowest time."""
    waiting: dict[str, list[Case]] = {}
    for item in items:
        waiting.setdefault(item["topic"], []).append(item)
    for item in items:
        heads = [(of_topic[0]["ts"], topic) for topic, of_topic in waiting.items() if of_topic]
        if min(heads)[1] != item["topic"]:
            return False
        waiting[item["topic"]].pop(0)
    return True


def _rows(items: Iterable[Case], app: Any, offsets: dict[str, int]) -> pa.Table:
    from kstreams.runtime.spark.exchange.rows import ARROW_OUT_SCHEMA

    rows = []
    for item in items:
        topic, types = item["topic"], app.inputs[item["topic"]]
        key, value = (
            None if item[part] is None else serde_of(types[part]).serialize(item[part]) for part in ("key", "value")
        )
        headers = [{"name": name, "value": text.encode()} for name, text in item.get("headers", [])]
        times = {"timestamp": item["ts"], "stream_time": item["ts"]}
        place = {"topic": topic, "partition": 0, "offset": offsets[topic], "origin": 0, **times}
        rows.append({**place, "key": key, "value": value, "headers": headers or None})
        offsets[topic] += 1
    return pa.Table.from_pylist(rows, schema=ARROW_OUT_SCHEMA)


def _in_worker(packed: list[bytes]) -> Any:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from kstreams.runtime.spark.cluster.shipping import unpack

        logging.getLogger("kstreams.processor").setLevel(logging.ERROR)
        for batch in batches:
            for number in batch["id"].to_pylist():
                yield from _told(unpack(packed[number]), number)

    return run


def _told(case: Prepared, number: int) -> Iterator[pa.RecordBatch]:
    try:
        yield from run_case(case, number)
    except Exception:  # whatever ends one case, the others go on
        from kstreams.runtime.spark.exchange.rows import ARROW_OUT_SCHEMA

        row = {"topic": FAILED, "partition": number, "offset": 0, "timestamp": 0, "origin": 0}
        error = traceback.format_exc().encode()
        yield pa.RecordBatch.from_pylist([{**row, "value": error}], schema=ARROW_OUT_SCHEMA)


def run_case(case: Prepared, number: int) -> Iterator[pa.RecordBatch]:
    """All rows that one case writes to topics, step by step."""
    from kstreams.runtime.spark.exchange.reports import TaskReport, resting_tasks
    from kstreams.runtime.spark.steps import Step
    from tests.spark.stepped import forget_states, load_globals, rows_in, run_step

    written, states, resting = 0, {}, frozenset[str]()
    with _state_of_case(case):
        for at, cut in enumerate(case.cuts):
            if at % FORGET_EVERY == 0:
                forget_states(case.program)
            step = Step(2 * at, cut.now_ms, states=states, resting=resting)
            given, reports = rows_in(case.program, cut.rows), list[TaskReport]()
            tables, states = run_step(case.program, load_globals(case.program, step, given), given, reports)
            resting = resting_tasks(reports)
            for batch in pa.concat_tables(tables).to_batches():
                yield _numbered(batch, number, written)
                written += len(batch)


@contextmanager
def _state_of_case(case: Prepared) -> Iterator[None]:
    """Leave nothing behind that writes to the folder of the case, since the driver deletes it after the last case."""
    from kstreams.runtime.spark.tasks.snapshots import SNAPSHOTS
    from tests.spark.stepped import forget_states

    try:
        yield
    finally:
        SNAPSHOTS.wait()  # a thread of the worker writes them
        forget_states(case.program)


def _numbered(batch: pa.RecordBatch, case: int, first: int) -> pa.RecordBatch:
    count = len(batch)
    batch = batch.set_column(1, "partition", pa.array([case] * count, pa.int32()))
    return batch.set_column(
        batch.schema.get_field_index("origin"), "origin", pa.array(range(first, first + count), pa.int64())
    )
