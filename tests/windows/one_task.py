"""One task, fed by hand: what it puts out, however its input is cut and however often it is made anew."""

from __future__ import annotations

from itertools import pairwise

from kstreams.config import Config
from kstreams.kernel.batch import Batch, Row, TopicPartition
from kstreams.kernel.clock import ManualClock
from kstreams.processor.context.application import Application
from kstreams.processor.task.task import ResumePoint, Task, TaskResources
from kstreams.serdes import IntSerde, StringSerde
from kstreams.state import open_task_state


class Collected:
    """Takes what a task writes."""

    def __init__(self):
        self.rows = []

    def send(self, topic, rows, partitions):
        key, value = StringSerde().decode_rows(rows.keys), IntSerde().decode_rows(rows.values)
        self.rows += zip(key, value, rows.timestamps.to_pylist(), strict=True)

    def partitions(self, topic):
        return 1

    def merges(self, topic):
        return False

    def has_ranks(self, topic):
        return False

    def refused(self, topic, rows):
        return {}


def output(builder, cache_bytes, rows, cuts, at_a_time=None):
    """What rows (key, time) of topic "in" put out; each cut is a commit, after which the task is made anew.

    A batch holds all rows up to the next cut, or so many at a time.
    """
    (part,) = builder.build().sub_topologies
    config = Config.of({"application.id": "app", "statestore.cache.max.bytes": cache_bytes})
    collected, metadata, state = Collected(), {}, open_task_state(part.stores)
    for start, stop in pairwise([0, *sorted(cut for cut in cuts if cut <= len(rows)), len(rows)]):
        application = Application.of(config, ManualClock())
        task = Task(part, 0, application, TaskResources(state, collected), ResumePoint(metadata))
        batch = [Row(key.encode(), b"v", time, ()) for key, time in rows[start:stop]]
        for first in range(0, len(batch), at_a_time or len(rows)):
            task.process(Batch.of_rows(TopicPartition("in", 0), batch[first : first + (at_a_time or len(rows))]))
        task.flush()
        metadata = task.metadata()
    task.end_of_input()
    task.flush()
    return collected.rows
