"""A running application that reads history gives the answer that it would have given live, at any parallelism."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import pytest

import kstreams as ks
from kstreams.runtime.native.streams import KafkaStreams
from kstreams.runtime.native.uncaught_exceptions import StreamThreadExceptionResponse
from tests.native.order.history import (
    Fails,
    a_year,
    behind_two_repartitions,
    counted,
    dropped,
    hourly_counts,
    in_order_only,
    skewed,
    world_of,
)
from tests.native.world import WAIT_S, World, until
from tests.support.examples import few_of

BOTH = pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])


@pytest.fixture(scope="module")
def rows() -> list[tuple[str, str, int]]:
    return a_year(20_000)


@pytest.fixture(scope="module")
def wanted(rows: list[tuple[str, str, int]], tmp_path_factory: pytest.TempPathFactory) -> dict[Any, Any]:
    """What a run over one partition gives: nothing of it is late."""
    world = world_of(tmp_path_factory.mktemp("one"), [rows])
    world.run(hourly_counts())
    found = world.table("counts", value=int)
    assert sum(found.values()) == len(rows)
    return found


@pytest.fixture
def start() -> Iterator[Callable[..., KafkaStreams]]:
    """Starts a process; all are closed at the end."""
    started: list[KafkaStreams] = []

    def one_more(world: World, topology: ks.Topology | None = None, **settings: object) -> KafkaStreams:
        started.append(world.streams(topology or hourly_counts(), **settings))
        started[-1].set_uncaught_exception_handler(lambda _: StreamThreadExceptionResponse.REPLACE_THREAD)
        started[-1].start()
        return started[-1]

    yield one_more
    for streams in started:
        streams.close(WAIT_S)


@BOTH
@pytest.mark.parametrize(("processes", "threads"), few_of([(1, 1), (1, 4), (2, 1)], 2))
def test_history_in_skewed_partitions_gives_what_one_partition_gives(
    tmp_path: Path,
    rows: list[tuple[str, str, int]],
    wanted: dict[Any, Any],
    start: Callable[..., KafkaStreams],
    processes: int,
    threads: int,
    guarantee: str,
) -> None:
    world = world_of(tmp_path, skewed(rows))
    running = [
        start(world, num_stream_threads=threads, processing_guarantee=guarantee, poll_ms=10) for _ in range(processes)
    ]
    until(lambda: counted(world) + dropped(running) >= len(rows))
    assert not dropped(running)
    assert world.table("counts", value=int) == wanted


TIMES = range(0, 1_000_000, 100)


@pytest.mark.parametrize("fails_at", [{"writer": range(500, 10_000, 1_500)}, {"reader": range(300, 10_000, 1_100)}])
@pytest.mark.parametrize(("processes", "threads"), few_of([(1, 2), (2, 1)], 1))
def test_the_order_outlives_threads_that_die(
    tmp_path: Path,
    start: Callable[..., KafkaStreams],
    fails_at: dict[str, Collection[int]],
    processes: int,
    threads: int,
) -> None:
    rows = [("k", f"sensor {time // 100 % 20 // 19}", time) for time in TIMES]  # most of one: longer than a run
    world = world_of(tmp_path, skewed(rows))
    fails = Fails(**fails_at)
    settings = {"num_stream_threads": threads, "processing_guarantee": "exactly_once_v2", "poll_ms": 10}
    running = [
        start(world, in_order_only(fails), commit_interval_ms=0, max_poll_records=70, **settings)
        for _ in range(processes)
    ]
    until(lambda: counted(world) + dropped(running) >= len(rows))
    assert world.table("counts", value=int) == Counter(
        f"{sensor}@{time // 10_000 * 10_000}" for _, sensor, time in rows
    )
    written = [(row.key, row.value) for row in world.rows("counts", value=int)]
    assert len(written) == len(set(written)) == len(rows)


@pytest.mark.parametrize(("processes", "threads"), few_of([(2, 2), (1, 1), (1, 4)], 1))
def test_history_behind_two_repartitions(
    tmp_path: Path, start: Callable[..., KafkaStreams], processes: int, threads: int
) -> None:
    rows = [("k", f"sensor {time // 100 % 7}", time) for time in TIMES]
    world = world_of(tmp_path, skewed(rows))
    settings = {"num_stream_threads": threads, "poll_ms": 10, "max_poll_records": 200}
    running = [start(world, behind_two_repartitions(), **settings) for _ in range(processes)]
    until(lambda: counted(world) + dropped(running) >= len(rows))
    wanted = Counter(f"{sensor[-1]}@{time // 10_000 * 10_000}" for _, sensor, time in rows)
    assert world.table("counts", value=int) == wanted


def test_a_process_that_leaves_does_not_change_the_order(
    tmp_path: Path, rows: list[tuple[str, str, int]], wanted: dict[Any, Any], start: Callable[..., KafkaStreams]
) -> None:
    world = world_of(tmp_path, skewed(rows))
    one, two = (start(world, processing_guarantee="exactly_once_v2", poll_ms=10) for _ in range(2))
    until(lambda: counted(world) > 500)
    assert two.close(WAIT_S)
    until(lambda: counted(world) + dropped([one, two]) >= len(rows))
    assert world.table("counts", value=int) == wanted


def test_on_request_no_task_waits_for_another(tmp_path: Path, start: Callable[..., KafkaStreams]) -> None:
    go_on = threading.Event()

    def stands_still(_: str, sensor: str) -> str:
        if sensor == "slow":
            go_on.wait(WAIT_S)
        return sensor

    builder = ks.StreamsBuilder()
    readings = builder.stream("readings", key=str, value=str).group_by(stands_still, key=str)
    readings.count(materialized="counts").to_stream().to("counts", key=str, value=int)
    world = world_of(tmp_path, [[("k", "slow", 1)], [("k", "fast", time) for time in range(1, 10)]])
    start(world, builder.build(), num_stream_threads=4, max_task_idle_ms=-1, poll_ms=10)
    until(lambda: world.table("counts", value=int) == {"fast": 9})
    go_on.set()
    until(lambda: world.table("counts", value=int) == {"fast": 9, "slow": 1})
