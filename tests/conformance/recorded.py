"""The cases recorded from the real Kafka Streams: where they are, and the program that replays them."""

from __future__ import annotations

import importlib.util
import json
import os
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

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


def cases(family: str) -> list[dict[str, Any]]:
    """All cases of a family."""
    return [json.loads(line) for line in (FOLDER / f"{family}.jsonl").read_text().splitlines()]


def tasks_of(case: dict[str, Any]) -> int:
    """How many sub-topologies with tasks a case has: with one, the order of its output is determined."""
    text: str = case["expected"]["description"]
    return text.count("Sub-topology: ") - text.count("for global store")
