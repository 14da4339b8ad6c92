"""Processes of one mirror: killed at any moment, taken over within seconds, shared."""

from __future__ import annotations

import random
import signal
import subprocess
import threading
import time
from contextlib import ExitStack

import numpy as np
import pyarrow as pa
import pytest

from kstreams.kernel.batch import Batch, TopicPartition
from tests.log.contract.copiers import is_stopped, no_locks_of
from tests.mirror.ends import Ends, numbered, wait_until

PARTITIONS = 4


def write(ends: Ends, numbers: range) -> None:
    """Write numbered records to all partitions, bit by bit, within about a second."""
    step = max(1, len(numbers) // PARTITIONS // 40)
    with ends.east.log.producer() as producer:
        for start in range(numbers.start // PARTITIONS, numbers.stop // PARTITIONS, step):
            part = np.arange(start, min(start + step, numbers.stop // PARTITIONS))
            values = pa.array([str(number).encode() for number in part.tolist()], pa.binary())
            for partition in range(PARTITIONS):
                source = TopicPartition("orders", partition)
                producer.send_batch(Batch(source, part, values, values, pa.array(part + 1)))
            producer.flush()
            time.sleep(0.02)


def copied(ends: Ends) -> int:
    if "east.orders" not in ends.west.topics():
        return 0
    partitions = ends.west.log.admin().describe_topic("east.orders").partitions
    sources = [TopicPartition("east.orders", number) for number in range(partitions)]
    return sum(ends.west.log.admin().end_offsets(sources).values())


def end(process: subprocess.Popen[bytes], number: signal.Signals = signal.SIGTERM) -> None:
    process.send_signal(number)
    process.wait(60)


def assert_equal(ends: Ends) -> None:
    east, west = ends.east.rows("orders"), ends.west.rows("east.orders")
    assert {number: len(rows) for number, rows in west.items()} == {number: len(rows) for number, rows in east.items()}
    assert west == east


def copy_with_kills(ends: Ends, count: int, kills: int, seed: int) -> None:
    """Kill the mirror at random moments while records arrive, then copy the rest."""
    print("seed", seed)
    chance = random.Random(seed)
    ends.east.create("orders", PARTITIONS)
    share = count // kills
    for kill in range(kills):
        before = copied(ends)
        writer = threading.Thread(target=write, args=(ends, range(share * kill, share * (kill + 1))))
        with ends.start_process("--commit-interval", "20") as process:
            writer.start()
            wait_until(lambda before=before: copied(ends) > before)
            time.sleep(chance.random() * 0.5)
            end(process, signal.SIGKILL)
        writer.join()
    ends.copy()


def test_a_process_that_is_killed_at_any_moment_copies_each_record_once(ends: Ends) -> None:
    copy_with_kills(ends, 20_000, 2, random.randrange(10**6))
    assert_equal(ends)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_set_and_order_are_equal_after_twenty_kills(ends: Ends) -> None:
    copy_with_kills(ends, 200_000, 20, random.randrange(10**6))
    assert_equal(ends)


def test_a_waiting_process_takes_over_within_seconds(ends: Ends) -> None:
    ends.east.create("orders")
    with ExitStack() as stack:
        first = stack.enter_context(ends.start_process("--refresh-interval", "200"))
        ends.east.write("orders", *numbered(10))
        wait_until(lambda: copied(ends) >= 10)
        second = stack.enter_context(ends.start_process("--refresh-interval", "200"))
        group = "kstreams-mirror.east"
        wait_until(lambda: len(ends.west.log.admin().describe_group(group).members) == 2)
        end(first, signal.SIGKILL)
        ends.east.write("orders", *numbered(10, 10))
        began = time.monotonic()
        wait_until(lambda: copied(ends) >= 20)
        assert time.monotonic() - began < 15
        end(second)
        assert second.returncode == 0
    assert ends.west.rows("east.orders") == {0: numbered(20)}


def test_a_copy_beside_a_running_mirror_ends_when_the_other_has_copied_all(ends: Ends) -> None:
    ends.east.create("orders")
    with ends.mirrored():
        wait_until(lambda: "east.orders" in ends.west.topics())
        wait_until(lambda: len(ends.west.log.admin().describe_group("kstreams-mirror.east").members) == 1)
        ends.east.write("orders", *numbered(500))
        ends.copy()
        assert len(ends.west.rows("east.orders")[0]) == 500
    assert ends.west.rows("east.orders") == {0: numbered(500)}


@pytest.mark.slow
def test_processes_share_the_tasks(ends: Ends) -> None:
    ends.east.create("orders", PARTITIONS)
    options = ("--refresh-interval", "200", "--tasks", "2")
    with ExitStack() as stack:
        processes = [stack.enter_context(ends.start_process(*options)) for _ in range(2)]

        def shares() -> list[int]:
            members = ends.west.log.admin().describe_group("kstreams-mirror.east").members
            return [len(member.partitions) for member in members]

        wait_until(lambda: shares() == [1, 1])
        for partition in range(PARTITIONS):
            ends.east.write("orders", *numbered(100), partition=partition)
        wait_until(lambda: copied(ends) >= 400)
        for process in processes:
            end(process)
            assert process.returncode == 0
    assert ends.west.rows("east.orders") == dict.fromkeys(range(PARTITIONS), numbered(100))


@pytest.mark.slow
def test_a_process_that_hangs_is_fenced_when_it_goes_on(ends: Ends) -> None:
    ends.east.create("orders")
    with ExitStack() as stack:
        first = stack.enter_context(ends.start_process("--refresh-interval", "200"))
        ends.east.write("orders", *numbered(10))
        wait_until(lambda: copied(ends) >= 10)
        second = stack.enter_context(ends.start_process("--refresh-interval", "200"))
        wait_until(lambda: len(ends.west.log.admin().describe_group("kstreams-mirror.east").members) == 2)
        with no_locks_of(ends.east.home.address), no_locks_of(ends.west.home.address):
            first.send_signal(signal.SIGSTOP)
            wait_until(lambda: is_stopped(first.pid))
        for start in range(10, 1_000, 10):
            ends.east.write("orders", *numbered(10, start))
        wait_until(lambda: copied(ends) >= 1_000, 120)
        first.send_signal(signal.SIGCONT)
        for start in range(1_000, 2_000, 10):
            ends.east.write("orders", *numbered(10, start))
        wait_until(lambda: copied(ends) >= 2_000)
        for process in (first, second):
            end(process)
            assert process.returncode == 0
    assert ends.west.rows("east.orders") == {0: numbered(2_000)}
