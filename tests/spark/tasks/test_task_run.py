"""A task in a step reads the state of the step before and writes its own, however often and wherever it is run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.errors import ProcessingError
from kstreams.kernel.batch import Batch, Row, TopicPartition
from kstreams.processor.topology.layout import lay_out
from kstreams.runtime.spark.cluster.shipping import pack, unpack
from kstreams.runtime.spark.exchange.reports import raise_first
from kstreams.runtime.spark.exchange.rows import ARROW_OUT_SCHEMA, record_batch
from kstreams.runtime.spark.program import Program, program_of
from kstreams.runtime.spark.settings import SparkSettings
from kstreams.runtime.spark.steps import StateVersion, Step
from kstreams.runtime.spark.tasks.manifests import newest
from kstreams.runtime.spark.tasks.snapshots import SNAPSHOTS
from kstreams.runtime.spark.tasks.task_run import run_task
from kstreams.serdes import serde_of
from tests.spark.stepped import forget_states, task_input_of, written
from tests.spark.written_blocks import batches_of, split_reports

pytestmark = pytest.mark.spark

States = dict[str, StateVersion]
WORDS = ["a", "b", "a", "c", "a", "b", "c", "c", "a", "b"]


def counting(folder: Path, **settings: Any) -> Program:
    builder = ks.StreamsBuilder()
    builder.stream("in", key=str, value=str).group_by_key().count().to_stream().to("out")
    return program(builder, folder, **settings)


def program(builder: ks.StreamsBuilder, folder: Path, **settings: Any) -> Program:
    local = {"spark.kstreams.state.dir": str(folder / "local")}
    config = Config.of({"application.id": "app", "statestore.cache.max.bytes": 0, **local, **settings})
    topology, existing = builder.build(), {"in": 1}
    layout = lay_out(topology, "app", existing)
    return program_of(topology, config, SparkSettings.of(config), layout, existing, str(folder))


def rows(*words: str, start: int = 0) -> pa.Table:
    records = [Row(word.encode(), b"", start + i, ()) for i, word in enumerate(words)]
    batch = record_batch(Batch.of_rows(TopicPartition("in", 0), records, start))
    table = pa.Table.from_batches([batch]).append_column("origin", pa.nulls(len(words), pa.int64()).fill_null(0))
    return table.append_column("stream_time", table["timestamp"]).cast(ARROW_OUT_SCHEMA)


Run = tuple[list[tuple[str, int]], States]


def stepped(app: Program, step: Step, table: pa.Table) -> Run:
    """Run the only task of the only sub-topology; keys and values of what it writes, and the state that it leaves."""
    out, reports = split_reports(run_task(app, app.sub_topologies[0], 0, step, task_input_of(batches_of(table))))
    raise_first(reports)
    read = serde_of(int).deserialize
    found = [(row.key.decode(), read(row.value)) for row in written(out)]
    return found, newest(report.states for report in reports)


def run(app: Program, step: Step, table: pa.Table) -> list[tuple[str, int]]:
    return stepped(app, step, table)[0]


def run_all(app: Program, *, forget: bool = False, twice: bool = False) -> list[tuple[str, int]]:
    found, states = [], {}
    for number, word in enumerate(WORDS):
        step = Step(2 * number, states=states)
        if twice:
            run(app, step, rows(word, start=number))
        if forget:
            forget_states(app)
        made, states = stepped(app, step, rows(word, start=number))
        found += made
    return found


EXPECTED = [(word, WORDS[: at + 1].count(word)) for at, word in enumerate(WORDS)]


def test_each_step_goes_on_with_the_state_of_its_parent(tmp_path: Path) -> None:
    assert run_all(counting(tmp_path)) == EXPECTED


def test_a_worker_that_has_nothing_rebuilds_the_state_from_the_files(tmp_path: Path) -> None:
    assert run_all(counting(tmp_path), forget=True) == EXPECTED


def test_a_step_run_again_by_a_worker_that_is_ahead_gives_the_same(tmp_path: Path) -> None:
    assert run_all(counting(tmp_path), twice=True) == EXPECTED


@pytest.mark.parametrize("forget", [False, True])
def test_snapshots_stand_for_the_changes_before_them(tmp_path: Path, forget: bool) -> None:
    app = counting(tmp_path, **{"spark.kstreams.snapshot.every": 3})
    assert run_all(app, forget=forget) == EXPECTED
    SNAPSHOTS.wait()
    assert list(tmp_path.rglob("*.snapshot"))
    assert len(list(tmp_path.rglob("*.changes"))) < len(WORDS)


def test_the_files_of_a_step_are_the_same_bytes_when_it_runs_again(tmp_path: Path) -> None:
    run_all(counting(tmp_path / "once"))
    run_all(counting(tmp_path / "twice"), twice=True, forget=True)
    files = {
        name: {file.name: file.read_bytes() for file in (tmp_path / name).rglob("*.changes")}
        for name in ("once", "twice")
    }
    assert files["once"] == files["twice"]
    assert len(files["once"]) == len(WORDS)


def test_an_abandoned_step_leaves_no_trace_in_another_one_after_the_same_parent(tmp_path: Path) -> None:
    app = counting(tmp_path)
    _, first = stepped(app, Step(0), rows("a"))
    run(app, Step(1, end=True, states=first), rows())
    found, second = stepped(app, Step(2, states=first), rows("a", start=1))
    assert found == [("a", 2)]
    assert run(app, Step(4, states=second), rows("a", start=2)) == [("a", 3)]


def test_a_late_attempt_at_a_step_that_counts_changes_nothing(tmp_path: Path) -> None:
    builder, calls = ks.StreamsBuilder(), iter(range(100))
    given = builder.stream("in", key=str, value=str).map_values(lambda value: next(calls), value=int)
    given.group_by_key().reduce(lambda a, b: a + 1000).to_stream().to("out")
    app = program(builder, tmp_path)
    found, states = stepped(app, Step(0), rows("a"))
    late, others = stepped(app, Step(0), rows("a"))
    assert (found, late) == ([("a", 0)], [("a", 1)])
    for after, total in ((states, 1000), (others, 1001)):
        assert run(app, Step(2, states=after), rows("a", start=1)) == [("a", total)]


def test_a_task_that_fails_keeps_nothing_of_the_step(tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    counted = builder.stream("in", key=str, value=str).group_by_key().count().to_stream()
    counted.map_values(lambda count: 1 // (3 - count), value=int, name="fragile").to("out")
    app = program(builder, tmp_path)
    _, states = stepped(app, Step(0), rows("a", "a"))
    with pytest.raises(ProcessingError, match="fragile") as caught:
        run(app, Step(2, states=states), rows("a", start=2))
    assert caught.value.operator == "fragile"
    assert str(caught.value.cause).startswith("integer division")
    assert run(app, Step(2, states=states), rows("b", start=2)) == [("b", 0)]


def test_rows_that_a_shuffle_has_mixed_are_put_in_order(tmp_path: Path) -> None:
    table = rows("a", "b", "a", "a")
    assert run(counting(tmp_path), Step(0), table.take([2, 0, 3, 1])) == [("a", 1), ("b", 1), ("a", 2), ("a", 3)]


def test_a_reduce_knows_its_first_value_in_another_process(tmp_path: Path) -> None:
    builder = ks.StreamsBuilder()
    lengths = builder.stream("in", key=str, value=str).map_values(len, value=int).group_by_key()
    lengths.reduce(lambda a, b: a + b + 1).to_stream().to("out")
    packed = pack(program(builder, tmp_path))
    assert run(unpack(packed), Step(0), rows("a", "a", "b", "a")) == [("a", 0), ("a", 1), ("b", 0), ("a", 2)]


def test_a_program_survives_its_way_to_the_workers(tmp_path: Path) -> None:
    assert run_all(unpack(pack(counting(tmp_path)))) == EXPECTED


def break_what_is_kept(folder: Path) -> None:
    """Damage the local files of every state."""
    for table in folder.rglob("rocksdb/*.sst"):
        table.write_bytes(bytes(byte ^ 1 for byte in table.read_bytes()))


def test_a_damaged_local_state_is_rebuilt_from_the_files(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    app, found, states = counting(tmp_path), list[tuple[str, int]](), States()
    for number, word in enumerate(WORDS):
        if number in (3, 7):
            break_what_is_kept(tmp_path)
        made, states = stepped(app, Step(2 * number, states=states), rows(word, start=number))
        found += made
    assert found == EXPECTED
    said = [record.getMessage() for record in caplog.records if "rebuilt from the state files" in record.getMessage()]
    assert len(said) == 2
