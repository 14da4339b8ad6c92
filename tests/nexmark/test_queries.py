"""Every query of Nexmark gives what DuckDB gives over the same events, as functions and as expressions."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from benchmarks.nexmark.answers import Verifier
from benchmarks.nexmark.generator import SIDE_INPUT, SIDE_ROWS, TOPIC, Events, Settings, all_events
from benchmarks.nexmark.queries import QUERIES, topology
from kstreams.testing import TopologyTestDriver

FORMS = [(query, form) for query, forms in QUERIES.items() for form in forms if query != "q10"]
EVENTS_WITH_RESULTS = {"q2": 2_000, "q3": 1_000}
Record = tuple[bytes | None, bytes | None]


@cache
def events_of(number: int) -> tuple[Events, Verifier]:
    events = all_events(Settings(events=number, rate=number // 40, out_of_order=10))
    return events, Verifier(events)


def written_by(query: str, form: str, events: Events, folder: Path) -> list[Record]:
    with TopologyTestDriver(topology(query, form, folder)) as driver:
        if query == "q13":
            side = driver.create_input_topic(SIDE_INPUT, key=int, value=str)
            looked_up = {auction % SIDE_ROWS for auction in events.bid["auction"].to_pylist()}
            side.pipe_key_values((name, str(name)) for name in looked_up)
        topic = driver.create_input_topic(TOPIC, key=bytes, value=bytes)
        for value, time in zip(events.as_json().to_pylist(), events.times().tolist(), strict=True):
            topic.pipe_value(value, time)
        return driver.create_output_topic(query, key=bytes, value=bytes).read_key_values()


@pytest.mark.parametrize(("query", "form"), FORMS, ids=lambda name: name)
def test_gives_what_sql_gives_over_the_same_events(query: str, form: str, tmp_path: Path) -> None:
    events, verifier = events_of(EVENTS_WITH_RESULTS.get(query, 200))
    records = written_by(query, form, events, tmp_path)
    assert records
    assert verifier.differences(query, records) == []


def test_a_wrong_a_missing_and_a_stray_result_are_found(tmp_path: Path) -> None:
    events, verifier = events_of(200)
    records = written_by("q18", "functions", events, tmp_path)
    (key, value), *others = dict(records).items()
    assert value is not None
    assert verifier.differences("q18", others) != []
    assert verifier.differences("q18", [*others, (key, value), (b"another", value)]) != []
    assert verifier.differences("q18", [*others, (key, value.replace(b'"url":"', b'"url":"x'))]) != []
