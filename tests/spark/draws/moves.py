"""Ways to run a draw on one engine and, from somewhere in its input, on the other: `--layer moves`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from kstreams.app import App, export_state, import_state
from kstreams.config import Config
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.log import open_log
from kstreams.runtime.native.streams import KafkaStreams
from tests.spark.draws.draw import INPUTS, TYPES, Draw
from tests.spark.draws.engines import EXACTLY_ONCE, application, results
from tests.spark.draws.in_steps import ends_after
from tests.spark.draws.results import Results
from tests.spark.running import Application

Settings = dict[str, Any]

BOTH: Settings = {"spark.kstreams.prefix": "", **EXACTLY_ONCE}
"""Both engines write to the same topics."""


def move_ways(draw: Draw, session: Any = None) -> dict[str, Callable[[Path], Results]]:
    """Natively, and natively again when the state has lain in a checkpoint of Spark; with a session, on Spark before or
    after."""
    chance = draw.random("moves")
    after, steps = chance.randint(1, len(draw.rows)), chance.randint(1, 2)
    small = {"spark.kstreams.max.records": -(-len(draw.rows) // chance.randint(2, 4))}
    threads = {"num.stream.threads": chance.choice([1, 4]), "max.poll.records": chance.choice([3, 17, 60])}
    ways: dict[str, Callable[[Path], Results]] = {
        f"moved through Spark after {after} rows, {threads}": lambda folder: _through(draw, folder, after, threads)
    }
    if session is None:
        return ways
    return ways | {
        f"moved to Spark after {after} rows, {threads}, {small}": lambda folder: _to_spark(
            draw, folder, session, after, threads | small
        ),
        f"moved from Spark after {steps} steps, {small}": lambda folder: _from_spark(
            draw, folder, session, steps, small
        ),
    }


def _through(draw: Draw, folder: Path, after: int, settings: Settings) -> Results:
    app, rest = _half_done(draw, folder, after, settings)
    _move(app, "native", "spark")
    _move(app, "spark", "native")
    _write(app, rest)
    app.run_natively(**BOTH, **settings)
    return results(app, "")


def _to_spark(draw: Draw, folder: Path, session: Any, after: int, settings: Settings) -> Results:
    app, rest = _half_done(draw, folder, after, settings)
    _move(app, "native", "spark")
    _write(app, rest)
    app.spark = session
    app.run(**BOTH, **settings)
    return results(app, "")


def _from_spark(draw: Draw, folder: Path, session: Any, steps: int, settings: Settings) -> Results:
    app = application(draw, folder, session)
    app.run(until_end=False, stop_after=steps, **BOTH, **settings)
    _move(app, "spark", "native")
    app.run_natively(**BOTH)
    return results(app, "")


def _half_done(draw: Draw, folder: Path, after: int, settings: Settings) -> tuple[Application, list[Batch]]:
    """An application that has processed its first rows natively, in the order of time; and the rows that follow."""
    whole = application(draw, folder / "whole")
    ends = ends_after(draw, whole, after)
    app = Application(None, folder / "moved", draw.topology(), TYPES)
    app.create(*INPUTS, "odd", "even", partitions=draw.partitions)
    written = list(_written(whole))
    cut = [int(batch.offsets.searchsorted(ends.get(batch.source, 1 << 60))) for batch in written]
    _write(app, (batch.slice(0, at) for batch, at in zip(written, cut, strict=True)))
    streams = KafkaStreams(app.topology, {**app.settings, **BOTH, **settings, "state.dir": str(app.folder / "state")})
    streams.start(once=True)
    assert streams.wait(60.0)
    return app, [batch.slice(at, len(batch)) for batch, at in zip(written, cut, strict=True)]


def _written(app: Application) -> Iterable[Batch]:
    with open_log(app.folder / "log") as log, log.consumer() as consumer, log.admin() as admin:
        counts = {topic: admin.describe_topic(topic).partitions for topic in INPUTS}
        consumer.assign([TopicPartition(topic, number) for topic, count in counts.items() for number in range(count)])
        while batches := consumer.poll(0.0, 100_000):
            yield from batches


def _write(app: Application, batches: Iterable[Batch]) -> None:
    with open_log(app.folder / "log") as log, log.producer() as producer:
        for batch in batches:
            producer.send_batch(batch)


def _move(app: Application, source: str, target: str) -> None:
    config = Config.of({**app.settings, **BOTH, "state.dir": str(app.folder / "state")})
    loaded, to = App(app.topology, config, app.folder / "app.py"), app.folder / f"from {source}"
    export_state(loaded, to, source)
    import_state(loaded, to, target, replace=True)
