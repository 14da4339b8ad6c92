"""However its input is cut into steps, an application on Spark gives what the native engine gives."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest

import kstreams as ks
from tests.spark.running import Application, Row

pytestmark = pytest.mark.spark

TYPES = {
    "a": (str, int),
    "b": (str, int),
    "windows": (str, int),
    "sessions": (str, int),
    "pairs": (str, int),
    "seen": (str, int),
}
RESULTS = {"windows", "sessions", "pairs", "seen"}
Build = Callable[[ks.StreamsBuilder], None]
SECOND = 1_000


def skewed(seed: int, topic: str, rows: int, start_ms: int) -> list[Row]:
    """One partition an hour ahead of the other, both a little out of order, with bursts and a record far ahead."""
    draw = random.Random(seed)
    found = []
    for i in range(rows):
        partition = i % 2
        time = start_ms + 3_600 * SECOND * partition + i // 6 * SECOND + draw.choice([0, 0, -4, 900, 3]) * 7
        if i == rows // 3:
            time += 500 * SECOND
        found.append(Row(topic, draw.choice("uvwxyz"), i, max(0, time), partition))
    return found


def of_one_partition_number(builder: ks.StreamsBuilder) -> None:
    """Windows, sessions, a join of streams and one with a table: nothing is repartitioned."""
    a, b = (builder.stream(topic, key=str, value=int) for topic in "ab")
    by_key = a.group_by_key()
    minutes = by_key.windowed_by(ks.TimeWindows(size=5 * SECOND, grace=2 * SECOND)).count()
    minutes.to_stream(lambda key, count: f"{key.key}@{key.window.start_ms}", key=str).to("windows", value=int)
    sessions = by_key.windowed_by(ks.SessionWindows(gap=2 * SECOND, grace=SECOND)).count()
    sessions.to_stream(lambda key, count: f"{key.key}@{key.window.start_ms}", key=str).to("sessions", value=int)
    within = ks.JoinWindows(before=3 * SECOND, after=SECOND)
    a.join(b, lambda left, right: 1_000 * left + right, windows=within).to("pairs", value=int)
    a.join(b.to_table(), lambda left, right: 1_000 * left + right).to("seen", value=int)


def of_all_partitions(builder: ks.StreamsBuilder) -> None:
    """Windows behind a filter and a repartition topic, to which both partitions write."""
    kept = builder.stream("a", key=str, value=int).filter(lambda key, value: value % 5 > 0)
    turned = kept.select_key(lambda key, value: "pqrst"[value % 5], key=str).group_by_key()
    counted = turned.windowed_by(ks.TimeWindows(size=5 * SECOND, grace=2 * SECOND)).count()
    counted.to_stream(lambda key, count: f"{key.key}@{key.window.start_ms}", key=str).to("windows", value=int)


@pytest.mark.parametrize(("build", "limit"), [(of_one_partition_number, 131), (of_all_partitions, 70)])
def test_records_of_all_steps_are_those_of_the_native_engine(spark, tmp_path: Path, build: Build, limit: int) -> None:
    builder = ks.StreamsBuilder()
    build(builder)
    app = Application(spark, tmp_path, builder, TYPES).create("a", "b")
    app.write(skewed(1, "a", 300, 0)).write(skewed(2, "b", 150, 20 * SECOND))
    progress = app.run(**{"spark.kstreams.max.records": limit})
    app.run_natively()
    assert progress.commits > 300 // limit
    for topic in sorted(RESULTS.intersection(app.topics())):
        ours, native = Counter(app.rows(topic)), Counter(app.rows(topic, ""))
        assert ours - native == native - ours == Counter(), topic
        assert sum(native.values()) > 20


class Hours:
    """A clock on which an hour passes whenever it is asked."""

    def __init__(self) -> None:
        self._hours = 0

    def wall_ms(self) -> int:
        self._hours += 1
        return self._hours * 3_600_000

    uptime_ms = wall_ms

    def sleep(self, seconds: float, until: Event | None = None) -> None: ...


def test_in_a_bounded_run_nothing_is_idle_however_long_its_steps_take(spark, tmp_path: Path) -> None:
    """As natively. With an hour between two steps, each would close the windows that are open behind it."""
    builder, types = ks.StreamsBuilder(), {"in": (str, int), "more": (str, int), "out": (str, int)}
    merged = builder.stream("in", key=str, value=int, idle=50).merge(
        builder.stream("more", key=str, value=int, idle=50)
    )
    windows = merged.group_by_key().windowed_by(ks.TimeWindows(size=10, grace=0)).count()
    closed = windows.suppress(ks.Suppressed.until_window_closes()).to_stream(lambda key, count: key.key, key=str)
    closed.to("out", value=int)
    app = Application(spark, tmp_path, builder, types).create("in", "more", partitions=1)
    app.write(Row("in", "ab"[i % 2], i, 2 * i) for i in range(10))
    app.write(Row("more", "ab"[i % 2], i, 20 + 2 * i) for i in range(10))
    app.run(clock=Hours(), **{"spark.kstreams.max.records": 3})
    app.run_natively()
    assert app.rows("out") == app.rows("out", "")
    assert len(app.rows("out")) == 8
