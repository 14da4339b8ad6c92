"""Applications that run in parts, now on one engine, now on the other, with their state moved in between."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import kstreams as ks
from kstreams.app import App, export_state, import_state
from kstreams.config import Config
from kstreams.runtime.native.streams import KafkaStreams
from kstreams.state.bundle import Bundle
from tests.spark.running import Application, Row, changelog

TYPES = {"in": (str, int), "other": (str, str), "out": (str, str), "w": (str, int)}
PARTS = [
    [
        Row(topic, "abcdefg"[(n * 5 + part) % 7], value, 10 * n + 1_000 * part - (17 if n % 4 == 0 else 0))
        for n in range(40)
        for topic, value in (("in", n), ("other", f"t{n}"))
    ]
    for part in range(1, 4)
]


def shown(stream: Any) -> None:
    stream.map(lambda key, value: (str(key), str(value)), key=str, value=str).to("out")


def counts(builder: ks.StreamsBuilder) -> None:
    shown(builder.stream("in", key=str, value=int).group_by_key().count("counts").to_stream())


def regrouped_windows(builder: ks.StreamsBuilder) -> None:
    grouped = builder.stream("in", key=str, value=int).group_by(lambda key, value: str(value % 5), key=str)
    shown(grouped.windowed_by(ks.TimeWindows(size=100, grace=50)).count().to_stream())


def sessions_suppressed(builder: ks.StreamsBuilder) -> None:
    grouped = builder.stream("in", key=str, value=int).group_by_key()
    windows = grouped.windowed_by(ks.SessionWindows(gap=40, grace=20)).count()
    shown(windows.suppress(ks.Suppressed.until_window_closes()).to_stream())


def joined(builder: ks.StreamsBuilder) -> None:
    other = builder.stream("other", key=str, value=str)
    windows = ks.JoinWindows(before=30, after=30, grace=20)
    types = {"key": str, "value": int, "other_value": str}
    shown(builder.stream("in", key=str, value=int).outer_join(other, lambda a, b: f"{a}/{b}", windows=windows, **types))


def joined_for_ever(builder: ks.StreamsBuilder) -> None:
    other = builder.stream("other", key=str, value=str).filter(lambda key, value: value.endswith("7"))
    types = {"key": str, "value": int, "other_value": str}
    shown(builder.stream("in", key=str, value=int).join(other, lambda a, b: f"{a}/{b}", retain=None, **types))


def joined_by_retention(builder: ks.StreamsBuilder) -> None:
    other = builder.stream("other", key=str, value=str)
    types = {"key": str, "value": int, "other_value": str}
    shown(builder.stream("in", key=str, value=int).outer_join(other, lambda a, b: f"{a}/{b}", retain=60, **types))


def tables(builder: ks.StreamsBuilder) -> None:
    left = builder.stream("in", key=str, value=int).group_by_key().count()
    versions = ks.Materialized("versions", history_retention=10_000)
    right = builder.table("other", key=str, value=str, materialized=versions)
    shown(left.join(right, lambda a, b: f"{a}/{b}").to_stream())


def global_table(builder: ks.StreamsBuilder) -> None:
    other = builder.global_table("other", key=str, value=str)
    found = builder.stream("in", key=str, value=int).join(other, lambda a, b: f"{a}/{b}", key_selector=lambda k, v: k)
    shown(found.group_by_key(key=str, value=str).reduce(max).to_stream())


def foreign_key(builder: ks.StreamsBuilder) -> None:
    left, right = builder.table("in", key=str, value=int), builder.table("other", key=str, value=str)
    shown(left.join(right, lambda a, b: f"{a}/{b}", foreign_key=lambda value: "abcdefg"[value % 7]).to_stream())


APPLICATIONS: dict[str, Callable[[ks.StreamsBuilder], None]] = {
    "counts": counts,
    "regrouped windows": regrouped_windows,
    "sessions and suppress": sessions_suppressed,
    "outer join": joined,
    "join for ever": joined_for_ever,
    "outer join by retention": joined_by_retention,
    "versioned and other tables": tables,
    "global table": global_table,
    "foreign key": foreign_key,
}


class Moving(Application):
    """An application that runs in parts, each on the engine that the test says; both write to the same topics."""

    def loaded(self) -> App:
        config = Config.of({**self.settings, "state.dir": str(self.folder / "state"), "spark.kstreams.prefix": ""})
        return App(self.topology, config, self.folder / "app.py")

    def run_part(self, engine: str, rows: list[Row], *, until_end: bool = False) -> None:
        self.write(rows)
        if engine == "spark":
            self.run(until_end=until_end, **{"spark.kstreams.max.records": 30, "spark.kstreams.prefix": ""})
            return
        streams = KafkaStreams(self.topology, self.loaded().config)
        streams.start(once=not until_end, until_end=until_end)
        assert streams.wait(60.0)

    def export(self, engine: str, name: str) -> Bundle:
        return export_state(self.loaded(), self.folder / name, engine)

    def take(self, engine: str, name: str, *, replace: bool = True) -> Bundle:
        return import_state(self.loaded(), self.folder / name, engine, replace=replace)

    def move(self, source: str, target: str) -> None:
        name = f"bundle {len(list(self.folder.glob('bundle *')))}"
        self.export(source, name)
        self.take(target, name)

    def results(self) -> dict[Any, Any]:
        """The updates of each key, in order."""
        return changelog(self.rows("out", prefix=""))

    def last_results(self) -> dict[Any, Any]:
        """The last update of each key."""
        return {key: rows[-1] for key, rows in self.results().items()}


def moving(folder: Path, build: Callable[[ks.StreamsBuilder], None], spark: Any = None, partitions: int = 2) -> Moving:
    folder.mkdir(exist_ok=True)
    builder = ks.StreamsBuilder()
    build(builder)
    application = Moving(spark, folder, builder, TYPES)
    application.create("in", "other", "out", "w", partitions=partitions)
    return application


def natively(folder: Path, build: Callable[[ks.StreamsBuilder], None]) -> Moving:
    """One that never leaves the native engine."""
    alone = moving(folder, build)
    for rows in PARTS:
        alone.run_part("native", rows)
    return alone
