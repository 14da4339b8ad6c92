"""Which recorded cases have a fuller answer here: just those in which Kafka Streams loses results."""

from __future__ import annotations

import json

import pytest

from tests.conformance import recorded
from tests.conformance.better import BETTER, WHY
from tests.conformance.on_close import closes_windows, with_every_window
from tests.conformance.test_driver import FAMILIES

pytestmark = recorded.needed


def emits_on_close(family: str) -> list[recorded.Case]:
    return [case for case in recorded.as_recorded(family) if closes_windows(case)]


@pytest.mark.parametrize("family", ["tumbling", "hopping", "sliding", "session", "window_close"])
def test_the_full_answer_is_the_recorded_one_and_what_is_lost_there(family: str) -> None:
    cases = emits_on_close(family)
    assert cases
    for case in cases:
        (full, _), losing = recorded.wanted(with_every_window(case), cached=True), False
        for cached in (True, False):
            rows, _ = recorded.wanted(case, cached=cached)
            every, emitted = set(map(json.dumps, full)), set(map(json.dumps, rows))
            assert emitted <= every, case["name"]
            losing |= emitted != every
        assert losing == (case["name"] in BETTER), case["name"]


def test_every_case_with_a_fuller_answer_is_named_with_a_reason() -> None:
    names = {case["name"] for family in FAMILIES for case in recorded.as_recorded(family)}
    assert BETTER.keys() <= names
    assert WHY.keys() == BETTER.keys()
