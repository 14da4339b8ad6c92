"""Faults of Kafka's brokers: restarted in turn, killed, and away for a while."""

from __future__ import annotations

from time import sleep

from tests.faults.judged_run import JudgedRun, judged_run
from tests.faults.request import Counts, Request
from tests.faults.scenarios.scenario import Scenario
from tests.support.kafka_cluster import KafkaCluster

NODES = 3
AWAY_S = 20.0


def rolling_bounce(request: Request) -> Counts:
    """The three brokers are stopped in order and started again, one after another."""
    with judged_run(request, nodes=NODES) as run:
        for number in run.rounds():
            node = number % NODES + 1
            _cluster(run).shut_down(node)
            _cluster(run).start(node)
        return run.counts()


def broker_kill(request: Request) -> Counts:
    """One of three brokers is killed, and started again."""
    with judged_run(request, nodes=NODES) as run:
        for _ in run.rounds():
            node = run.chance.randrange(NODES) + 1
            _cluster(run).kill(node)
            sleep(run.chance.uniform(0.0, 3.0))
            _cluster(run).start(node)
        return run.counts()


def brokers_away(request: Request) -> Counts:
    """The broker stands still for twenty seconds (SIGSTOP), and goes on."""
    with judged_run(request) as run:
        for _ in run.rounds():
            _cluster(run).pause()
            sleep(AWAY_S)
            _cluster(run).go_on()
        return run.counts()


def _cluster(run: JudgedRun) -> KafkaCluster:
    assert run.home.cluster is not None
    return run.home.cluster


BROKER_SCENARIOS = [
    Scenario(rolling_bounce, homes=("kafka",)),
    Scenario(broker_kill, homes=("kafka",)),
    Scenario(brokers_away, homes=("kafka",), rounds=1),
]
