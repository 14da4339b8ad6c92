"""docs/explanation/reliability.md names every scenario and no other, and the tests that it names exist."""

from __future__ import annotations

import re
from pathlib import Path

from tests.faults.scenarios import SCENARIOS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "explanation" / "reliability.md").read_text()
PROMISES = PAGE.partition("## Promises")[2].partition("## What is not promised")[0]


def test_each_scenario_holds_a_promise_of_the_page() -> None:
    named = set(re.findall(r"`([a-z]+(?:-[a-z]+)*)`", "".join(row.split("|")[5] for row in rows())))
    assert named == set(SCENARIOS)


def test_each_promise_names_a_scenario_or_a_test() -> None:
    assert all(re.search(r"`(tests/|[a-z])", row.split("|")[5]) for row in rows())


def test_tests_and_commands_that_the_page_names_exist() -> None:
    for path in re.findall(r"tests/[\w/]+(?:\.py)?", PAGE):
        assert (ROOT / path).exists(), path
    for scenario in re.findall(r"python -m tests\.faults ([a-z-]+)", PAGE):
        assert scenario in SCENARIOS


def rows() -> list[str]:
    """The promises, one a row."""
    return [line for line in PROMISES.splitlines() if line.startswith("| ") and not line.startswith("| Promise")]
