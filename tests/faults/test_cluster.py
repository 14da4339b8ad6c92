"""A short turn of the kills: `python -m tests.faults.cluster` is the long one."""

from pathlib import Path

import pytest

from tests.faults.cluster import BROKER, DRIVER, EXECUTOR, Given, run

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("home", ["embedded", pytest.param("kafka", marks=pytest.mark.kafka)])
def test_a_killed_executor_and_a_killed_driver_change_nothing(tmp_path: Path, home: str) -> None:
    kills = {EXECUTOR: 1, DRIVER: 1, **({BROKER: 1} if home == "kafka" else {})}
    given = Given(rows=40_000, steps=8, kills=kills, seed=3, home=home)
    outcome = run(tmp_path, given)
    assert outcome.failures(given) == []
    assert outcome.steps >= given.steps


@pytest.mark.kafka
def test_three_executors_and_three_brokers_lose_nothing_under_a_supervisor(tmp_path: Path) -> None:
    """Executors come and go by dynamic allocation. `--scene sales` of the long one runs as queries of Spark."""
    given = Given(
        rows=40_000,
        steps=8,
        kills={EXECUTOR: 1, DRIVER: 1, BROKER: 1},
        seed=3,
        home="kafka",
        workers=3,
        brokers=3,
        dynamic_allocation=True,
        supervised=True,
    )
    outcome = run(tmp_path, given)
    assert outcome.failures(given) == []
    assert outcome.steps >= given.steps
