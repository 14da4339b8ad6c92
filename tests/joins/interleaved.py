"""Runs a topology whose sub-topologies work when the test says so: what they write to each other waits meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import kstreams as ks
from kstreams.config import Config
from kstreams.kernel.batch import Batch, Row, TopicPartition
from kstreams.kernel.clock import ManualClock
from kstreams.processor.context.application import Application
from kstreams.processor.context.encoded_rows import EncodedRows
from kstreams.processor.task.task import Task, TaskResources
from kstreams.processor.topology.nodes import SubTopology
from kstreams.serdes import serde_of
from kstreams.state import open_task_state

TEXT = serde_of(str)
Choose = Callable[[int], int]
"""`choose(n)` gives a number from 0 to n - 1."""


class Waiting:
    """The rows of every topic, and how far each has been read."""

    def __init__(self) -> None:
        self.rows: dict[str, list[Row]] = {}
        self.read: dict[str, int] = {}

    def topics(self) -> list[str]:
        """Those of which something waits."""
        return sorted(
            topic for topic, rows in self.rows.items() if topic != "out" and self.read.get(topic, 0) < len(rows)
        )

    def take(self, topic: str, count: int) -> Batch:
        """The next so many rows of a topic, or what there is."""
        first = self.read.get(topic, 0)
        some = self.rows[topic][first : first + count]
        self.read[topic] = first + len(some)
        return Batch.of_rows(TopicPartition(topic, 0), some, first)

    def send(self, topic: str, rows: EncodedRows, partitions: object) -> None:
        columns = (column.to_pylist() for column in (rows.keys, rows.values, rows.timestamps))
        written = zip(*columns, strict=True)
        self.rows.setdefault(topic, []).extend(Row(key, value, at, ()) for key, value, at in written)

    def partitions(self, topic: str) -> int:
        return 1

    def merges(self, topic: str) -> bool:
        return False

    def has_ranks(self, topic: str) -> bool:
        return False

    def refused(self, topic: str, rows: EncodedRows) -> dict[int, Any]:
        return {}


def run_interleaved(
    builder: ks.StreamsBuilder, rows: Mapping[str, list[tuple[Any, Any]]], choose: Choose, config: dict[str, Any]
) -> list[tuple[Any, Any]]:
    """All rows (key, value) of topic "out", when `choose` picks whose turn it is, how much it takes, and who commits.

    `rows` are (key, value) by input topic; all are texts.
    """
    waiting, topology = Waiting(), builder.build()
    for topic, of_topic in rows.items():
        waiting.rows[topic] = [Row(_bytes(key), _bytes(value), at, ()) for at, (key, value) in enumerate(of_topic)]
    tasks = {}
    for part in topology.sub_topologies:
        task = _task(part, waiting, config)
        tasks |= {topic: task for source in part.sources for topic in source.topics}
    while topics := waiting.topics():
        topic = topics[choose(len(topics))]
        task = tasks[topic]
        task.process(task.stamp(waiting.take(topic, 1 + choose(3))))
        if choose(2):
            _commit(task)
        if not waiting.topics():
            for task in tasks.values():
                _commit(task)
    return [(_text(row.key), _text(row.value)) for row in waiting.rows.get("out", [])]


def _task(part: SubTopology, waiting: Waiting, config: dict[str, Any]) -> Task:
    application = Application.of(Config.of({"application.id": "app", **config}), ManualClock())
    return Task(part, 0, application, TaskResources(open_task_state(part.stores), waiting))


def _commit(task: Task) -> None:
    task.flush()
    task.state.persist(task.state.changes(), {})


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else TEXT.serialize(text)


def _text(data: bytes | None) -> Any:
    return None if data is None else TEXT.deserialize(data)
