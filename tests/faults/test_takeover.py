"""Processes that share an application are killed, or stand still, at random moments.

Exactly once, nothing is lost or doubled. At least once, on the embedded log, nothing is lost and no count goes back.
"""

from __future__ import annotations

import pytest

from tests.faults.takeover import Faults, Given, run

AT_LEAST_ONCE = "at_least_once"
NONE = Faults(lost=0, doubled=0, back=0, other=0)


def test_who_wakes_writes_nothing_old() -> None:
    faults = run(Given("embedded", rows=2_000, kills=0, stops=1, guarantee=AT_LEAST_ONCE))
    assert faults._replace(doubled=0) == NONE


@pytest.mark.slow
def test_at_least_once_on_the_embedded_log() -> None:
    faults = run(Given("embedded", rows=60_000, kills=3, stops=8, guarantee=AT_LEAST_ONCE))
    assert faults._replace(doubled=0) == NONE


@pytest.mark.slow
def test_exactly_once_on_the_embedded_log() -> None:
    assert run(Given("embedded", rows=20_000, kills=6, stops=4)) == NONE


@pytest.mark.slow
@pytest.mark.kafka
def test_exactly_once_on_kafka() -> None:
    assert run(Given("kafka", rows=20_000, kills=3, stops=3)) == NONE


@pytest.mark.slow
def test_while_history_is_read() -> None:
    assert run(Given("embedded", rows=100_000, kills=4, stops=1, history=True)) == NONE
