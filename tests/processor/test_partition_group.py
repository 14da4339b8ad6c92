"""Which partition is next: a group that takes runs agrees with the definition, which takes one record at a time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kstreams.kernel.batch import Batch, Row, TopicPartition
from kstreams.processor.task.partition_group import PartitionGroup, Place

A, B, C = (TopicPartition(topic, 0) for topic in "abc")


def batch(source, times, base_offset=0):
    return Batch.of_rows(source, [Row(b"k", b"v", time, ()) for time in times], base_offset)


def taken(group, max_records=10_000):
    """(topic, offset) of all that the group gives, in order."""
    runs = iter(lambda: group.next_run(max_records), None)
    return [(run.source.topic, int(offset)) for run in runs for offset in run.offsets]


def taken_together(group, max_records=10_000):
    """The same, where short runs are taken together."""
    order = []
    for together in iter(lambda: group.next_runs(max_records), None):
        assert 0 < together.num_records <= max_records
        order += [(run.source.topic, int(offset)) for _, run in together.runs() for offset in run.offsets]
    return order


def one_at_a_time(queues):
    """The definition: each time the record of the queue with the lowest head; the first named one of equals."""
    queues, order = {name: list(enumerate(queues[name])) for name in sorted(queues)}, []
    while any(queues.values()):
        name = min((name for name in queues if queues[name]), key=lambda name: queues[name][0][1])
        order.append((name, queues[name].pop(0)[0]))
    return order


def test_runs_are_as_long_as_their_partition_stays_the_lowest():
    group = PartitionGroup([A, B])
    group.add(batch(A, [1, 2, 9, 3]))
    group.add(batch(B, [5, 6]))
    assert [(run.source.topic, run.timestamps.to_pylist()) for run in iter(group.next_run, None)] == [
        ("a", [1, 2]),
        ("b", [5, 6]),
        ("a", [9, 3]),
    ]


def test_a_run_is_cut_at_the_number_of_records_asked_for():
    group = PartitionGroup([A])
    group.add(batch(A, range(5)))
    assert [len(run) for run in iter(lambda: group.next_run(2), None)] == [2, 2, 1]


def test_an_empty_group_has_no_next_run():
    assert PartitionGroup([A]).next_run() is None


times = st.lists(st.integers(0, 12), max_size=80)


@given(st.fixed_dictionaries({name: times for name in "abc"}), st.integers(1, 50), st.integers(1, 90))
def test_order_is_that_of_one_record_at_a_time_however_batches_and_runs_are_cut(queues, batch_size, max_records):
    for take in (taken, taken_together):
        group = PartitionGroup([A, B, C])
        for source in (A, B, C):
            found = queues[source.topic]
            for start in range(0, len(found), batch_size):
                group.add(batch(source, found[start : start + batch_size], start))
        assert take(group, max_records) == one_at_a_time(queues)


def test_short_runs_are_taken_together_up_to_a_time_or_a_long_run():
    group = PartitionGroup([A, B])
    group.add(batch(A, [1, 3, 5, *range(200, 400)]))
    group.add(batch(B, [2, 4, 6, 500]))
    assert group.next_runs(until=Place(3)).which.tolist() == [0, 1, 0]
    assert group.next_runs().which.tolist() == [1, 0, 1]
    assert len(group.next_runs().parts) == 1


def test_batches_are_stamped_as_they_come_in():
    later = PartitionGroup([A, B], stamp=lambda read: batch(read.source, [100]) if read.source == A else read)
    later.add(batch(A, [1]))
    later.add(batch(B, [50]))
    assert [topic for topic, _ in taken(later)] == ["b", "a"]


class TestIdle:
    """`max.task.idle.ms`: whether a task may go on while one of its partitions is empty."""

    def group(self, max_task_idle_ms=0):
        group = PartitionGroup([A, B], max_task_idle_ms=max_task_idle_ms)
        group.add(batch(A, [1]))
        return group

    def test_nothing_buffered_is_never_ready(self):
        assert not PartitionGroup([A], max_task_idle_ms=-1).ready(now_ms=0)

    def test_all_partitions_buffered_is_ready(self):
        group = self.group()
        group.add(batch(B, [1]))
        assert group.ready(now_ms=0)
        assert group.empty_partitions() == []

    def test_an_empty_partition_with_unknown_lag_holds_back(self):
        group = self.group()
        assert not group.ready(now_ms=10**9)
        assert group.empty_partitions() == [B]

    def test_an_empty_partition_with_records_still_to_fetch_holds_back(self):
        group = self.group()
        group.set_lag(B, 3)
        assert not group.ready(now_ms=10**9)

    def test_without_lag_it_waits_for_the_time_asked_for_and_goes_on(self):
        group = self.group(max_task_idle_ms=100)
        group.set_lag(B, 0)
        assert not group.ready(now_ms=1_000)
        assert not group.ready(now_ms=1_099)
        assert group.ready(now_ms=1_100)

    def test_records_that_come_end_the_waiting(self):
        group = self.group(max_task_idle_ms=100)
        group.set_lag(B, 0)
        assert not group.ready(now_ms=1_000)
        group.add(batch(B, [1]))
        assert group.ready(now_ms=1_001)
        assert [topic for topic, _ in taken(group)] == ["a", "b"]
        group.add(batch(A, [2]))
        assert not group.ready(now_ms=1_200)  # a new wait begins

    def test_minus_one_never_waits(self):
        assert self.group(max_task_idle_ms=-1).ready(now_ms=0)
