"""Every scenario of `python -m tests.faults` holds: samples of seconds here, all of them in `make test-all`."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.faults.request import AT_LEAST_ONCE, EXACTLY_ONCE, Request
from tests.faults.scenarios import SCENARIOS
from tests.faults.scenarios.scenario import Scenario

SAMPLES = {"kill-app": 1_500, "kill-producer": 50_000}
"""The scenarios with so many records that take seconds."""


def marks_of(scenario: Scenario, home: str) -> list[pytest.MarkDecorator]:
    """What a scenario needs."""
    kafka = [pytest.mark.kafka] if home == "kafka" else []
    return [*kafka, *([pytest.mark.spark] if scenario.engine == "spark" else [])]


CASES = [
    pytest.param(scenario, home, id=f"{name}-{home}", marks=marks_of(scenario, home))
    for name, scenario in SCENARIOS.items()
    for home in scenario.homes
]


def check(scenario: Scenario, request: Request) -> None:
    counts = scenario.run(request)
    assert counts.violations(is_once=request.is_once) == [], counts.text()
    assert counts.faults >= request.rounds


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_on_the_embedded_log(name: str) -> None:
    check(SCENARIOS[name], Request(rounds=1, records=SAMPLES[name]))


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("scenario", "home"), CASES)
def test_every_scenario_on_every_home(scenario: Scenario, home: str) -> None:
    check(scenario, Request(home, rounds=scenario.rounds, records=scenario.records))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["kill-app", "zombie"])
def test_at_least_once_on_the_embedded_log_nothing_is_lost_and_no_count_goes_back(name: str) -> None:
    check(SCENARIOS[name], Request(rounds=3, records=20_000, guarantee=AT_LEAST_ONCE))


def test_the_judge_shares_no_code_with_the_product() -> None:
    modules = "tests.faults.judge.embedded_topics, tests.faults.judge.kafka_topics, tests.faults.judge.__main__"
    program = f"import sys, {modules}; sys.exit(any(name.split('.')[0] == 'kstreams' for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_the_help_names_every_scenario_and_an_example() -> None:
    command = [sys.executable, "-m", "tests.faults", "--help"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "python -m tests.faults kill-app --home kafka" in text
    assert all(name in text for name in SCENARIOS)


def test_a_lost_and_a_doubled_record_are_violations() -> None:
    """The judge is no judge that cannot say no."""
    from tests.faults.judge.records import Partition, Record
    from tests.faults.judge.shop import Input, Shop

    shop = Shop(Input(seed=1, records=100), is_once=True)
    shop.wrote(shop.rows())
    assert shop.verdict().losses > 50
    updates = [Record(Partition("counts", 0), 0, b"page1@0", n.to_bytes(8, "big")) for n in (1, 2, 2, 1)]
    shop.read("counts", updates)
    assert shop.verdict().duplicates >= 2
    assert shop.verdict().order_violations == 2
    assert Request().guarantee == EXACTLY_ONCE
