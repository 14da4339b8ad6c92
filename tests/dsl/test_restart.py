"""A restart changes no decision about lateness or closing: operators go on with what they told the commit."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kstreams as ks
from kstreams.batch import Batch, Row, TopicPartition
from kstreams.clock import ManualClock
from kstreams.config import Config
from kstreams.processor.task import Task
from kstreams.serdes import IntSerde, StringSerde
from kstreams.state import open_task_state


class Collected:
    """Takes what a task writes."""

    def __init__(self):
        self.rows = []

    def send(self, topic, keys, values, timestamps, headers, partitions):
        key, value = StringSerde().decode_rows(keys), IntSerde().decode_rows(values)
        self.rows += zip(key, value, timestamps.to_pylist(), strict=True)

    def partitions(self, topic):
        return 1


def results(emit, cache_bytes, rows, cuts):
    """The output for rows (key, time) when the task is made anew at each cut."""
    builder = ks.StreamsBuilder()
    windows = builder.stream("in", key=str, value=str).group_by_key().windowed_by(ks.TimeWindows(size=10, grace=5))
    table = windows.emit_strategy(emit).aggregate(int, lambda key, value, count: count + 1)
    table.to_stream(lambda k, v: f"{k.key}@{k.window.start_ms}", key=str).to("out")
    (part,) = builder.build().sub_topologies
    config = Config.of({"application.id": "app", "statestore.cache.max.bytes": cache_bytes})
    collected, memo, state = Collected(), {}, open_task_state(part.stores)
    for start, stop in pairwise([0, *sorted(cuts), len(rows)]):
        parts = {"state": state, "collector": collected, "config": config, "clock": ManualClock(), "memo": memo}
        task = Task(part, 0, application_id="app", **parts)
        batch = [Row(key.encode(), b"v", time, ()) for key, time in rows[start:stop]]
        task.process(Batch.of_rows(TopicPartition("in", 0), batch))
        task.flush()
        memo = task.memo()
    task.end_of_input()
    task.flush()
    return collected.rows


@pytest.mark.parametrize("emit", ks.EmitStrategy)
@given(
    rows=st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 60)), min_size=1, max_size=20),
    cuts=st.sets(st.integers(0, 20), max_size=3),
)
def test_a_restart_is_not_seen(emit, rows, cuts):
    cuts = {cut for cut in cuts if cut <= len(rows)}
    assert results(emit, 0, rows, cuts) == results(emit, 0, rows, set())
    if emit is ks.EmitStrategy.ON_WINDOW_CLOSE:
        assert results(emit, 1_000, rows, cuts) == results(emit, 1_000, rows, set())
