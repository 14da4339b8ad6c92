"""The recorded cases of the real Kafka Streams, on the native runtime over the embedded log."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.conformance.on_native import run_case_native

FOLDER = Path(os.environ.get("KSTREAMS_TEST_CONFORMANCE", Path(__file__).parents[3] / "shared" / "conformance"))
FAMILIES = ("stateless", "aggregate", "tumbling", "hopping", "stream_stream_join", "global_table_join", "to_table")
SAMPLE = 8  # of each family in a quick run

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the recorded cases are not on this machine")


@pytest.fixture(scope="module")
def replay() -> ModuleType:
    spec = importlib.util.spec_from_file_location("replay", FOLDER / "replay.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def cases(family: str) -> list[dict[str, Any]]:
    """The cases of a family that are one sub-topology, and perhaps a global table."""
    file = FOLDER / f"{family}.jsonl"
    found = [json.loads(line) for line in file.read_text().splitlines()] if file.is_file() else []
    return [case for case in found if tasks_in(case) == 1]


def tasks_in(case: dict[str, Any]) -> int:
    text: str = case["expected"]["description"]
    return text.count("Sub-topology: ") - text.count("for global store")


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_sample_of_each_family(replay: ModuleType, family: str, cached: bool) -> None:
    check(replay, cases(family)[::7][:SAMPLE], cached)


@pytest.mark.slow
@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("family", FAMILIES)
def test_all_cases_of_each_family(replay: ModuleType, family: str, cached: bool) -> None:
    check(replay, cases(family), cached)


def check(replay: ModuleType, chosen: list[dict[str, Any]], cached: bool) -> None:
    assert chosen
    for case in chosen:
        config = {"application.id": "app", **case.get("config", {})}
        expected = case["expected"]["output"]
        if not cached:
            config["statestore.cache.max.bytes"] = 0
            expected = case["expected"].get("output_uncached", expected)
        rows = run_case_native(replay.Application(case, config), case, config)
        assert replay.by_step_and_topic(rows) == replay.by_step_and_topic(expected), case["name"]
