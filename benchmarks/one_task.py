"""One task fed with batches from memory: what the engine costs without topics and threads."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import kstreams as ks
from kstreams.config import Config
from kstreams.kernel.batch import Batch, Row, TopicPartition
from kstreams.kernel.clock import ManualClock
from kstreams.processor.context.application import Application
from kstreams.processor.task.task import Task, TaskResources
from kstreams.processor.topology.nodes import SubTopology
from kstreams.state import open_task_state

ALWAYS, NEVER = 0, 10**9


class Sink:
    """Takes what the task writes, and forgets it."""

    def send(self, topic: str, rows: Any) -> None:
        """Nothing is kept."""

    def partitions(self, topic: str) -> int:
        """One of each."""
        return 1

    def merges(self, topic: str) -> bool:
        """Never: one task writes."""
        return False


def rate(
    topology: ks.Topology,
    rows: Sequence[Row],
    *,
    batch_rows: int,
    columns: bool,
    before: Mapping[str, Sequence[Row]] | None = None,
) -> float:
    """Records a second of CPU time of the topic "in"; `before` are rows of other topics, read before the clock runs."""
    part = next(part for part in topology.sub_topologies if "in" in _topics(part))
    settings = {"application.id": "bench", "columns.min.rows": ALWAYS if columns else NEVER}
    application = Application.of(Config.of(settings), ManualClock())
    task = Task(part, 0, application, TaskResources(open_task_state(part.stores), Sink()))
    for topic, known in (before or {}).items():
        if topic not in _topics(part):
            continue
        task.process(task.stamp(Batch.of_rows(TopicPartition(topic, 0), known, 0)))
    starts = range(0, len(rows), batch_rows)
    batches = [Batch.of_rows(TopicPartition("in", 0), rows[at : at + batch_rows], at) for at in starts]
    begin = time.process_time()
    for batch in batches:
        task.process(task.stamp(batch))
    task.flush()
    return len(rows) / (time.process_time() - begin)


def _topics(part: SubTopology) -> set[str]:
    return {topic for source in part.sources for topic in source.topics}
