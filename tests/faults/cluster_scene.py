"""The scenes of the kills: an application and its input, its undisturbed results, and what differs from them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from kstreams.app import load_app
from kstreams.modules.installed import PACKAGE
from kstreams.runtime.spark.cluster.session import spark_session
from kstreams.runtime.spark.io.typed_rows import Serdes, serdes_written
from kstreams.runtime.spark.settings import SparkSettings
from kstreams.serdes.arrow_types import typed_column
from tests.faults import shop_input
from tests.spark.draws.large_results import Kind, changelog, difference, rows_of, table

PREFIX = "spark-"


class Result(NamedTuple):
    """A topic of results.

    Parameters
    ----------
    compared : tuple of Kind
        What has to be equal to the undisturbed run.
    """

    topic: str
    compared: tuple[Kind, ...]


class Scene(NamedTuple):
    """An application, what it reads, and what it writes.

    Parameters
    ----------
    write : callable
        Writes its input: given the address of the home, how many rows, and a seed.
    spark_queries : tuple of str
        The names of the queries of Spark that it runs as; empty if it runs as tasks.
    """

    app: Path
    name: str
    results: tuple[Result, ...]
    write: Callable[[str, int, int], None]
    spark_queries: tuple[str, ...] = ()


class Difference(NamedTuple):
    """One topic of results, beside the undisturbed one, or a Delta table beside its topic.

    Parameters
    ----------
    records : int
        That there are to be.
    rows : int
        That differ in what is compared: the final table, the records of each key in their order, or all records.
    """

    name: str
    records: int
    compared: str
    rows: int


def records(rows: pa.Table) -> pa.Table:
    """Every record, in any order: two tasks may have written those of a key."""
    return rows.select(["key", "value", "timestamp"])


def write_flights(address: str, rows: int, seed: int) -> None:
    """The flights of the example: so many of them, the same ones for each seed."""
    command = [sys.executable, str(FLIGHTS / "load.py"), str(rows)]
    subprocess.run(command, env=environment(KSTREAMS_BOOTSTRAP_SERVERS=address), check=True)


FLIGHTS = PACKAGE.parent / "examples" / "flights"
SCENES = {
    "shop": Scene(
        Path(__file__).with_name("shop.py"),
        "shop",
        tuple(Result(topic, (table, changelog)) for topic in ("minutes", "sums", "paid")),
        shop_input.write,
    ),
    "flights": Scene(
        FLIGHTS / "app.py",
        "flights",
        (
            Result("delays-by-hour", (records,)),
            Result("delays-by-airline", (table,)),
            Result("delayed-in-wind", (records,)),
        ),
        write_flights,
    ),
    "sales": Scene(
        Path(__file__).with_name("sales.py"),
        "sales",
        tuple(Result(topic, (records,)) for topic in ("minutes", "large", "pairs")),
        shop_input.write,
        ("1", "1-1", "2"),
    ),
}


def command(arguments: list[str], settings: Mapping[str, Any]) -> list[str]:
    """A call of kstreams with settings."""
    options = [option for key, value in settings.items() for option in ("-c", f"{key}={value}")]
    return [sys.executable, "-m", "kstreams", *arguments, "--until-end", *options]


def environment(**more: str) -> dict[str, str]:
    """What a process of kstreams needs to be found by, and to find us."""
    path = os.pathsep.join(filter(None, [str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")]))
    return {**os.environ, "PYTHONPATH": path, **more}


def run_natively(scene: Scene, folder: Path, settings: Mapping[str, Any], **more: str) -> None:
    """The undisturbed run: its results lie in the same home as those of Spark, without a prefix."""
    given = {**settings, "state.dir": folder / "native"}
    subprocess.run(command(["run", str(scene.app)], given), env=environment(**more), check=True)


def compare(scene: Scene, address: str) -> Iterator[Difference]:
    """The results of Spark beside those of the undisturbed run, topic by topic."""
    for result in scene.results:
        natively, on_spark = (rows_of(address, prefix + result.topic) for prefix in ("", PREFIX))
        for kind in result.compared:
            differing = difference(kind, natively, on_spark)
            yield Difference(result.topic, len(natively), kind.__name__, differing)


def compare_tables(scene: Scene, address: str, delta: Path) -> Iterator[Difference]:
    """The Delta tables beside the topics that Spark wrote with them."""
    session = spark_session(SparkSettings(conf={"spark.ui.enabled": "false"}))
    serdes = serdes_written(load_app(scene.app).topology.sub_topologies)
    try:
        for result in scene.results:
            rows = rows_of(address, PREFIX + result.topic)
            wanted, found = (
                _typed(rows, serdes[result.topic]),
                session.read.format("delta").load(str(delta / result.topic)).toArrow(),
            )
            wanted_rows, found_rows = (_counted(each.select(wanted.column_names)) for each in (wanted, found))
            differing = (wanted_rows - found_rows).total() + (found_rows - wanted_rows).total()
            yield Difference(f"{result.topic} in Delta", len(rows), "records", differing)
    finally:
        session.stop()


def _typed(rows: pa.Table, serdes: Serdes) -> pa.Table:
    """As a Delta table holds them."""
    kinds = dict(zip(("key", "value"), serdes, strict=True))
    return pa.table({name: typed_column(serde, rows[name].combine_chunks()) for name, serde in kinds.items()})


def _counted(rows: pa.Table) -> Counter[str]:
    return Counter(map(str, rows.to_pylist()))
