"""Runs recorded cases on the native runtime over a Kafka cluster, which is emptied before each run."""

from __future__ import annotations

from collections.abc import Sequence

from tests.conformance.moved import without_time_zero
from tests.conformance.on_native import differs
from tests.conformance.recorded import Case
from tests.support.kafka_cluster import KafkaCluster
from tests.support.kafka_topics import delete_everything

LEFT_OUT = "they need the timestamp 0, which Kafka's client cannot write, and give something else when moved in time"


def comparable(cases: Sequence[Case]) -> list[Case]:
    """The cases without the timestamp 0, moved in time where they had it; others are left out."""
    moved = map(without_time_zero, cases)
    return [case for case in moved if case is not None]


def failures(cases: Sequence[Case]) -> list[str]:
    """Names of the cases, all comparable, that differ over a broker of their own."""
    with KafkaCluster() as cluster:
        return differing(cases, cluster.bootstrap_servers)


def differing(cases: Sequence[Case], servers: str) -> list[str]:
    """Names of the cases that differ over this cluster, with or without the record cache."""
    return [case["name"] for case in cases if any(_differs(case, cached, servers) for cached in (True, False))]


def _differs(case: Case, cached: bool, servers: str) -> bool:
    delete_everything(servers)
    return differs(case, cached, servers)
