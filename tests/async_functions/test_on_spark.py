"""Async functions, functions over batches and sugar in a Spark worker: the native task in one step, after shipping."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.kernel.batch import Batch, Row, TopicPartition
from kstreams.processor.topology.layout import lay_out
from kstreams.runtime.spark import engine
from kstreams.runtime.spark.cluster.shipping import pack, unpack
from kstreams.runtime.spark.exchange.reports import raise_first
from kstreams.runtime.spark.program import Program, program_of
from kstreams.runtime.spark.settings import SparkSettings
from kstreams.runtime.spark.steps import Step
from kstreams.runtime.spark.tasks.task_run import run_task
from tests.spark.stepped import written
from tests.spark.written_blocks import split_reports

pytestmark = pytest.mark.spark


async def louder(value: str) -> str:
    return value.upper()


def lengths(table: pa.Table) -> Any:
    return pc.cast(pc.utf8_length(table["value"]), pa.string())


SOURCE = TopicPartition("in", 0)

Use = Callable[[ks.KStream[str, str]], ks.KStream[Any, Any]]
USES: dict[str, tuple[Use, list[str]]] = {
    "async": (lambda stream: stream.map_values(louder), ["X", "YY", "X"]),
    "batch": (lambda stream: stream.map_batch(lengths, value=str), ["1", "2", "1"]),
    "deduplicate": (lambda stream: stream.deduplicate(100), ["x"]),
    "expire": (lambda stream: stream.to_table().expire(after=5).to_stream(), ["x", "yy", "x"]),
}


def built(use: Use) -> ks.Topology:
    builder = ks.StreamsBuilder({"default.dsl.store": "in_memory"})
    use(builder.stream("in", key=str, value=str)).to("out")
    return builder.build()


@pytest.mark.parametrize(("use", "expected"), USES.values(), ids=USES)
def test_a_task_in_a_worker_gives_the_same(use: Use, expected: list[str], tmp_path: Path) -> None:
    topology, existing = built(use), {"in": 1}
    config = Config.of({"application.id": "app", "statestore.cache.max.bytes": 0})
    layout = lay_out(topology, "app", existing)
    made = program_of(topology, config, SparkSettings.of(config), layout, existing, str(tmp_path))
    shipped: Program = unpack(pack(made))
    records = [Row(b"k", value, time, ()) for time, value in enumerate([b"x", b"yy", b"x"])]
    given = Batch.of_rows(SOURCE, records)
    out, reports = split_reports(run_task(shipped, shipped.sub_topologies[0], 0, Step(0), {SOURCE: [given]}))
    raise_first(reports)
    assert [(row.value or b"").decode() for row in written(out)] == expected


@pytest.mark.parametrize(("use", "why"), [(USES["async"][0], "async functions"), (USES["batch"][0], "batches are cut")])
def test_the_relational_path_says_why_it_is_not_taken(use: Use, why: str) -> None:
    config = Config.of({"application.id": "app", "spark.kstreams.path": "relational"})
    assert any(why in row.why for row in engine.explain(built(use), config))
