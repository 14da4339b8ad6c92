"""Admission: steps of any size are, one after the other, the order in which a native task takes records."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kstreams.kernel.batch import Batch, Row, TopicPartition
from kstreams.log.api import Span
from kstreams.processor.task.partition_group import PartitionGroup
from kstreams.runtime.spark.io.admission import NOTHING_READ, admitted
from tests.support.examples import examples

pytestmark = pytest.mark.spark

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


class Partition(NamedTuple):
    """The records of a partition: their offsets, which may have gaps, their times, and how many lie together."""

    offsets: Sequence[int]
    times: Sequence[int]
    together: int = 3

    def spans(self, start: int) -> Iterator[Span]:
        at = start
        left = [pair for pair in zip(self.offsets, self.times, strict=True) if pair[0] >= start]
        for i in range(0, len(left), self.together):
            part = left[i : i + self.together]
            yield Span(at, part[-1][0] + 1, len(part), max(time for _, time in part))
            at = part[-1][0] + 1

    def read(self, start: int, end: int) -> tuple[np.ndarray, np.ndarray]:
        within = [pair for pair in zip(self.offsets, self.times, strict=True) if start <= pair[0] < end]
        offsets, times = zip(*within, strict=True)
        return np.array(offsets, np.int64), np.array(times, np.int64)


def partition(*times: int, together: int = 3) -> Partition:
    return Partition(range(len(times)), times, together)


def steps(
    log: Mapping[TopicPartition, Partition], limit: Callable[[], int], stream_times: Mapping[int, int] = NOTHING_READ
) -> list[list[tuple[TopicPartition, int]]]:
    """The records of all steps: partition and offset, step by step; tasks go on at these stream times, if any."""
    positions, times = dict.fromkeys(log, 0), dict(stream_times)
    found: list[list[tuple[TopicPartition, int]]] = []
    while any(list(log[source].spans(at)) for source, at in positions.items()):
        spans = {source: log[source].spans(at) for source, at in positions.items()}
        ends = admitted(spans, lambda source, *between: log[source].read(*between), limit(), times)
        stops = {source: ends.get(source, 10**9) for source in log}
        found.append([(s, offset) for s in log for offset in log[s].offsets if positions[s] <= offset < stops[s]])
        positions = stops
        for (source, _), time in zip(found[-1], times_of(log, found[-1]), strict=True):
            if stream_times:
                times[source.partition] = max(time, times[source.partition])
    return found


def times_of(log: Mapping[TopicPartition, Partition], step: Sequence[tuple[TopicPartition, int]]) -> list[int]:
    return [log[source].times[list(log[source].offsets).index(offset)] for source, offset in step]


@st.composite
def partitions(draw: st.DrawFn) -> dict[TopicPartition, Partition]:
    """Skewed and jittered partitions with gaps, bursts of one time and records far in the future."""
    log = {}
    for source in draw(st.sets(st.sampled_from([A0, A1, B0, TopicPartition("b", 1)]), min_size=1)):
        gaps = draw(st.lists(st.sampled_from([1, 1, 1, 4]), max_size=25))
        start = draw(st.sampled_from([0, 0, 40]))
        moves = draw(st.lists(st.sampled_from([0, 0, 1, 2, 5, -3, -9, 60]), min_size=len(gaps), max_size=len(gaps)))
        offsets = np.cumsum(gaps).tolist()
        times = [max(0, start + 2 * i + move) for i, move in enumerate(moves)]
        log[source] = Partition(offsets, times, draw(st.integers(1, 6)))
    return log


@settings(max_examples=examples(300), deadline=None)
@given(partitions(), st.data())
def test_steps_of_any_size_are_the_order_of_a_native_task(log: dict[TopicPartition, Partition], data) -> None:
    """Taken as one task that reads all of them, in order of partition number and topic."""
    order = sorted(log, key=lambda source: (source.partition, source.topic))
    group = PartitionGroup(order)
    for source, (_, times, _) in log.items():
        group.add(Batch.of_rows(source, [Row(b"", b"", time, ()) for time in times]))
    native = [(run.source, row.timestamp) for run in iter(group.next_run, None) for row in run.rows()]
    at = 0
    for step in steps(log, lambda: data.draw(st.integers(1, 12))):
        taken = list(zip([source for source, _ in step], times_of(log, step), strict=True))
        assert sorted(taken) == sorted(native[at : at + len(taken)])
        at += len(taken)
    assert at == len(native)


@settings(max_examples=examples(200), deadline=None)
@given(partitions(), st.tuples(*[st.sampled_from([-1, 0, 30, 80])] * 2), st.data())
def test_steps_go_on_where_tasks_have_come_to(
    log: dict[TopicPartition, Partition], before: tuple[int, int], data
) -> None:
    """As one sort by stream time, partition number, reached, topic and offset, over all that is to come."""
    places = [
        (max(before[source.partition], reached), source.partition, reached, source.topic, offset)
        for source, (offsets, times, _) in log.items()
        for offset, reached in zip(offsets, accumulate(times, max), strict=True)
    ]
    at, native = 0, [(TopicPartition(topic, number), offset) for _, number, _, topic, offset in sorted(places)]
    for step in steps(log, lambda: data.draw(st.integers(1, 12)), dict(enumerate(before))):
        assert sorted(step) == sorted(native[at : at + len(step)])
        at += len(step)
    assert at == len(native)


def test_a_step_takes_exactly_as_many_as_it_may_even_of_one_moment() -> None:
    log = {A0: partition(*[5] * 10), A1: partition(*[5] * 10), B0: partition()}
    taken = steps(log, lambda: 7)
    assert [len(step) for step in taken] == [7, 7, 6]
    assert {source for source, _ in taken[0]} == {A0}


def test_a_record_far_in_the_future_waits_until_the_others_are_taken() -> None:
    log = {A0: partition(1, 9_000, 2, 3), A1: partition(*range(20))}
    taken = steps(log, lambda: 8)
    assert [offset for step in taken for source, offset in step if source == A0] == [0, 1, 2, 3]
    assert [sum(source == A0 for source, _ in step) for step in taken] == [1, 0, 3]


def test_only_the_ends_are_read_of_millions_of_records() -> None:
    per_partition, together = 1_200_000, 10_000
    times = {A0: np.arange(per_partition), A1: np.arange(per_partition) + 3_600}
    read: list[tuple[TopicPartition, int, int]] = []

    def spans(source: TopicPartition) -> Iterator[Span]:
        for start in range(0, per_partition, together):
            yield Span(start, start + together, together, int(times[source][start + together - 1]))

    def reading(source: TopicPartition, start: int, end: int) -> tuple[np.ndarray, np.ndarray]:
        read.append((source, start, end))
        return np.arange(start, end), times[source][start:end]

    ends = admitted({source: spans(source) for source in times}, reading, 1_000_000)
    assert ends == {A0: 501_800, A1: 498_200}
    assert len(read) <= 4
