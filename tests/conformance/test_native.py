"""The recorded cases of the real Kafka Streams, on the native runtime over the embedded log."""

from __future__ import annotations

import pytest

from tests.conformance import recorded
from tests.conformance.on_native import differs
from tests.conformance.test_driver import FAMILIES

SAMPLE = 2  # of each family in a quick run

pytestmark = recorded.needed


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_sample_of_each_family(family: str, cached: bool) -> None:
    assert failures(recorded.cases(family)[cached::7][:SAMPLE], cached) == []


@pytest.mark.slow
@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("family", FAMILIES)
def test_all_cases_of_each_family(family: str, cached: bool) -> None:
    assert failures(recorded.cases(family), cached) == []


def failures(chosen: list[recorded.Case], cached: bool) -> list[str]:
    assert chosen
    return [case["name"] for case in chosen if differs(case, cached=cached)]
