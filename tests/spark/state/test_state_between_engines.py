"""State goes from one engine to the other at a step boundary, with its positions: what follows is what would have."""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.errors import FencedError, StateError, TopologyError
from kstreams.kernel.clock import SystemClock
from kstreams.log import open_log
from kstreams.runtime.spark.engine import run
from kstreams.runtime.spark.runner import SparkRunner
from kstreams.state.bundle import Bundle, TaskRows
from tests.spark.moving import (
    APPLICATIONS,
    PARTS,
    Moving,
    counts,
    moving,
    natively,
    regrouped_windows,
    sessions_suppressed,
    shown,
)
from tests.spark.s3_server import s3_server

pytestmark = pytest.mark.spark

FEW = {"regrouped windows", "sessions and suppress", "outer join"}
EACH = pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in FEW else [pytest.mark.slow]) for name in APPLICATIONS]
)
ENGINES = pytest.mark.parametrize("engine", ["native", "spark"])


def same(name: str, found: Moving, expected: Moving) -> bool:
    assert expected.results()
    if name == "foreign key":  # the number of its updates depends on how changes and answers interleave
        return found.last_results() == expected.last_results()
    return found.results() == expected.results()


@EACH
def test_state_that_came_through_spark_goes_on_natively(tmp_path: Path, name: str) -> None:
    there = moving(tmp_path / "there", APPLICATIONS[name])
    for rows in PARTS:
        there.run_part("native", rows)
        there.move("native", "spark")
        shutil.rmtree(there.folder / "state")
        there.move("spark", "native")
    assert same(name, there, natively(tmp_path / "alone", APPLICATIONS[name]))


@pytest.mark.slow
@EACH
def test_a_run_that_changes_engines_gives_what_one_engine_gives(spark: Any, tmp_path: Path, name: str) -> None:
    there = moving(tmp_path / "there", APPLICATIONS[name], spark)
    there.run_part("spark", PARTS[0])
    there.move("spark", "native")
    there.run_part("native", PARTS[1])
    there.move("native", "spark")
    there.run_part("spark", PARTS[2])
    assert same(name, there, natively(tmp_path / "alone", APPLICATIONS[name]))


def test_a_backfill_on_spark_goes_on_natively(spark: Any, tmp_path: Path) -> None:
    there = moving(tmp_path / "there", regrouped_windows, spark)
    there.run_part("spark", PARTS[0])
    there.move("spark", "native")
    there.run_part("native", [*PARTS[1], *PARTS[2]])
    assert there.results() == natively(tmp_path / "alone", regrouped_windows).results()


def test_what_is_open_after_an_import_is_closed_at_the_end_of_input(spark: Any, tmp_path: Path) -> None:
    alone, there = (moving(tmp_path / name, sessions_suppressed, spark) for name in ("alone", "there"))
    for application in (alone, there):
        application.run_part("native", PARTS[0])
    there.move("native", "spark")
    alone.run_part("native", [], until_end=True)
    there.run_part("spark", [], until_end=True)
    assert there.results() == alone.results()
    there.move("spark", "native")
    there.run_part("native", [], until_end=True)  # it is over already
    assert there.results() == alone.results()


@pytest.mark.slow
def test_the_checkpoint_may_lie_in_an_object_store(tmp_path: Path) -> None:
    there = moving(tmp_path / "there", regrouped_windows)
    with s3_server() as server:
        there.settings |= {**server.conf, "spark.kstreams.checkpoint": server.location("checkpoints")}
        for rows in PARTS:
            there.run_part("native", rows)
            there.move("native", "spark")
            there.move("spark", "native")
    assert not (there.folder / "checkpoint").exists()
    assert there.results() == natively(tmp_path / "alone", regrouped_windows).results()


def through(builder: ks.StreamsBuilder) -> None:
    builder.stream("in", key=str, value=int).to("w")
    shown(builder.stream("w", key=str, value=int).group_by_key().count("counts").to_stream())


def test_a_topic_that_is_written_and_read_is_not_read_again(tmp_path: Path) -> None:
    application = moving(tmp_path / "app", through)
    application.run_part("native", PARTS[0])
    application.run_part("native", [])  # what a bounded run has written there
    application.move("native", "spark")
    application.move("spark", "native")
    application.run_part("native", [])
    last = {key: int(updates[-1][0]) for key, updates in application.results().items()}
    assert sum(last.values()) == 40


@ENGINES
def test_nothing_was_processed_so_there_is_nothing_to_export(tmp_path: Path, engine: str) -> None:
    application = moving(tmp_path / "app", counts)
    with pytest.raises(StateError, match="has processed nothing"):
        application.export(engine, "to")
    assert not (application.folder / "checkpoint" / "app").exists()


class Keep(ks.Processor):
    """Counts in a store that memory alone keeps natively."""

    def init(self, context: Any) -> None:
        self.kept = context.get_state_store("kept")

    def process(self, record: Any) -> None:
        self.kept.put(record.key, record.value)


@pytest.mark.slow
def test_rows_that_memory_alone_would_keep_are_left_out_with_a_warning(spark: Any, tmp_path: Path, caplog: Any) -> None:
    def materialization(builder: ks.StreamsBuilder) -> None:
        builder.add_state_store(ks.Stores.key_value("kept", key=str, value=int, store="memory", logging=False))
        builder.stream("in", key=str, value=int).process(Keep, stores=["kept"])

    application = moving(tmp_path / "app", materialization, spark)
    application.run_part("spark", PARTS[0])
    with caplog.at_level(logging.WARNING):
        application.move("spark", "native")
    assert "rows of the store kept are left out" in caplog.text


# what is refused: before anything changes


def on_both(folder: Path, spark: Any = None) -> Moving:
    """An application with state on both engines, and that of the native one in `from`."""
    application = moving(folder, counts, spark)
    application.run_part("native", PARTS[0])
    application.export("native", "from")
    application.take("spark", "from", replace=False)
    return application


@ENGINES
@pytest.mark.parametrize("damage", ["flipped", "cut", "gone"])
def test_a_damaged_bundle_changes_nothing(tmp_path: Path, engine: str, damage: str) -> None:
    application = on_both(tmp_path / "app")
    before = application.export(engine, "before")
    path = next(application.folder.glob("from/*_1/*.arrow"))
    raw = path.read_bytes()
    path.unlink()
    if damage != "gone":
        path.write_bytes(raw[:-1] if damage == "cut" else raw[:-1] + bytes([raw[-1] ^ 1]))
    with pytest.raises(StateError, match=r"is damaged|cannot be read"):
        application.take(engine, "from")
    after = application.export(engine, "after")
    assert (after.origin, after.tasks) == (before.origin, before.tasks)


@ENGINES
def test_state_is_replaced_only_on_request(tmp_path: Path, engine: str) -> None:
    with pytest.raises(StateError, match="--replace"):
        on_both(tmp_path / "app").take(engine, "from", replace=False)


@ENGINES
def test_another_topology_is_refused(tmp_path: Path, engine: str) -> None:
    on_both(tmp_path / "app")
    other = moving(tmp_path / "other", regrouped_windows)
    shutil.copytree(tmp_path / "app" / "from", other.folder / "from")
    with pytest.raises(TopologyError, match="does not fit the state"):
        other.take(engine, "from", replace=False)
    assert sorted(other.topics()) == sorted(["in", "other", "out", "w"])
    assert not (other.folder / "checkpoint" / "app").exists()


@ENGINES
def test_another_number_of_partitions_is_refused(tmp_path: Path, engine: str) -> None:
    on_both(tmp_path / "app")
    other = moving(tmp_path / "other", counts, partitions=3)
    shutil.copytree(tmp_path / "app" / "from", other.folder / "from")
    with pytest.raises(TopologyError, match="holds 2 tasks of sub-topology 0, but there are 3 here"):
        other.take(engine, "from", replace=False)


@ENGINES
def test_the_state_of_another_log_is_refused(tmp_path: Path, engine: str) -> None:
    on_both(tmp_path / "app")
    other = moving(tmp_path / "other", counts)
    shutil.copytree(tmp_path / "app" / "from", other.folder / "from")
    with pytest.raises(StateError, match="it is the state of another log"):
        other.take(engine, "from", replace=False)


@pytest.mark.parametrize("engine", ["native", pytest.param("spark", marks=pytest.mark.slow)])
def test_an_import_that_is_interrupted_counts_for_nothing(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    application = on_both(tmp_path / "app", spark)
    application.export(engine, "again")
    interrupted(application, monkeypatch)
    with pytest.raises(StateError, match="has processed nothing"):
        application.export("spark", "after")
    application.take("spark", "again")
    imported = application.export("spark", "after")
    interrupted(application, monkeypatch)
    application.run_part("spark", [])  # from the beginning
    assert held(application.export("spark", "anew")) == held(imported)


def interrupted(application: Moving, monkeypatch: pytest.MonkeyPatch) -> None:
    """An import to Spark that ends when half of the state is there."""
    with monkeypatch.context() as interrupting:
        interrupting.setattr(Bundle, "rows", raise_interrupt)
        with pytest.raises(KeyboardInterrupt):
            application.take("spark", "again")


def held(bundle: Bundle) -> list[tuple[Any, ...]]:
    """All rows of a bundle."""
    stores = [(task, *store) for task in bundle.tasks for store in bundle.rows(task).stores.items()]
    return sorted(
        (t, name, *row) for t, name, rows in stores for row in zip(*(c.to_pylist() for c in rows), strict=True)
    )


def raise_interrupt(bundle: Bundle, task: str, rows: Callable[..., TaskRows] = Bundle.rows) -> TaskRows:
    """What comes in the middle of an import."""
    if task != "0_0":
        raise KeyboardInterrupt
    return rows(bundle, task)


def test_windows_whose_state_spark_keeps_are_refused(tmp_path: Path) -> None:
    def closing(builder: ks.StreamsBuilder) -> None:
        windows = builder.stream("in", key=str, value=int).group_by_key().windowed_by(ks.TimeWindows(size=10, grace=0))
        windows.emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE).count().to_stream().to("out", value=int)

    application = moving(tmp_path / "app", closing)
    application.run_part("native", PARTS[0])
    application.export("native", "to")
    application.settings["spark.kstreams.path"] = "relational"
    with pytest.raises(TopologyError, match=r"run with spark\.kstreams\.path = auto"):
        application.take("spark", "to")


def test_a_driver_that_runs_is_waited_for(spark: Any, tmp_path: Path) -> None:
    application = on_both(tmp_path / "app")
    loaded, stop, steps = application.loaded(), threading.Event(), threading.Event()
    how = {"stop": stop, "on_progress": lambda progress: steps.set()}
    driver = threading.Thread(target=lambda: run(loaded.topology, loaded.config, **how))
    driver.start()
    try:
        application.write(PARTS[1])
        assert steps.wait(60)
        for move in (application.take, application.export):
            with pytest.raises(StateError, match="on Spark is in use by process"):
                move("spark", "from")
    finally:
        stop.set()
        driver.join()
    assert sum(application.export("spark", "after").origin.positions["in"].values()) == 80


@pytest.mark.slow
def test_a_driver_elsewhere_can_commit_nothing_more(spark: Any, tmp_path: Path) -> None:
    application = on_both(tmp_path / "app", spark)
    errors: list[Exception] = []

    def drive() -> None:
        """What a driver on another machine does, which does not see the lock."""
        config = application.loaded().config
        with open_log(application.folder / "log") as log:
            runner = SparkRunner(application.topology, config, spark, log, SystemClock(), lambda _: steps.set())
            try:
                runner.run()
            except FencedError as error:
                errors.append(error)

    steps, driver = threading.Event(), threading.Thread(target=drive, daemon=True)
    driver.start()
    application.write(PARTS[1])
    assert steps.wait(60)
    application.take("spark", "from")
    application.write(PARTS[2])
    driver.join(60)
    assert errors
    application.take("spark", "from")  # the driver may have left the plan of a step
    application.run_part("spark", [])
    assert application.last_results() == natively(tmp_path / "alone", counts).last_results()
