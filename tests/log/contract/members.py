"""Members of a group for the contract: started, polled in turn, and what their listeners heard."""

from collections.abc import Callable
from contextlib import ExitStack
from itertools import chain
from typing import Any

from kstreams.errors import CommitFailedError
from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.log import Log

TURNS = 6_000  # of polls of 10 ms: far more than any of these tests needs
QUICK = {"heartbeat.interval.ms": 50}


class Started:
    """Members of the group `readers`, and what their listeners heard."""

    def __init__(self, log: Log, stack: ExitStack) -> None:
        self.log, self._stack = log, stack
        self.heard: list[tuple[str, str, list[int]]] = []

    def member(self, name: str, topics: Any = ("words",), **settings: Any) -> Any:
        consumer = self.consumer("readers", **{"client.id": name}, **settings)

        def hear(what: str) -> Callable[[list[TopicPartition]], None]:
            return lambda sources: self.heard.append((name, what, [source.partition for source in sources]))

        consumer.subscribe(topics, on_assigned=hear("+"), on_revoked=hear("-"), on_lost=hear("!"))
        return consumer

    def lost(self, name: str) -> list[int]:
        return sorted(chain.from_iterable(given for who, what, given in self.heard if (who, what) == (name, "!")))

    def consumer(self, group: str, **settings: Any) -> Any:
        given = {key.replace("_", "."): value for key, value in settings.items()}
        consumer = self.log.consumer({"group.id": group, **QUICK, **given})
        self._stack.callback(consumer.close)
        return consumer


def fill(log: Log, topic: str, partitions: int = 4, rows: int = 10) -> None:
    log.admin().create_topic(topic, partitions)
    with log.producer() as producer:
        for row in range(rows):
            for partition in range(partitions):
                producer.send(topic, None, f"{partition} {row}".encode(), partition=partition, timestamp=row + 1)


def numbers(consumer: Any) -> list[int]:
    return sorted(source.partition for source in consumer.assignment())


def settle(*consumers: Any, until: Callable[[], bool]) -> list[Batch]:
    """Poll in turn until something holds; what was read."""
    read = []
    for _ in range(TURNS):
        for consumer in consumers:
            read += consumer.poll(timeout=0.01)
        if until():
            return read
    raise AssertionError("the group did not come there")


def share(*consumers: Any, partitions: int = 4) -> list[Batch]:
    """Poll until all partitions are read, each by one of these, in equal shares."""

    def shared() -> bool:
        owned = [numbers(consumer) for consumer in consumers]
        fair = max(map(len, owned)) - min(map(len, owned)) <= 1
        return fair and sorted(chain.from_iterable(owned)) == list(range(partitions))

    return settle(*consumers, until=shared)


def read(consumer: Any, rows: int) -> list[bytes | None]:
    """Poll so many rows, and no more."""
    values: list[bytes | None] = []
    for _ in range(TURNS):
        for batch in consumer.poll(timeout=0.01, max_records=rows - len(values)):
            values += [row.value for row in batch.rows()]
        if len(values) == rows:
            return values
    raise AssertionError(f"there were {len(values)} rows")


def may_commit(consumer: Any) -> bool:
    try:
        consumer.commit()
    except CommitFailedError:
        return False
    return True
