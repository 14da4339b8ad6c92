"""The scenarios of `python -m tests.faults`, by name."""

from __future__ import annotations

from tests.faults.scenarios.processes import PROCESS_SCENARIOS
from tests.faults.scenarios.scenario import Scenario

SCENARIOS: dict[str, Scenario] = {scenario.name: scenario for scenario in [*PROCESS_SCENARIOS]}
