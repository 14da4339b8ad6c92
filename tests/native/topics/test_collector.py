"""Outputs reach the producer in order, each row in the partition that Kafka's partitioner gives it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from kstreams.kernel.batch import Batch, TopicPartition, headers_column
from kstreams.kernel.clock import ManualClock
from kstreams.kernel.murmur2 import partition_of
from kstreams.metrics.samples import SampleWindows
from kstreams.metrics.sensors import RecordAges
from kstreams.processor.context.encoded_rows import EncodedRows, send_partitioned
from kstreams.processor.topology.layout import Layout
from kstreams.runtime.native.thread.sink_buffer import SendRetry, SinkBuffer, TaskCollector
from kstreams.runtime.native.time_alignment.process_alignment import ProcessAlignment
from kstreams.runtime.native.time_alignment.writer_slices import WriterSlices

Row = tuple[bytes | None, int]


class Sent:
    """A producer that keeps what it is given."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.begun = 0

    def begin(self) -> None:
        self.begun += 1

    def send_batch(self, batch: Batch, on_delivery: object = None) -> None:
        self.batches.append(batch)

    def rows(self, topic: str) -> dict[int, list[Row]]:
        found: dict[int, list[Row]] = {}
        for batch in self.batches:
            if batch.source.topic == topic:
                rows = [(row.key, row.timestamp) for row in batch.rows()]
                found.setdefault(batch.source.partition, []).extend(rows)
        return found


def sink_buffer(sent: Sent, partitions: int) -> SinkBuffer:
    retry = SendRetry("fail", 300_000, ManualClock())
    slices = WriterSlices(ProcessAlignment(Layout({}, {}, (), (), {}, {}), ()))
    return SinkBuffer(sent, sent.begin, lambda topic: partitions, retry, slices)  # type: ignore[arg-type]


def collector_of(box: SinkBuffer, partition: int = 0) -> TaskCollector:
    return TaskCollector(box, partition, RecordAges(SampleWindows(30_000, 2)), ManualClock())


def send(collector: TaskCollector, rows: list[Row], partitions: Any = None, headers: Any = None, task: int = 0) -> None:
    keys = pa.array([key for key, _ in rows], pa.binary())
    times = pa.array([time for _, time in rows], pa.int64())
    send_partitioned(collector, "out", EncodedRows(keys, keys, times, headers), task, partitions)


keys = st.one_of(st.none(), st.binary(max_size=9))


@given(st.lists(st.lists(keys, max_size=20), max_size=4), st.integers(1, 5), st.integers(0, 7))
def test_rows_keep_their_order_and_go_where_their_key_says(
    pieces: list[list[bytes | None]], count: int, task: int
) -> None:
    sent = Sent()
    box = sink_buffer(sent, count)
    collector = collector_of(box, task)
    expected: dict[int, list[Row]] = {}
    for number, piece in enumerate(pieces):
        rows = [(key, number) for key in piece]
        send(collector, rows, task=task)
        for key, time in rows:
            partition = task % count if key is None else partition_of(key, count)
            expected.setdefault(partition, []).append((key, time))
    box.flush()
    assert sent.rows("out") == expected
    assert box.records_out["out"] == sum(map(len, pieces))


def test_a_partitioner_may_choose_for_some_rows_and_leave_the_others_to_the_key() -> None:
    sent = Sent()
    box = sink_buffer(sent, 4)
    send(collector_of(box), [(b"a", 1), (b"b", 2)], np.array([3, -1]))
    box.flush()
    assert sent.rows("out") == {3: [(b"a", 1)], partition_of(b"b", 4): [(b"b", 2)]}


def test_headers_stay_with_their_rows() -> None:
    sent = Sent()
    box = sink_buffer(sent, 1)
    collector = collector_of(box)
    send(collector, [(b"a", 1)])
    send(collector, [(b"b", 2)], headers=headers_column([(("h", b"x"),)]))
    box.flush()
    assert [row.headers for batch in sent.batches for row in batch.rows()] == [(), (("h", b"x"),)]


def test_a_transaction_is_opened_only_when_there_is_something_to_send() -> None:
    sent = Sent()
    box = sink_buffer(sent, 1)
    box.flush()
    assert sent.begun == 0
    send(collector_of(box), [(b"a", 1)])
    box.flush()
    assert sent.begun == 1
    assert sent.batches[0].source == TopicPartition("out", 0)
