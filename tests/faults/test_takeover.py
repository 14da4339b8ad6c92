"""Processes that share an application are killed, or stand still, at random moments: nothing is lost or doubled."""

from __future__ import annotations

import pytest

from tests.faults.takeover import Given, run

pytestmark = pytest.mark.slow


def test_on_the_embedded_log() -> None:
    assert run(Given("embedded", rows=20_000, kills=6, stops=2))


@pytest.mark.kafka
def test_on_kafka() -> None:
    assert run(Given("kafka", rows=20_000, kills=3, stops=2))


def test_while_history_is_read() -> None:
    assert run(Given("embedded", rows=100_000, kills=4, stops=1, history=True))
