"""The cases recorded from the real Kafka Streams: where they are, and the program that replays them."""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

Case = dict[str, Any]
Rows = list[list[Any]]
"""Output rows as they are recorded: [step, topic, key, value, timestamp, headers]."""
Stores = dict[str, Rows]
"""What each named store holds."""
Tables = dict[str, dict[Any, Any]]

FOLDER = Path(os.environ.get("KSTREAMS_TEST_CONFORMANCE", Path(__file__).parents[3] / "shared" / "conformance"))

needed = pytest.mark.skipif(not FOLDER.is_dir(), reason="the recorded cases are not on this machine")


@cache
def replay() -> ModuleType:
    """`replay.py` beside the cases: it makes a case's topology through the public API, and compares."""
    spec = importlib.util.spec_from_file_location("replay", FOLDER / "replay.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cases(family: str) -> list[Case]:
    """All cases of a family, with the full answer where Kafka Streams loses results (`better.py`)."""
    from tests.conformance.better import BETTER  # which takes cases apart by what is said here

    return [BETTER[case["name"]](case) if case["name"] in BETTER else case for case in as_recorded(family)]


def as_recorded(family: str) -> list[Case]:
    """All cases of a family, as Kafka Streams answered them."""
    return [json.loads(line) for line in (FOLDER / f"{family}.jsonl").read_text().splitlines()]


def tasks_of(case: Case) -> int:
    """How many sub-topologies with tasks a case has: with one, the order of its output is determined."""
    text: str = case["expected"]["description"]
    return text.count("Sub-topology: ") - text.count("for global store")


def joins_streams(case: Case) -> bool:
    """Whether two streams are joined by a window."""
    return any("before_ms" in node for node in case["topology"])


def wanted(case: Case, *, cached: bool) -> tuple[Rows, Stores]:
    """The output and the contents of stores that were recorded with the record cache, or without it."""
    expected = case["expected"]
    rows, stores = expected["output"], expected["stores"]
    return (
        (rows, stores) if cached else (expected.get("output_uncached", rows), expected.get("stores_uncached", stores))
    )


def final_tables(rows: Iterable[list[Any]]) -> Tables:
    """The last value of every key in every output topic, without what was deleted."""
    found: Tables = {}
    for _, topic, key, value, *_ in rows:
        found.setdefault(topic, {})[key] = value
    return present(found)


def present(found: Tables) -> Tables:
    """Tables without deleted keys, and without tables that have none left."""
    rows = {topic: {k: v for k, v in table.items() if v is not None} for topic, table in found.items()}
    return {topic: table for topic, table in rows.items() if table}
