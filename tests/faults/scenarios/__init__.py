"""The scenarios of `python -m tests.faults`, by name."""

from __future__ import annotations

from tests.faults.scenarios.brokers import BROKER_SCENARIOS
from tests.faults.scenarios.disks import DISK_SCENARIOS
from tests.faults.scenarios.files import FILE_SCENARIOS
from tests.faults.scenarios.processes import PROCESS_SCENARIOS
from tests.faults.scenarios.producers import PRODUCER_SCENARIOS
from tests.faults.scenarios.scenario import Scenario
from tests.faults.scenarios.spark_cluster import SPARK_SCENARIOS

_ALL = [*PROCESS_SCENARIOS, *PRODUCER_SCENARIOS, *FILE_SCENARIOS, *DISK_SCENARIOS, *BROKER_SCENARIOS, *SPARK_SCENARIOS]
SCENARIOS: dict[str, Scenario] = {scenario.name: scenario for scenario in _ALL}
