"""The steps of Quix and Bytewax in the benchmark give what DuckDB gives, in whatever order partitions are read."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from typing import Any

import pytest

from benchmarks.nexmark.answers import Verifier
from benchmarks.nexmark.generator import SIDE_ROWS, Events, Settings, all_events
from benchmarks.nexmark.programs.keyed_steps import QUERIES, Step, query_of


class DictState(dict[str, Any]):
    def set(self, name: str, value: Any) -> None:
        self[name] = value


@cache
def events_of(number: int) -> tuple[Events, Verifier]:
    events = all_events(Settings(events=number, rate=number // 40, out_of_order=10))
    return events, Verifier(events)


def after(step: Step, rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    states = defaultdict[str, DictState](DictState)
    return [result for row in rows for result in step.step(states[step.key(row)], row)]


@pytest.mark.parametrize("name", [*QUERIES, "q13"])
def test_steps_give_what_sql_gives(name: str) -> None:
    events, verifier = events_of(2_000)
    decoded = [json.loads(value) for value in events.as_json().to_pylist()]
    random.Random(3).shuffle(decoded)
    if name == "q18":  # of bids at one time, the last that comes counts: in the order of the topic
        decoded.sort(key=lambda event: (event["bid"] or {"dateTime": 0})["dateTime"])
    query = query_of(name, lambda: {number: str(number) for number in range(SIDE_ROWS)})
    rows = [row for event in decoded for row in query.rows(event)]
    for step in query.steps:
        rows = after(step, rows)
    results = [(query.key(row).encode(), json.dumps(query.value(row)).encode()) for row in rows]
    assert results
    assert verifier.differences(name, results) == []
