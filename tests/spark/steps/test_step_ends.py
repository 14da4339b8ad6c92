"""Where a step ends in the log: by time for what depends on each other, by shares where times are not known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from kstreams.kernel.batch import TopicPartition
from kstreams.kernel.timestamps import LATEST_MS
from kstreams.log import open_log
from kstreams.log.api import Log
from kstreams.runtime.spark.coupling import Admission
from kstreams.runtime.spark.io.step_ends import StepEnds

pytestmark = pytest.mark.spark

A0, A1, B0, B1 = (TopicPartition(topic, partition) for topic in "ab" for partition in (0, 1))


@pytest.fixture
def log(tmp_path: Path):
    with open_log(tmp_path / "log") as log, log.admin() as admin:
        for topic in "ab":
            admin.create_topic(topic, partitions=2)
        yield log


def write(log: Log, source: TopicPartition, times: Iterable[int], **settings: str) -> None:
    with log.producer(settings) as producer:
        if settings:
            producer.begin_transaction()
        for i, time in enumerate(times):
            producer.send(source.topic, b"k", b"v", timestamp=time, partition=source.partition)
            if i % 7 == 0:
                producer.flush()
        if settings:
            producer.flush()
            producer.abort_transaction()


def all_steps(
    log: Log, admissions: list[Admission], limit: int, *, bounded: bool = True
) -> list[dict[TopicPartition, int]]:
    """How many offsets each step takes of every partition of which it takes some."""
    with log.admin() as admin:
        end = admin.end_offsets([A0, A1, B0, B1])
    at: Mapping[TopicPartition, int] = {}
    found, steps = [], StepEnds(admissions, {})
    while (ends := steps.next(log, at, end, limit, bounded=bounded)) != at:
        found.append({s: stop - at.get(s, 0) for s, stop in ends.items() if stop > at.get(s, 0)})
        at = ends
    assert at == end
    return found


TOGETHER = [Admission(("a", "b"))]


def test_a_partition_that_is_ahead_waits_for_the_others(log: Log) -> None:
    write(log, A0, range(0, 100))
    write(log, A1, range(60, 160))
    assert all_steps(log, TOGETHER, 50) == [{A0: 50}, {A0: 30, A1: 20}, {A0: 20, A1: 30}, {A1: 50}]


def test_each_partition_number_is_cut_for_itself_where_nothing_couples_them(log: Log) -> None:
    write(log, A0, range(0, 100))
    write(log, B0, range(50, 150))
    write(log, A1, range(1_000, 1_100))
    apart = [Admission(("a", "b"), across_partitions=False)]
    assert all_steps(log, apart, 150) == [{A0: 75, B0: 25, A1: 50}, {A0: 25, B0: 75, A1: 50}]


def test_topics_that_have_nothing_to_do_with_each_other_are_cut_apart(log: Log) -> None:
    write(log, A0, range(0, 40))
    write(log, B0, range(1_000, 1_040))
    apart = [Admission(("a",)), Admission(("b",))]
    assert all_steps(log, apart, 20) == [{A0: 10, B0: 10}] * 4


def test_where_times_are_not_known_each_partition_gives_a_share_of_its_rows(log: Log) -> None:
    write(log, A0, range(0, 60))
    write(log, A1, range(1_000, 1_030))
    assert all_steps(log, [Admission(("a", "b"), by_time=False)], 30) == [{A0: 20, A1: 10}] * 3


def test_aborted_records_take_no_place_in_a_step_and_hold_nothing_up(log: Log) -> None:
    write(log, A0, range(0, 10))
    write(log, A0, range(500, 530), **{"transactional.id": "t"})
    write(log, A0, range(10, 20))
    write(log, A1, range(5, 25))
    write(log, A1, range(900, 940), **{"transactional.id": "t"})
    write(log, B1, range(0, 50), **{"transactional.id": "t"})
    assert all_steps(log, TOGETHER, 20) == [{A0: 43, A1: 7, B1: 50}, {A0: 7, A1: 13}, {A1: 40}]


def test_what_was_deleted_takes_no_place_in_a_step(log: Log) -> None:
    write(log, A0, range(0, 40))
    write(log, A1, range(0, 40))
    log.admin().delete_records({A0: 30})
    assert StepEnds(TOGETHER, {}).next(log, {}, {A0: 40, A1: 40}, 20, bounded=True) == {A0: 30, A1: 20}


def test_a_step_of_one_record_makes_progress(log: Log) -> None:
    for source in (A0, A1, B0):
        write(log, source, [3, 3, 3])
    for admissions in (
        TOGETHER,
        [Admission(("a", "b"), across_partitions=False)],
        [Admission(("a",)), Admission(("b",))],
    ):
        assert len(all_steps(log, admissions, 1)) == 9


def test_a_partition_without_data_holds_nobody_back_and_late_rows_come_next(log: Log) -> None:
    write(log, A0, range(100, 130))
    steps = StepEnds(TOGETHER, {})
    first = steps.next(log, {}, {A0: 30, A1: 0}, 10, bounded=False)
    assert first == {A0: 10, A1: 0}
    write(log, A1, range(0, 5))
    assert steps.next(log, first, {A0: 30, A1: 5}, 10, bounded=False) == {A0: 15, A1: 5}


def test_a_time_that_is_not_valid_holds_nothing_back(log: Log) -> None:
    write(log, A0, [1, LATEST_MS + 1, 2, 3])
    write(log, A1, range(20))
    assert all_steps(log, TOGETHER, 8)[0] == {A0: 4, A1: 4}


def after_a_record_of_the_future(log: Log, admission: Admission, *, bounded: bool) -> list[dict[TopicPartition, int]]:
    """The steps of one record each behind a record that was far ahead of what came later."""
    write(log, A0, [1, 2, 9_000])
    write(log, A1, [3, 4])
    write(log, A0, [20, 22, 24])
    write(log, A1, [21, 23])
    steps, at = StepEnds([admission], {}), {A0: 3, A1: 2}
    found = []
    while (ends := dict(steps.next(log, at, {A0: 6, A1: 4}, 1, bounded=bounded))) != at:
        found.append({source: ends[source] - at[source] for source in at if ends[source] > at[source]})
        at = ends
    return found


def test_tasks_that_write_one_topic_keep_step_by_all_that_they_have_read(log: Log) -> None:
    taken = after_a_record_of_the_future(log, Admission(("a", "b")), bounded=True)
    assert taken == [{A1: 1}, {A1: 1}, {A0: 1}, {A0: 1}, {A0: 1}]


def test_in_a_run_without_end_nothing_waits_for_what_was_read_before(log: Log) -> None:
    taken = after_a_record_of_the_future(log, Admission(("a", "b")), bounded=False)
    assert taken == [{A0: 1}, {A1: 1}, {A0: 1}, {A1: 1}, {A0: 1}]


def test_no_step_is_larger_than_it_may_be_however_many_records_have_one_time(log: Log) -> None:
    for source in (A0, A1, B0):
        write(log, source, [3, 3, 4, 4, 5])
    assert all_steps(log, TOGETHER, 4) == [{A0: 2, B0: 2}, {A0: 2, A1: 2}, {A1: 2, B0: 2}, {A0: 1, A1: 1, B0: 1}]


def test_what_lies_behind_a_record_of_the_future_is_divided_into_steps(log: Log) -> None:
    write(log, A0, [1, 9_000, *range(2, 20), 9_001])
    write(log, A1, [1, 2, 3])
    assert all_steps(log, TOGETHER, 8) == [{A0: 5, A1: 3}, {A0: 8}, {A0: 8}]
