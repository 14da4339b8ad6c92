"""Partitions are many, descriptors are few: at most two for each partition that is open, and an end that is bounded."""

import os
from pathlib import Path

import pytest

from kstreams.log import open_log, verify
from tests.log.contract.reading import sources, values_of
from tests.log.embedded.files import run


def open_below(folder: Path) -> int:
    """How many descriptors and maps' files of a folder this process has open."""
    count = 0
    for fd in os.listdir("/proc/self/fd"):
        try:
            count += os.readlink(f"/proc/self/fd/{fd}").startswith(str(folder))
        except FileNotFoundError:
            continue
    return count


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
def test_a_partition_that_is_read_and_written_takes_two(tmp_path: Path) -> None:
    partitions = 7
    with open_log(tmp_path) as log:
        log.admin().create_topic("words", partitions)
        with log.producer({"linger.ms": -1}) as producer, log.consumer() as one, log.consumer() as two:
            for consumer in (one, two):
                consumer.assign(sources("words", partitions))
            for round in range(3):
                for partition in range(partitions):
                    producer.send("words", b"k", b"v", partition=partition)
                producer.flush()
                kept = [one.poll(), two.poll()]
                assert open_below(tmp_path / "topics") <= 2 * partitions, round
        del kept
        assert open_below(tmp_path / "topics") == 0


LIMITED = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[2]), int(sys.argv[2])))
from kstreams.log import open_log
from tests.log.contract.reading import sources, values_of
partitions, most = 150, 0
with open_log(sys.argv[1]) as log, log.producer({"linger.ms": -1}) as producer, log.consumer() as consumer:
    log.admin().create_topic("words", partitions)
    consumer.assign(sources("words", partitions))
    seen = 0
    for _ in range(3):
        for partition in range(partitions):
            producer.send("words", b"k", b"%d" % partition, partition=partition)
        producer.flush()
        seen += sum(map(len, consumer.poll()))
        most = max(most, len(os.listdir("/proc/self/fd")))
print(seen, most)
"""


@pytest.mark.parametrize("limit", [64, 256])
def test_more_partitions_than_descriptors(tmp_path: Path, limit: int) -> None:
    seen, most = map(int, run(LIMITED, tmp_path, limit).split())
    assert seen == 450
    assert most < limit
    with open_log(tmp_path) as log:
        assert len(values_of(log, "words", 150)) == 450
    assert verify(tmp_path) == []


EXHAUSTED = """
import os, resource, sys
from kstreams.errors import TooManyFilesError
from kstreams.log import open_log
from tests.log.contract.reading import sources, values_of
log = open_log(sys.argv[1])
log.admin().create_topic("words", 3)
producer, consumer = log.producer({"linger.ms": -1}), log.consumer()
consumer.assign(sources("words", 3))
producer.send("words", b"k", b"1", partition=0)
producer.flush()
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
taken = []
try:
    while True:
        taken.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass
for turn in (lambda: (producer.send("words", b"k", b"lost", partition=1), producer.flush()), consumer.poll,
             lambda: log.consumer().assign(sources("words", 3)), lambda: values_of(log, "words", 3), log.clean,
             lambda: log.admin().create_topic("more"), lambda: open_log(sys.argv[1] + "/other")):
    while True:  # what rests is closed first
        try:
            taken.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            break
    try:
        turn()
        print("there were some that rested")
    except TooManyFilesError as error:
        print(error)
for fd in taken:
    os.close(fd)
producer.send("words", b"k", b"2", partition=1)
producer.flush()
print(values_of(log, "words", 3))
"""


def test_when_all_are_taken_the_error_names_the_limit_and_nothing_is_lost(tmp_path: Path) -> None:
    *told, values = run(EXHAUSTED, tmp_path).splitlines()
    error = "This process has reached its limit of 64 open files: raise the limit with `ulimit -n`."
    assert set(told) == {"there were some that rested", error}
    assert values == ("[b'1', b'2']" if told[0] == error else "[b'1', b'lost', b'2']")
    assert verify(tmp_path) == []
