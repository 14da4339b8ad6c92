"""Faults of a Spark cluster: executors and drivers are killed, and the results compared with those of a native run."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.faults import cluster
from tests.faults.request import Counts, Request
from tests.faults.scenarios.scenario import Scenario


def kill_executor(request: Request) -> Counts:
    """An executor of a standalone cluster is killed in the middle of a step."""
    return _killed(request, {cluster.EXECUTOR: request.rounds})


def kill_driver(request: Request) -> Counts:
    """The driver is killed in the middle of a step, and started again."""
    return _killed(request, {cluster.DRIVER: request.rounds})


def _killed(request: Request, kills: Mapping[str, int]) -> Counts:
    arguments = cluster.Given(request.records, 8 + 2 * request.rounds, kills, request.seed, home=request.home)
    with tempfile.TemporaryDirectory(prefix="kstreams-cluster-") as folder:
        outcome = cluster.run(Path(folder), arguments)
    return Counts(
        records=request.records,
        kills=sum(outcome.killed.values()),
        faults=sum(outcome.killed.values()),
        losses=sum(each.rows for each in outcome.differences),
        wrong=outcome.failures(arguments),
    )


SPARK_SCENARIOS = [
    Scenario(kill_executor, engine="spark", records=40_000, rounds=1),
    Scenario(kill_driver, engine="spark", records=40_000, rounds=1),
]
