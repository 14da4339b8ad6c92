"""The task path of Spark beside hand-written Structured Streaming, over the same rows in the same session.

Each case runs four times: as tasks whose results go nowhere, as tasks that write a topic, and as the hand-written query
into Spark's noop sink, once from the same topics by `format("kstreams")` and once from Parquet. "Nowhere" for tasks is
an expression that keeps no row: every result is made, none is encoded. The first triggers, in which plans are compiled
and workers start, do not count; of the others the median does.

`python -m benchmarks spark_paths` runs all and appends to RESULTS.md; `python -m benchmarks.spark_paths CASE...` runs
cases by name and appends nothing.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import kstreams as ks
from benchmarks.spark_steps import rate, slices, steps_of, triggers_of, write_topic
from kstreams.log import open_log
from kstreams.log.partitioning import partitions_of
from kstreams.serdes import serde_of

PER_TRIGGER, TRIGGERS, WARM_UP = 400_000, 7, 3
PARTITIONS, STEPS = 2, 14
WINDOW_MS, JOIN_MS = 10_000, 5_000


class Rows(NamedTuple):
    """The records of one topic, as bytes, and the type of their values; keys are text."""

    keys: pa.Array
    values: pa.Array
    times: np.ndarray[Any, np.dtype[np.int64]]
    kind: type = int

    def typed(self) -> Rows:
        """The same as text and numbers."""
        keys, values = (
            serde_of(kind).decode_column(found) for kind, found in ((str, self.keys), (self.kind, self.values))
        )
        return self._replace(keys=keys, values=values)


class Case(NamedTuple):
    """One comparison: the data, the topology, and the query that a Spark user would write.

    Parameters
    ----------
    rows : callable
        The records by topic; all topics share what a trigger reads.
    tasks : callable
        Builds the stream of results.
    twin : callable
        Makes the query of a DataFrame by topic.
    mode : str
        The output mode of the query.
    tables : tuple of str
        Topics that the query reads as static frames.
    """

    rows: Callable[[], dict[str, Rows]]
    tasks: Callable[[ks.StreamsBuilder], ks.KStream]
    twin: Callable[[Mapping[str, Any]], Any]
    mode: str = "update"
    tables: tuple[str, ...] = ()


def run() -> dict[str, float]:
    """Records a second within a trigger, how tasks compare with the queries (ratios), what a step costs at least."""
    return figures_of(CASES) | fixed_costs()


def figures_of(names: Mapping[str, Case] | list[str]) -> dict[str, float]:
    """The figures of some cases."""
    figures: dict[str, float] = {}
    session = session_of_benchmarks()
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            figures |= _figures(session, name, CASES[name], Path(folder))
    return figures


def _figures(session: Any, name: str, case: Case, folder: Path) -> dict[str, float]:
    rows = case.rows()
    write_log(folder / "log", rows)
    write_parquet(folder / "parquet", rows, case.tables)
    in_tables = sum(len(rows[topic].times) for topic in case.tables)
    per_trigger = (sum(len(of_topic.times) for of_topic in rows.values()) - in_tables) // TRIGGERS
    found = {
        f"{name}: Spark's own": _twin_rate(session, case, folder, "kstreams", per_trigger),
        f"{name}: Spark's own, from Parquet": _twin_rate(session, case, folder, "parquet", per_trigger),
        f"{name}: tasks, to a topic": _task_rate(session, case, folder, "topic", per_trigger + in_tables),
        f"{name}: tasks": _task_rate(session, case, folder, "nowhere", per_trigger + in_tables),
    }
    from_topics, from_parquet, written, tasks = found.values()
    found[f"{name} to Spark's own (ratio)"] = tasks / from_topics
    found[f"{name} to Spark's own, from Parquet (ratio)"] = tasks / from_parquet
    found[f"{name} to a topic, to Spark's own (ratio)"] = written / from_topics
    return found


# tasks


def _task_rate(session: Any, case: Case, folder: Path, sink: str, per_trigger: int) -> float:
    builder = ks.StreamsBuilder()
    results = case.tasks(builder)
    if sink == "topic":
        results.to("out")
    else:
        results.filter(ks.value.is_null()).to("nothing")
    name = f"{sink}-{time.monotonic_ns()}"
    limits = {"spark_kstreams_path": "task", "spark_kstreams_max_records": per_trigger}
    return rate(steps_of(session, builder.build(), folder, name, **limits), WARM_UP)


# the same by hand


def _twin_rate(session: Any, case: Case, folder: Path, source: str, per_trigger: int) -> float:
    frames = frames_by_hand(session, case, folder, source, per_trigger)
    return rate(triggers_of(case.twin(frames), case.mode, tempfile.mkdtemp(dir=folder)), WARM_UP)


def frames_by_hand(session: Any, case: Case, folder: Path, source: str, per_trigger: int) -> dict[str, Any]:
    """The rows by topic, from topics (`kstreams`) or `parquet`."""
    from pyspark.sql import functions as F

    frames = {}
    topics = [path.name for path in (folder / "parquet").iterdir()]
    for topic in topics:
        if topic in case.tables:
            rows = session.read.parquet(str(folder / "parquet" / topic)).cache()
        elif source == "kstreams":
            rows = _from_topic(session, folder / "log", topic, per_trigger // (len(topics) - len(case.tables)))
        else:
            files = session.readStream.schema(session.read.parquet(str(folder / "parquet" / topic)).schema)
            rows = files.option("maxFilesPerTrigger", PARTITIONS).parquet(str(folder / "parquet" / topic))
        frames[topic] = rows.withColumn("time", F.timestamp_millis("timestamp"))
    return frames


def _from_topic(session: Any, log: Path, topic: str, per_trigger: int) -> Any:
    rows = session.readStream.format("kstreams").option("path", str(log)).option("topics", topic)
    return rows.option("maxRecordsPerTrigger", per_trigger).load()


# what a step costs that reads next to nothing


def fixed_costs() -> dict[str, float]:
    """Seconds of a step of ten records."""
    session = session_of_benchmarks()
    few = {"in": _events(1_000, STEPS * 10)}
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        write_log(Path(folder, "log"), few)
        cases = {"one sub-topology": _windowed_count, "re-keyed": _rekeyed, "without results": _nothing}
        for name, tasks in cases.items():
            for delta in ("none", str(Path(folder, "delta"))):
                builder = ks.StreamsBuilder()
                tasks(builder).to("out")
                settings = {"spark_kstreams_delta": delta, "spark_kstreams_max_records": 10}
                steps = steps_of(session, builder.build(), Path(folder), f"{time.monotonic_ns()}", **settings)
                with_delta = "" if delta == "none" else ", with Delta"
                found[f"a step, {name}{with_delta} (s)"] = statistics.median(seconds for _, seconds in steps[WARM_UP:])
    return found


def _nothing(builder: ks.StreamsBuilder) -> Any:
    return _windowed_count(builder).filter(ks.value.is_null())


# cases


def _events(num_keys: int, count: int = PER_TRIGGER * TRIGGERS) -> Rows:
    random = np.random.default_rng(7)
    names = pa.array([f"key-{i}" for i in range(num_keys)], pa.binary())
    numbers = serde_of(int).encode_rows(list(range(1_000)))
    keys = names.take(pa.array(random.integers(0, num_keys, count)))
    return Rows(keys, numbers.take(pa.array(random.integers(0, 1_000, count))), np.arange(count) // 10)


def _lines() -> Rows:
    random = np.random.default_rng(7)
    count = PER_TRIGGER * TRIGGERS // 8
    ranks = np.minimum(random.zipf(1.3, (count, 8)), 10_000)
    lines = pa.array([" ".join(f"word{rank}" for rank in line) for line in ranks.tolist()]).cast(pa.binary())
    return Rows(lines, lines, np.arange(count), str)


def _clicks() -> dict[str, Rows]:
    random, users, count = np.random.default_rng(7), 20_000, PER_TRIGGER * TRIGGERS // 4
    names = pa.array([f"user-{i}" for i in range(users)], pa.binary())
    found = {}
    for topic in ("searches", "clicks"):
        column = names.take(pa.array(random.integers(0, users, count)))
        found[topic] = Rows(column, column, np.arange(count) // 5, str)
    return found


def _sales() -> dict[str, Rows]:
    users = 50_000
    names = pa.array([f"key-{i}" for i in range(users)], pa.binary())
    return {"sales": _events(users), "users": Rows(names, names, np.zeros(users, np.int64), str)}


def number(rows: Any, column: str) -> Any:
    """An int, which kstreams writes as eight bytes."""
    from pyspark.sql import functions as F

    is_typed = rows.schema[column].dataType.typeName() == "long"
    return F.col(column) if is_typed else F.conv(F.hex(column), 16, 10).cast("bigint")


def _windowed_count(builder: ks.StreamsBuilder) -> ks.KStream:
    windows = ks.TimeWindows(size=WINDOW_MS, grace=10_000)
    return builder.stream("in", key=str, value=int).group_by_key().windowed_by(windows).count().to_stream()


def _windowed_count_by_hand(frames: Mapping[str, Any]) -> Any:
    from pyspark.sql import functions as F

    timed = frames["in"].withWatermark("time", "10 seconds")
    return timed.groupBy(F.window("time", "10 seconds"), "key").count()


def _rekeyed(builder: ks.StreamsBuilder) -> ks.KStream:
    windows = ks.TimeWindows(size=WINDOW_MS, grace=10_000)
    grouped = builder.stream("in", key=str, value=int).group_by(lambda key, value: f"by-{value % 100}", key=str)
    return grouped.windowed_by(windows).count().to_stream()


def _rekeyed_by_hand(frames: Mapping[str, Any]) -> Any:
    from pyspark.sql import functions as F

    by = F.udf(lambda value: f"by-{value % 100}", "string", useArrow=True)
    timed = frames["in"].withWatermark("time", "10 seconds")
    timed = timed.select("time", by(number(timed, "value")).alias("by"))
    return timed.groupBy(F.window("time", "10 seconds"), "by").count()


def _lambdas(builder: ks.StreamsBuilder) -> ks.KStream:
    numbers = builder.stream("in", key=str, value=int).map_values(lambda n: n + 1, value=int)
    return numbers.filter(lambda key, n: n % 3 != 0).map_values(lambda n: n * 2, value=int)


def _lambdas_by_hand(frames: Mapping[str, Any]) -> Any:
    from pyspark.sql import functions as F

    add = F.udf(lambda n: n + 1, "bigint", useArrow=True)
    keep = F.udf(lambda key, n: n % 3 != 0, "boolean", useArrow=True)
    twice = F.udf(lambda n: n * 2, "bigint", useArrow=True)
    numbers = frames["in"].select(F.col("key").cast("string"), add(number(frames["in"], "value")).alias("n"))
    return numbers.where(keep("key", "n")).select("key", twice("n").alias("n"))


def _expressions(builder: ks.StreamsBuilder) -> ks.KStream:
    numbers = builder.stream("in", key=str, value=int).map_values(ks.value + 1, value=int)
    return numbers.filter(ks.value % 3 != 0).map_values(ks.value * 2, value=int)


def _expressions_by_hand(frames: Mapping[str, Any]) -> Any:
    from pyspark.sql import functions as F

    numbers = frames["in"].select(F.col("key").cast("string"), (number(frames["in"], "value") + 1).alias("n"))
    return numbers.where("n % 3 != 0").select("key", (F.col("n") * 2).alias("n"))


def _words(builder: ks.StreamsBuilder) -> ks.KStream:
    words = builder.stream("in", key=str, value=str).flat_map_values(lambda line: line.lower().split(), value=str)
    return words.group_by(lambda key, word: word, key=str).count().to_stream()


def _words_by_hand(frames: Mapping[str, Any]) -> Any:
    from pyspark.sql import functions as F

    split = F.udf(lambda line: line.lower().split(), "array<string>", useArrow=True)
    return frames["in"].select(F.explode(split(F.col("value").cast("string"))).alias("word")).groupBy("word").count()


def _join(kind: str) -> Callable[[ks.StreamsBuilder], ks.KStream]:
    def declare(builder: ks.StreamsBuilder) -> ks.KStream:
        searches, clicks = (builder.stream(topic, key=str, value=str) for topic in ("searches", "clicks"))
        windows = ks.JoinWindows(before=JOIN_MS, after=0, grace=1_000)
        joined: ks.KStream = getattr(clicks, kind)(searches, lambda click, search: click, windows=windows, value=str)
        return joined

    return declare


def _join_by_hand(kind: str) -> Callable[[Mapping[str, Any]], Any]:
    def declare(frames: Mapping[str, Any]) -> Any:
        from pyspark.sql import functions as F

        left, right = (frames[topic].withWatermark("time", "1 second").alias(topic) for topic in ("clicks", "searches"))
        near = "clicks.key = searches.key and searches.time between clicks.time - interval 5 seconds and clicks.time"
        pick = F.udf(lambda click, search: click, "string", useArrow=True)
        texts = (F.col(f"{topic}.value").cast("string") for topic in ("clicks", "searches"))
        return left.join(right, F.expr(near), kind).select("clicks.key", pick(*texts))

    return declare


def _table_join(builder: ks.StreamsBuilder) -> ks.KStream:
    users = builder.table("users", key=str, value=str)
    return builder.stream("sales", key=str, value=int).join(users, lambda sale, user: f"{sale}{user}", value=str)


def _table_join_by_hand(frames: Mapping[str, Any]) -> Any:
    from pyspark.sql import functions as F

    pick = F.udf(lambda sale, user: f"{sale}{user}", "string", useArrow=True)
    users = frames["users"].select("key", F.col("value").cast("string").alias("user"))
    sales = frames["sales"].select("key", number(frames["sales"], "value").alias("sale"))
    return sales.join(users, "key").select("key", pick("sale", "user"))


CASES = {
    "windowed count, 1,000 keys": Case(lambda: {"in": _events(1_000)}, _windowed_count, _windowed_count_by_hand),
    "windowed count, 200,000 keys": Case(lambda: {"in": _events(200_000)}, _windowed_count, _windowed_count_by_hand),
    "re-keyed windowed count": Case(lambda: {"in": _events(10_000)}, _rekeyed, _rekeyed_by_hand),
    "three lambdas": Case(lambda: {"in": _events(1_000)}, _lambdas, _lambdas_by_hand, "append"),
    "three expressions": Case(lambda: {"in": _events(1_000)}, _expressions, _expressions_by_hand, "append"),
    "word count, lines": Case(lambda: {"in": _lines()}, _words, _words_by_hand),
    "inner join": Case(_clicks, _join("join"), _join_by_hand("inner"), "append"),
    "left join": Case(_clicks, _join("left_join"), _join_by_hand("left"), "append"),
    "stream-table join": Case(_sales, _table_join, _table_join_by_hand, "append", ("users",)),
}


# data


def session_of_benchmarks() -> Any:
    """A session that reads topics."""
    from kstreams.runtime.spark.cluster.session import spark_session
    from kstreams.runtime.spark.io.source import register
    from kstreams.runtime.spark.settings import SparkSettings

    session = spark_session(SparkSettings())
    register(session)
    return session


def write_log(folder: Path, topics: Mapping[str, Rows]) -> None:
    """The rows as topics of a log."""
    with open_log(folder) as home, home.admin() as admin, home.producer() as producer:
        for topic, rows in topics.items():
            admin.create_topic(topic, PARTITIONS)
            write_topic(producer, topic, PARTITIONS, rows.keys, rows.values, rows.times)


def write_parquet(folder: Path, topics: Mapping[str, Rows], tables: tuple[str, ...]) -> None:
    """A file for each trigger and partition."""
    streams = [topic for topic in topics if topic not in tables]
    for topic, rows in topics.items():
        (folder / topic).mkdir(parents=True)
        chosen = partitions_of(rows.keys.cast(pa.binary()), PARTITIONS)
        for number, part in enumerate(
            slices(len(chosen), len(chosen) // TRIGGERS if topic in streams else len(chosen))
        ):
            for partition in range(PARTITIONS):
                mine = pa.array(chosen[part] == partition)
                table = pa.table([rows.keys[part], rows.values[part], pa.array(rows.times[part])], _COLUMNS)
                pq.write_table(table.filter(mine), folder / topic / f"{number:03d}-{partition}.parquet")


_COLUMNS = ["key", "value", "timestamp"]


if __name__ == "__main__":
    for what, figure in figures_of(sys.argv[1:] or list(CASES)).items():
        print(f"{what:<70} {figure:>14,.3f}")
