"""What several tasks write to a repartition topic stands in the same order, whether a thread is replaced or not."""

from __future__ import annotations

import threading
from pathlib import Path
from time import sleep

import kstreams as ks
from kstreams import StreamThreadExceptionResponse as Response
from tests.native.world import WAIT_S, World, until

TEXTS = {"key": str, "value": str}
COMMITS_AT, FAILS_AT = 45, 55


class UpcomingRecords(ks.Processor[str, str, str, str]):
    """Gives the first record of partition 0 a time far ahead; commits on the way, and fails once if it is told to."""

    failures = 0

    def init(self, context: ks.ProcessorContext[str, str]) -> None:
        self.context = context

    def process(self, record: ks.Record[str, str]) -> None:
        time = record.timestamp
        if time == COMMITS_AT:
            self.context.commit()
        if time == FAILS_AT and UpcomingRecords.failures:
            UpcomingRecords.failures -= 1
            raise RuntimeError("fails once")
        is_first = time == 0 and record.value == "0"
        self.context.forward(record.with_timestamp(1000 if is_first else time))


def output_of(world: World, failures: int) -> list[tuple[str, int]]:
    world.create("in", 2)
    for partition in (0, 1):
        world.write("in", [("k", str(partition), time) for time in range(60)], partition)
    builder = ks.StreamsBuilder()
    stream = builder.stream("in", **TEXTS).process(UpcomingRecords, **TEXTS)
    stream.repartition(name="all", partitions=1).to("out", **TEXTS)
    UpcomingRecords.failures = failures
    streams = world.streams(builder.build())
    streams.set_uncaught_exception_handler(lambda error: Response.REPLACE_THREAD)
    streams.start(until_end=True)
    assert streams.wait(WAIT_S)
    return [(row.value, row.timestamp) for row in world.rows("out")]


def test_a_replaced_thread_merges_in_the_order_of_one_that_never_failed(tmp_path: Path) -> None:
    undisturbed = output_of(World(tmp_path / "undisturbed"), failures=0)
    disturbed = output_of(World(tmp_path / "disturbed"), failures=1)
    assert len(undisturbed) == 120
    assert disturbed == undisturbed


def test_a_later_run_merges_by_the_times_that_were_written_before_it(world: World) -> None:
    world.create("in", 2)
    builder = ks.StreamsBuilder()
    builder.stream("in", **TEXTS).repartition(name="all", partitions=1).to("out", **TEXTS)
    for times in (((0, 100), (1, 10)), ((0, 50), (1, 60))):
        for partition, time in times:
            world.write("in", [("k", str(partition), time)], partition)
        world.run(builder.build(), once=True)
    # partition 0 had come to time 100 before: its late record follows what partition 1 wrote up to then
    assert [row.timestamp for row in world.rows("out")] == [10, 100, 60, 50]


def test_a_stop_at_the_last_record_of_a_slice_leaves_the_order_as_it_is(world: World) -> None:
    world.create("in", 2)
    for partition in (0, 1):
        world.write("in", [("k", str(partition), time) for time in range(60)], partition)

    def stop_at_the_end(key: str, value: str) -> None:
        if (value, len(seen)) == ("1", 119):
            threading.Thread(target=streams.close).start()
            until(lambda: streams.state.name == "PENDING_SHUTDOWN")
            sleep(0.1)  # its threads are told a moment later
        seen.append(value)

    builder, seen = ks.StreamsBuilder(), list[str]()
    kept = builder.stream("in", **TEXTS).peek(stop_at_the_end)
    kept.repartition(name="all", partitions=1).to("out", **TEXTS)
    streams = world.streams(builder.build(), processing_guarantee="exactly_once_v2")
    streams.start(until_end=True)
    assert streams.wait(WAIT_S)
    world.run(builder.build(), processing_guarantee="exactly_once_v2")
    assert [row.timestamp for row in world.rows("out")] == sorted([*range(60), *range(60)])


def test_a_bounded_run_continues_in_the_middle_of_a_slice(world: World) -> None:
    world.create("in", 2)
    records = [(str(partition), time) for time in range(6_000) for partition in (0, 1)]
    for partition in (0, 1):
        world.write("in", [("k", value, time) for value, time in records if value == str(partition)], partition)

    def stop_soon(key: str, value: str) -> None:
        if len(seen) == 1_005:
            threading.Thread(target=streams.close).start()
            until(lambda: streams.state.name == "PENDING_SHUTDOWN")
            sleep(0.1)  # its threads are told a moment later
        seen.append(value)

    builder, seen = ks.StreamsBuilder(), list[str]()
    stream = builder.stream("in", **TEXTS).repartition(name="all", partitions=1)
    stream.peek(stop_soon).to("out", **TEXTS)
    settings = {"processing_guarantee": "exactly_once_v2", "num_stream_threads": 2, "max_poll_records": 500}
    settings |= {"commit_interval_ms": 20, "buffered_records_per_partition": 500}
    streams = world.streams(builder.build(), **settings)
    streams.start()
    assert streams.wait(WAIT_S)
    assert 0 < len(world.rows("out")) < len(records)
    world.run(builder.build(), processing_guarantee="exactly_once_v2")
    assert sorted((row.value, row.timestamp) for row in world.rows("out")) == sorted(records)
