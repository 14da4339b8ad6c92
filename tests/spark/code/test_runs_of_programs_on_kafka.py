"""A program goes on after a stop, with partitions that are apart in time, and ends at a record that it cannot read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

import kstreams as ks
from kstreams.config import Config
from kstreams.errors import SerdeError
from kstreams.runtime.spark.code.program import program_of
from tests.spark.code.plain_pyspark import run_program
from tests.spark.running import Application, Row
from tests.support.kafka_topics import delete_everything

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow, pytest.mark.timeout(600)]

START = 1_600_000_000_000
HOUR = 3_600_000


class Event(msgspec.Struct, frozen=True):
    amount: int


@pytest.fixture
def settings(kafka: Any, tmp_path: Path) -> dict[str, Any]:
    delete_everything(kafka.bootstrap_servers)
    return {"bootstrap.servers": kafka.bootstrap_servers, "spark.kstreams.checkpoint": str(tmp_path / "checkpoint")}


def windows() -> ks.StreamsBuilder:
    """Counts and sums of minutes."""
    builder = ks.StreamsBuilder()
    minutes = builder.stream("events", key=str, value=Event).group_by_key()
    windowed = minutes.windowed_by(ks.TimeWindows(size=60_000, grace=10_000))
    windowed.aggregate(events=ks.len(), amount=ks.col("amount").sum()).to_stream().to("minutes")
    return builder


def application(folder: Path, topology: ks.StreamsBuilder, **settings: Any) -> Application:
    types = {"events": (str, Event), "minutes": (bytes, bytes), "letters": (bytes, bytes)}
    app = Application(None, folder, topology, types, **settings)
    return app.create("events", "minutes", "spark-minutes", "letters", "spark-letters")


def write_program(app: Application, folder: Path) -> Path:
    config = Config.of(app.settings)
    path = folder / "program.py"
    path.write_text(program_of(app.topology, config, {"events": 2}.get))
    return path


def test_a_partition_an_hour_ahead_loses_no_window_and_a_program_goes_on_after_a_stop(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    app = application(tmp_path, windows(), **settings, **{"spark.kstreams.max.records": 150})
    program = write_program(app, tmp_path)
    rows = [
        Row("events", f"user-{partition}-{n % 3}", Event(n), START + n * 3_000 + partition * HOUR, partition)
        for n in range(400)
        for partition in range(2)
    ]
    for part in (rows[:500], rows[500:]):
        app.write(part)
        finished = run_program(program)
        assert finished.returncode == 0, finished.stderr[-3_000:]
    app.run_natively(until_end=False)
    expected = {key: value for key, value, _ in app.rows("minutes", "")}
    assert app.table("minutes") == expected
    assert len(expected) == 6 * 21


def test_a_record_that_cannot_be_read_ends_the_program_as_it_ends_the_native_engine(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    app = application(tmp_path, windows(), **settings)
    app.types = {**app.types, "events": (str, bytes)}
    app.write([Row("events", "user", b'{"amount":1}', START), Row("events", "user", b'{"amount":1} x', START)])
    finished = run_program(write_program(app, tmp_path))
    assert finished.returncode != 0
    assert re.search(r"cannot read events-\d@1", finished.stderr)
    with pytest.raises(SerdeError, match=r"events-\d@1"):
        app.run_natively(until_end=False)


def test_records_that_cannot_be_read_become_dead_letters_and_close_no_windows(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    settings |= {"deserialization.exception.handler": "continue", "errors.dead.letter.queue.topic.name": "letters"}
    app = application(tmp_path, windows(), **settings, **{"spark.kstreams.max.records": 4})
    app.types = {**app.types, "events": (bytes, bytes)}
    wrong = [b'{"amount":1} x', b'{"amount":"1"}', b"", b'{"amount":null}']
    app.write(Row("events", b"user", b'{"amount":1}', START + n * 1_000, 0) for n in range(20))
    app.write(Row("events", b"user", value, START + HOUR, 0) for value in wrong)
    app.write([Row("events", b"\xff", b'{"amount":1}', START + HOUR, 0)])
    app.write(Row("events", b"user", b'{"amount":1}', START + n * 1_000, 0) for n in range(20))
    finished = run_program(write_program(app, tmp_path))
    assert finished.returncode == 0, finished.stderr[-3_000:]
    app.run_natively(until_end=False)
    assert app.table("minutes") == {key: value for key, value, _ in app.rows("minutes", "")} != {}
    letters, natively = (
        sorted(
            ((key, value, *places(headers)) for key, value, _, headers in app.rows("letters", prefix, headers=True)),
            key=repr,
        )
        for prefix in ("spark-", "")
    )
    assert letters == natively
    assert len(letters) == len(wrong) + 1


def places(headers: list[list[str]]) -> tuple[str, ...]:
    """Topic, partition and offset of the record of a dead letter."""
    texts = dict(headers)
    return tuple(texts[f"__streams.errors.{name}"] for name in ("topic", "partition", "offset"))
