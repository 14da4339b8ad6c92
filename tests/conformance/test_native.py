"""The recorded cases of the real Kafka Streams, on the native runtime over the embedded log."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance import recorded
from tests.conformance.on_native import differs

FAMILIES = ("stateless", "aggregate", "tumbling", "hopping", "stream_stream_join", "global_table_join", "to_table")
SAMPLE = 8  # of each family in a quick run

pytestmark = recorded.needed


def single_task_cases(family: str) -> list[dict[str, Any]]:
    return [case for case in recorded.cases(family) if recorded.tasks_of(case) == 1]


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_sample_of_each_family(family: str, cached: bool) -> None:
    assert failures(single_task_cases(family)[::7][:SAMPLE], cached) == []


@pytest.mark.slow
@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("family", FAMILIES)
def test_all_cases_of_each_family(family: str, cached: bool) -> None:
    assert failures(single_task_cases(family), cached) == []


def failures(chosen: list[dict[str, Any]], cached: bool) -> list[str]:
    assert chosen
    return [case["name"] for case in chosen if differs(case, cached=cached)]
