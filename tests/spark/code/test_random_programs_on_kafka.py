"""Random topologies over random data: a program differs from the native engine in nothing but what it declares.

Partitions are half an hour apart, one may be idle, and records are up to five seconds late. What is compared is what
remains equal under the declared differences: the values of each key in order where nothing changes the order, else the
records of each partition; the last update of each key; pairs; final results, which wait for an idle partition. A
program gives these when the records of a partition have passed their end, the native engine when those do that reach
the windows.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.expressions import Expr
from kstreams.runtime.spark.code.program import program_of
from tests.spark.code.plain_pyspark import run_program
from tests.spark.running import Application, Row
from tests.support.kafka_topics import delete_everything

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(1_800)]

START, HALF_HOUR, END = 1_600_000_000_000, 1_800_000, 1_600_100_000_000
PARTITIONS, RECORDS, TOPOLOGIES = 3, 120, 10


class Event(msgspec.Struct, frozen=True):
    n: int
    x: float | None
    s: str | None
    t: datetime | None


class Facts(msgspec.Struct, frozen=True):
    rows: int
    total: int
    greatest: float | None
    words: int


N, X, S, T = (ks.col(name) for name in "nxst")
PREDICATES: list[Expr] = [
    N % 3 > 0,
    (X > 1.5) | S.is_null(),
    ~S.str.contains("é"),
    datetime(2020, 9, 13, 12, 40) < T,
    N.between(-20, 30) & ~X.is_null(),
    ks.key.str.ends_with("0") | (N // 7 == 1),
]
NEW_NUMBERS: list[Expr] = [
    N + 1,
    -N,
    N // 4,
    N * 2 % 7,
    ks.when(X > 2.0).then(N).otherwise(0),
    S.str.len().fill_null(9),
]
NEW_FRACTIONS: list[Expr] = [X, X * 2, N / 4, X.fill_null(0.5), X / N, X.abs()]
NEW_TEXTS: list[Expr] = [S, S.str.upper(), S + "!", S.str.slice(0, 2), N.cast(str), S.str.replace_all("a", "b"), ks.key]
NEW_TIMES: list[Expr] = [
    T,
    T.dt.truncate(timedelta(minutes=1)),
    ks.timestamp.cast(datetime),
    T.fill_null(datetime(2000, 1, 1)),
]
FACTS = {"rows": ks.len(), "total": N.sum(), "greatest": X.max(), "words": S.count()}
TABLE = ks.struct(n=ks.left.col("n"), x=ks.right.col("x"), s=ks.right.col("s"), t=ks.left.col("t"))


class Drawn(NamedTuple):
    """A random topology, and the topics that it writes, by what is compared of them."""

    topology: ks.StreamsBuilder
    ordered: list[str]
    unordered: list[str]
    updates: list[str]
    closed: list[str]
    pairs: list[str]

    @property
    def outputs(self) -> list[str]:
        return [*self.ordered, *self.unordered, *self.updates, *self.closed, *self.pairs]


def drawn_topology(draw: random.Random) -> Drawn:
    drawn = Drawn(ks.StreamsBuilder(), [], [], [], [], [])
    events = drawn.topology.stream("events", key=str, value=Event)
    others = drawn.topology.stream("others", key=str, value=Event)
    rows = drawn.topology.table("rows", key=str, value=Event)
    for number in range(TOPOLOGIES):
        stream, is_ordered = events, True
        for _ in range(draw.randrange(4)):
            stream, is_ordered = _with_step(draw, stream, rows, is_ordered=is_ordered)
        _finish(draw, drawn, stream, others, f"out-{number}", is_ordered=is_ordered)
    return drawn


def _with_step(draw: random.Random, stream: Any, rows: Any, *, is_ordered: bool) -> tuple[Any, bool]:
    """A stream with one more operator, and whether the values of each key are still in order."""
    step = draw.choice(["filter", "filter_not", "map", "branch", "key", "merge", "table"])
    if step in ("filter", "filter_not"):
        return getattr(stream, step)(draw.choice(PREDICATES)), is_ordered
    if step == "map":
        new = ks.struct(
            n=draw.choice(NEW_NUMBERS), x=draw.choice(NEW_FRACTIONS), s=draw.choice(NEW_TEXTS), t=draw.choice(NEW_TIMES)
        )
        return stream.map_values(new, value=Event), is_ordered
    if step == "branch":
        branches = stream.split().branch(draw.choice(PREDICATES)).default_branch()
        return draw.choice(list(branches.values())), is_ordered
    if step == "key":
        return stream.select_key(ks.when(S.is_null()).then("none").otherwise(S)), False
    if step == "merge":
        return stream.merge(stream.filter(draw.choice(PREDICATES))), False
    table = draw.choice([rows, rows.filter(N > 0)])
    return getattr(stream, draw.choice(["join", "left_join"]))(table, TABLE, value=Event), is_ordered


def _finish(draw: random.Random, drawn: Drawn, stream: Any, others: Any, topic: str, *, is_ordered: bool) -> None:
    """Write a stream, or what is aggregated or joined of it; what changes its keys comes later than other records."""
    grace = 10_000 if is_ordered else 4 * HALF_HOUR
    finish = draw.choice(["stream", "count", "facts", "filtered", "windows", "closed", "sessions", "join"])
    if finish == "stream":
        stream.to(topic)
        (drawn.ordered if is_ordered else drawn.unordered).append(topic)
    elif finish in ("count", "facts", "filtered"):
        grouped = stream.group_by_key()
        table = grouped.aggregate(**FACTS, value=Facts) if finish == "facts" else grouped.count()
        (table.filter(ks.value % 2 == 0) if finish == "filtered" else table).to_stream().to(topic)
        drawn.updates.append(topic)
    elif finish == "join":
        windows = ks.JoinWindows(before=2_000, after=1_000, grace=grace)
        pair = ks.struct(n=ks.left.col("n"), x=ks.right.col("x"), s=ks.left.col("s"), t=ks.right.col("t"))
        stream.join(others, pair, windows=windows, value=Event).to(topic)
        drawn.pairs.append(topic)
    else:
        gap = ks.SessionWindows(gap=4_000, grace=grace)
        hops = ks.TimeWindows(size=30_000, advance=draw.choice([10_000, 30_000]), grace=grace)
        windowed = (
            stream.group_by_key().windowed_by(gap if finish == "sessions" else hops).aggregate(**FACTS, value=Facts)
        )
        is_final = finish != "windows"
        (windowed.suppress(ks.Suppressed.until_window_closes()) if is_final else windowed).to_stream().to(topic)
        (drawn.closed if is_final else drawn.updates).append(topic)


def drawn_rows(draw: random.Random, *, idle: bool) -> list[Row]:
    rows = [Row("rows", f"key-{n % PARTITIONS}-{n % 5}", _event(draw, START), START, n % PARTITIONS) for n in range(12)]
    for partition in range(PARTITIONS - idle):
        for topic in ("events", "others"):
            for number in range(RECORDS):
                late = draw.randrange(5_000) if draw.random() < 0.3 else 0
                time_ms = START + 60_000 + partition * HALF_HOUR + number * 900 - late
                rows.append(
                    Row(topic, f"key-{partition}-{draw.randrange(4)}", _event(draw, time_ms), time_ms, partition)
                )
            rows.append(Row(topic, f"key-{partition}-0", _event(draw, END), END, partition))
    return rows


def _event(draw: random.Random, time_ms: int) -> Event:
    time = datetime.fromtimestamp(time_ms / 1_000, UTC)
    text = draw.choice([None, "", "a", "abc é", "ß", 'say "no"'])
    return Event(draw.randrange(-50, 50), draw.choice([None, draw.randrange(40) / 8]), text, draw.choice([None, time]))


@pytest.mark.parametrize("seed", range(1, 4))
def test_a_program_differs_in_nothing_but_what_it_declares(kafka: Any, tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    drawn = drawn_topology(draw)
    idle = draw.random() < 0.3
    delete_everything(kafka.bootstrap_servers)
    app = Application(
        None,
        tmp_path,
        drawn.topology,
        dict.fromkeys(("events", "others", "rows"), (str, Event)) | dict.fromkeys(drawn.outputs, (bytes, bytes)),
        **{"bootstrap.servers": kafka.bootstrap_servers, "spark.kstreams.max.records": draw.choice([150, 1_000])},
    )
    topics = ["events", "others", "rows", *drawn.outputs, *(f"spark-{topic}" for topic in drawn.outputs)]
    app.create(*topics, partitions=PARTITIONS)
    app.write(drawn_rows(draw, idle=idle))
    app.run_natively(until_end=True)
    program = tmp_path / "program.py"
    program.write_text(program_of(app.topology, Config.of(app.settings), dict.fromkeys(topics, PARTITIONS).get))
    assert "It leaves out" not in program.read_text()
    finished = run_program(program)
    assert finished.returncode == 0, finished.stderr[-5_000:]
    _compare(app, drawn.ordered, _values_of_keys)
    _compare(app, drawn.unordered, _records_of_partitions)
    _compare(app, drawn.updates, _last_values)
    for topic in drawn.closed:
        found, expected = (Counter(_closed(app, topic, prefix)) for prefix in ("spark-", ""))
        assert found == expected or (idle and not found - expected), topic
    for topic in drawn.pairs:
        assert Counter(_pairs(app, topic, "spark-")) == Counter(_pairs(app, topic, "")), topic


def _compare(app: Application, topics: list[str], view: Callable[[Application, str, str], Any]) -> None:
    for topic in topics:
        assert view(app, topic, "spark-") == view(app, topic, ""), topic


def _pairs(app: Application, topic: str, prefix: str) -> list[tuple[bytes, bytes]]:
    return [(key, value) for key, value, _ in app.rows(topic, prefix)]


def _closed(app: Application, topic: str, prefix: str) -> list[tuple[bytes, bytes]]:
    """Final results, without those of the last records: natively the end of the input closes them too."""
    return [(key, value) for key, value in _pairs(app, topic, prefix) if int.from_bytes(key[-8:]) < END - HALF_HOUR]


def _last_values(app: Application, topic: str, prefix: str) -> dict[bytes, bytes]:
    """The last value of each key; a filter of a table gives tombstones of rows that were never there."""
    return {key: value for key, value in dict(_pairs(app, topic, prefix)).items() if value is not None}


def _records_of_partitions(app: Application, topic: str, prefix: str) -> list[Counter[tuple[bytes, bytes]]]:
    return [Counter((key, value) for key, value, _ in records) for records in app.partitions(topic, prefix)]


def _values_of_keys(app: Application, topic: str, prefix: str) -> list[dict[bytes, list[bytes]]]:
    partitions = []
    for records in app.partitions(topic, prefix):
        values: dict[bytes, list[bytes]] = {}
        for key, value, _ in records:
            values.setdefault(key, []).append(value)
        partitions.append(values)
    return partitions
