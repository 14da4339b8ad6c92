"""The relational path beside hand-written Structured Streaming and beside tasks, over the same rows in one session.

Each case runs as the DataFrame that the relational path makes of its stream and as the hand-written query, both into
Spark's noop sink, once from the same topics by `format("kstreams")` and once from Parquet, with typed columns.
Stateless cases run from topic to topic too, on the relational path and as tasks. The two of a pair take turns, each
first as often as the other, after a run of each that does not count: else the second profits from what the first has
warmed up. The first triggers of a run do not count; of the others the median does.

`benchmarks.spark_code` runs programs of `explain --code` beside queries by hand over Spark's own Kafka source and sink.

`python -m benchmarks relational` runs all and appends to RESULTS.md; `python -m benchmarks.relational CASE...` runs
cases by name and appends nothing.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import kstreams as ks
from benchmarks import spark_code
from benchmarks.spark_paths import (
    CASES,
    TRIGGERS,
    WARM_UP,
    Case,
    frames_by_hand,
    number,
    session_of_benchmarks,
    write_log,
    write_parquet,
)
from benchmarks.spark_steps import rate, steps_of, triggers_of
from kstreams.processor.topology.topology import Topology

Frames = Mapping[str, Any]

PAIRS = 4
"""Runs of each query of a pair that count."""


def run() -> dict[str, float]:
    """Records a second within a trigger, and ratios."""
    return figures_of(RELATIONAL) | spark_code.figures_of(list(spark_code.CASES))


def figures_of(names: Mapping[str, Case] | list[str]) -> dict[str, float]:
    """The figures of some cases."""
    figures: dict[str, float] = {}
    session = session_of_benchmarks()
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            figures |= _figures(session, name, RELATIONAL[name], Path(folder))
    return figures


def _figures(session: Any, name: str, case: Case, folder: Path) -> dict[str, float]:
    rows = case.rows()
    write_log(folder / "log", rows)
    write_parquet(folder / "parquet", {topic: of_topic.typed() for topic, of_topic in rows.items()}, ())
    per_trigger = sum(len(of_topic.times) for of_topic in rows.values()) // TRIGGERS
    figures = {}
    for source in ("topics", "Parquet"):
        ours, by_hand = _rates_in_turn(
            partial(_relational, session, case, folder, source, per_trigger),
            partial(_by_hand, session, case, folder, source, per_trigger),
            folder,
        )
        figures[f"{name}, from {source}: relational"] = ours
        figures[f"{name}, from {source}: by hand"] = by_hand
        figures[f"{name}, from {source}: relational to by hand (ratio)"] = ours / by_hand
    return figures | (_to_topics(session, name, case, folder, per_trigger) if name in STATELESS else {})


def _rates_in_turn(first: Callable[[], Any], second: Callable[[], Any], folder: Path) -> tuple[float, float]:
    """Records a second of two queries."""
    of_first, of_second = [], []
    for turn in range(1 + PAIRS):
        for query, rates in ((first, of_first), (second, of_second))[:: 1 if turn % 2 else -1]:
            rates.append(rate(triggers_of(query(), "append", tempfile.mkdtemp(dir=folder)), WARM_UP))
    return statistics.median(of_first[1:]), statistics.median(of_second[1:])


def _relational(session: Any, case: Case, folder: Path, source: str, per_trigger: int) -> Any:
    """The results as a DataFrame, over topics or over DataFrames."""
    if source == "topics":
        config = {"log.dir": str(folder / "log"), "spark.kstreams.max.records": per_trigger}
        return case.tasks(ks.StreamsBuilder()).to_dataframe(session, config).drop("timestamp")
    frames = frames_by_hand(session, case, folder, "parquet", per_trigger)
    return case.tasks(_OverFrames(frames)).to_dataframe(session).drop("timestamp")


def _by_hand(session: Any, case: Case, folder: Path, source: str, per_trigger: int) -> Any:
    """The results of the hand-written query."""
    return case.twin(
        frames_by_hand(session, case, folder, "kstreams" if source == "topics" else "parquet", per_trigger)
    )


class _OverFrames(ks.StreamsBuilder):
    """Reads DataFrames where a topology names topics."""

    def __init__(self, frames: Frames) -> None:
        super().__init__()
        self._frames = frames

    def stream(self, topic: str, *, key: Any, value: Any) -> Any:  # type: ignore[override]
        rows = self.from_dataframe(self._frames[topic], key="key", timestamp="time")
        return rows.map_values(ks.col("value"), value=value)


def _to_topics(session: Any, name: str, case: Case, folder: Path, per_trigger: int) -> dict[str, float]:
    """From topic to topic on both paths."""
    rates = {}
    for path in ("task", "relational"):
        settings = {"spark_kstreams_path": path, "spark_kstreams_max_records": per_trigger}
        steps = steps_of(session, _topology(case), folder, f"{path}-{time.monotonic_ns()}", **settings)
        rates[path] = rate(steps, WARM_UP)
        figures = {f"{name}, topic to topic: {path}": found for path, found in rates.items()}
    return figures | {f"{name}, topic to topic: tasks to relational (ratio)": rates["task"] / rates["relational"]}


def _topology(case: Case) -> Topology:
    builder = ks.StreamsBuilder()
    case.tasks(builder).to("out")
    return builder.build()


def _map(builder: ks.StreamsBuilder) -> ks.KStream:
    return builder.stream("in", key=str, value=int).map((ks.key, ks.value + 1), key=str, value=int)


def _map_by_hand(frames: Frames) -> Any:
    from pyspark.sql import functions as F

    return frames["in"].select(F.col("key").cast("string"), (number(frames["in"], "value") + 1).alias("n"))


EVENTS: Callable[[], Any] = CASES["three expressions"].rows
STATELESS = {
    "three expressions": CASES["three expressions"],
    "three lambdas": CASES["three lambdas"],
    "map by expressions": Case(EVENTS, _map, _map_by_hand, "append"),
}
RELATIONAL = STATELESS | {
    name: CASES[name]
    for name in ("windowed count, 1,000 keys", "windowed count, 200,000 keys", "inner join", "left join")
}


if __name__ == "__main__":
    for what, figure in figures_of(sys.argv[1:] or list(RELATIONAL)).items():
        print(f"{what:<75} {figure:>14,.3f}", flush=True)
