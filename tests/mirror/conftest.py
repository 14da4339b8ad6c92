"""The source and the target of mirrors: embedded logs, and two clusters of Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kstreams.log import home_at
from tests.mirror.ends import End, Ends
from tests.support.kafka_topics import delete_everything

_KAFKA = [pytest.mark.kafka, pytest.mark.slow]
PAIRS = [
    ("embedded", "embedded"),
    pytest.param(("embedded", "kafka"), marks=_KAFKA),
    pytest.param(("kafka", "embedded"), marks=_KAFKA),
    pytest.param(("kafka", "kafka"), marks=_KAFKA),
]


@pytest.fixture(scope="session")
def other_kafka() -> Iterator[Any]:
    """A second cluster."""
    from tests.support.kafka_cluster import KafkaCluster, can_run

    if not can_run():
        pytest.skip("a broker needs Java, and Maven to fetch it")
    with KafkaCluster(settings={"log.message.timestamp.after.max.ms": 2**63 - 1}) as cluster:
        yield cluster


@pytest.fixture(params=PAIRS, ids="-".join)
def ends(request: pytest.FixtureRequest, tmp_path) -> Iterator[Ends]:
    """An empty source and an empty target."""
    addresses = []
    for side, kind, fixture in zip(("east", "west"), request.param, ("kafka", "other_kafka"), strict=True):
        if kind == "embedded":
            addresses.append(f"log:{tmp_path / side}")
        else:
            servers = request.getfixturevalue(fixture).bootstrap_servers
            delete_everything(servers)
            addresses.append(f"kafka:{servers}")
    source, target = map(home_at, addresses)
    with source.open() as source_log, target.open() as target_log:
        yield Ends(End(source, source_log), End(target, target_log))
