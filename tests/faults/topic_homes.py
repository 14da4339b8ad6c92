"""Where the topics of a run with faults lie: an embedded log, or a broker of Kafka that can be killed, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from kstreams.log import verify
from tests.support.kafka_cluster import KafkaCluster


class Topics(NamedTuple):
    """A home of topics.

    Parameters
    ----------
    address : str
    settings : mapping
        With these an application finds it.
    bounce : callable
        Kills the broker and starts it again; whether there was one.
    damage : callable
        How many places are not sound.
    """

    address: str
    settings: Mapping[str, Any]
    bounce: Callable[[], bool]
    damage: Callable[[], int]


@contextmanager
def opened_topics(folder: Path, home: str, brokers: int = 1) -> Iterator[Topics]:
    """The topics of a run: `embedded` below a folder, or in `kafka`, of whose brokers the first can be killed."""
    if home == "embedded":
        log = folder / "log"
        yield Topics(f"log:{log}", {"log.dir": log}, lambda: False, lambda: len(list(verify(log))))
        return
    with KafkaCluster(brokers) as cluster:

        def bounce() -> bool:
            cluster.kill()
            cluster.start()
            return True

        servers = cluster.bootstrap_servers
        yield Topics(f"kafka:{servers}", {"bootstrap.servers": servers}, bounce, lambda: 0)
