"""Recorded cases without the timestamp 0, which Kafka's client cannot write: moved in time, where that changes nothing.

A case in which 0 occurs is moved by a multiple of its windows' sizes: every time of its input, of its recorded output
and of its recorded stores. Whether the moved recording is what Kafka Streams would give, the test driver says, which
gives what was recorded for every case: if it gives the moved recording, too, the case can be compared. Windows that
would begin before 1970, and times made of values, do not move along; such cases are left out.
"""

from __future__ import annotations

import re
from math import lcm
from typing import Any

from kstreams.testing import TopologyTestDriver
from tests.conformance.recorded import Case, Rows, Stores, replay, wanted

_SIZES = ("size_ms", "advance_ms")
_ABOUT_MS = 1_000_000
_TIMES = re.compile(r"(?<=@)\d+(?:/\d+)?$")
"""The times in a text: `a@0/20` is the key of a window, `a@20` what a punctuator wrote."""


def without_time_zero(case: Case) -> Case | None:
    """The case itself, or moved in time; None where that changes its results."""
    if not _has_time_zero(case):
        return case
    moved = _moved(case, _distance(case))
    return moved if _driver_agrees(moved) else None


def start_ms(case: Case) -> int:
    """The wall clock at the beginning of a case."""
    return int(case.get("start_ms", 0))


def _has_time_zero(case: Case) -> bool:
    """Whether a record with the timestamp 0 is read or written; those in stores are in a changelog, too."""
    rows = [row for cached in (True, False) for row in wanted(case, cached=cached)[0]]
    kept = [row for cached in (True, False) for store in wanted(case, cached=cached)[1].values() for row in store]
    times = {*(item.get("ts") for item in case["input"]), *(row[4] for row in rows), *(row[-1] for row in kept)}
    return 0 in times


def _distance(case: Case) -> int:
    sizes = [node[name] for node in case["topology"] for name in _SIZES if node["op"] == "windowed_by" and name in node]
    step = lcm(1, *sizes)
    return step * (_ABOUT_MS // step + 1)


def _moved(case: Case, by_ms: int) -> Case:
    feed = [item | {"ts": item["ts"] + by_ms} if "ts" in item else item for item in case["input"]]
    expected = dict(case["expected"])
    for name in expected.keys() & {"output", "output_uncached"}:
        expected[name] = _moved_output(expected[name], by_ms)
    for name in expected.keys() & {"stores", "stores_uncached"}:
        expected[name] = _moved_stores(case, expected[name], by_ms)
    return case | {"input": feed, "expected": expected, "start_ms": by_ms}


def _moved_output(rows: Rows, by_ms: int) -> Rows:
    return [
        [step, topic, _moved_text(key, by_ms), _moved_text(value, by_ms), time + by_ms, headers]
        for step, topic, key, value, time, headers in rows
    ]


def _moved_stores(case: Case, stores: Stores, by_ms: int) -> Stores:
    return {name: [_moved_row(row, by_ms) for row in rows] for name, rows in stores.items()}


def _moved_row(row: list[Any], by_ms: int) -> list[Any]:
    key, value, *time = row
    return [_moved_text(key, by_ms), _moved_text(value, by_ms), *(each + by_ms for each in time)]


def _moved_text(text: Any, by_ms: int) -> Any:
    if not isinstance(text, str):
        return text
    return _TIMES.sub(lambda found: "/".join(str(int(time) + by_ms) for time in found[0].split("/")), text)


def _driver_agrees(case: Case) -> bool:
    return all(_driver_gives(case, cached=cached) for cached in (True, False))


def _driver_gives(case: Case, *, cached: bool) -> bool:
    config = {"application.id": "app", **case.get("config", {})}
    if not cached:
        config["statestore.cache.max.bytes"] = 0
    application = replay().Application(case, config)
    rows, stores = wanted(case, cached=cached)
    with TopologyTestDriver(application.builder.build(), config, start_ms=start_ms(case)) as driver:
        given = replay().feed(application, driver, case, None)
        kept = {name: replay().contents(driver, name, application.stores[name]) for name in stores}
    view, in_order = replay().by_step_and_topic, replay().sort_rows
    return bool(view(given) == view(rows) and all(in_order(kept[name]) == in_order(stores[name]) for name in stores))
