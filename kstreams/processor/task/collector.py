"""`Collector`: takes the encoded output of a task, whose partitions the task has chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from operator import index
from typing import Any, Protocol

import numpy as np

from kstreams.errors import LogError, ProcessingError
from kstreams.processor.context.encoded_rows import BY_KEY, EncodedRows, Partitions
from kstreams.processor.task.sink_rows import SinkRows, shown


class Collector(Protocol):
    """Takes the encoded rows of a task's sinks: a stream thread, a step of Spark, or the test driver."""

    def send(self, topic: str, rows: EncodedRows, partitions: Partitions) -> None:
        """Take rows of one topic, with the partition of each row.

        `topic` is the real name: internal topics have the application's id as a prefix.
        """
        ...

    def merges(self, topic: str) -> bool:
        """Return whether the rows that several tasks write to a topic are sorted by stream time."""
        ...

    def partitions(self, topic: str) -> int:
        """Return the number of partitions of a topic."""
        ...

    def refused(self, topic: str, rows: EncodedRows) -> Mapping[int, LogError]:
        """Return the rows that the topic never takes, with the reason; called only if a handler decides about them."""
        ...


def send_partitioned(
    collector: Collector, topic: str, rows: EncodedRows, task_partition: int, chosen: Partitions | None = None
) -> None:
    """Choose the partitions of rows, and hand the rows to the collector.

    A row without a key for which no partition was chosen goes to the partition of the task. This keeps the order of
    such rows, and sends them to the same place when a run is repeated (Kafka's producer would scatter them).
    """
    collector.send(topic, rows, rows.partitions_in(collector.partitions(topic), chosen, task_partition))


def chosen_partitions(partitioner: Callable[..., object], topic: str, count: int, rows: SinkRows) -> Partitions:
    """Call a partitioner for every row.

    It returns a partition, None for the default partitioner, or several partitions: the row is copied to each.
    """
    choices = []
    for key, value in zip(rows.keys, rows.values, strict=True):
        try:
            choices.append(_checked_choice(partitioner(topic, key, value, count), count))
        except Exception as error:
            place = f"with key {shown(key)} and value {shown(value)} for topic {topic}"
            raise ProcessingError(rows.sink.name, rows.sink.declared_at, place, error) from error
    if any(len(partitions) != 1 for partitions in choices):
        rows.keep([row for row, partitions in enumerate(choices) for _ in partitions])
    return np.array(list(chain.from_iterable(choices)), dtype=np.int64)


def _checked_choice(choice: Any, count: int) -> list[int]:
    if choice is None:
        return [BY_KEY]
    partitions = sorted(map(index, choice)) if isinstance(choice, Iterable) else [index(choice)]
    if partitions and not 0 <= partitions[0] <= partitions[-1] < count:
        raise ValueError(f"the partitioner chose {choice}, but there are partitions 0 to {count - 1}")
    return partitions
