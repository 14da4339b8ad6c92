"""What several tasks write to a repartition topic stands in the same order, whether a thread is replaced or not."""

from __future__ import annotations

from pathlib import Path

import kstreams as ks
from kstreams import StreamThreadExceptionResponse as Response
from tests.native.world import WAIT_S, World

TEXTS = {"key": str, "value": str}
COMMITS_AT, FAILS_AT = 45, 55


class Ahead(ks.Processor[str, str, str, str]):
    """Gives the first record of partition 0 a time far ahead; commits on the way, and fails once if it is told to."""

    failures = 0

    def init(self, context: ks.ProcessorContext[str, str]) -> None:
        self.context = context

    def process(self, record: ks.Record[str, str]) -> None:
        time = record.timestamp
        if time == COMMITS_AT:
            self.context.commit()
        if time == FAILS_AT and Ahead.failures:
            Ahead.failures -= 1
            raise RuntimeError("fails once")
        is_first = time == 0 and record.value == "0"
        self.context.forward(record.with_timestamp(1000 if is_first else time))


def output_of(world: World, failures: int) -> list[tuple[str, int]]:
    world.create("in", 2)
    for partition in (0, 1):
        world.write("in", [("k", str(partition), time) for time in range(60)], partition)
    builder = ks.StreamsBuilder()
    stream = builder.stream("in", **TEXTS).process(Ahead, **TEXTS)
    stream.repartition(name="all", partitions=1).to("out", **TEXTS)
    Ahead.failures = failures
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
