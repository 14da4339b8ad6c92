"""Where the last record ends that can be read: behind it may be marks of transactions, and aborted records."""

from __future__ import annotations

from time import sleep

import pytest

from kstreams.kernel.batch import TopicPartition
from kstreams.log import Log
from kstreams.log.readable_ends import readable_ends

WORDS = TopicPartition("words", 0)


def write(log: Log, count: int, *, aborted: bool = False) -> None:
    """Write records in one transaction."""
    with log.producer({"transactional.id": "writer"}) as producer:
        producer.begin_transaction()
        for number in range(count):
            producer.send("words", b"k", b"%d" % number, timestamp=number + 1)
        producer.flush()
        if aborted:
            producer.abort_transaction()
        else:
            producer.commit_transaction()


def ends_of(log: Log, after: int) -> int:
    return readable_ends(log, {WORDS: after}, log.admin().end_offsets([WORDS]))[WORDS]


def visible_end(log: Log, least: int) -> int:
    """Where the topic ends when a commit of so many records is visible."""
    while (end := log.admin().end_offsets([WORDS])[WORDS]) < least:
        sleep(0.05)
    return end


def readable_end(log: Log, after: int, least: int) -> int:
    return readable_ends(log, {WORDS: after}, {WORDS: visible_end(log, least)})[WORDS]


@pytest.mark.parametrize("aborted", [0, 1, 100])
def test_what_cannot_be_read_at_the_end_does_not_count(log: Log, aborted: int) -> None:
    log.admin().create_topic("words")
    write(log, 10)
    if aborted:
        write(log, aborted, aborted=True)
    for after in (0, 9, 10):
        assert readable_end(log, after, 10 + aborted) == 10
    assert readable_end(log, 10 + aborted, 10 + aborted) == 10 + aborted


def test_a_partition_of_nothing_but_aborted_records_has_nothing_to_read(log: Log) -> None:
    log.admin().create_topic("words")
    write(log, 50, aborted=True)
    assert readable_end(log, 0, 50) == 0


def test_records_behind_what_cannot_be_read_count(log: Log) -> None:
    log.admin().create_topic("words")
    write(log, 10)
    write(log, 20, aborted=True)
    write(log, 5)
    end = readable_end(log, 10, 35)
    assert 35 <= end <= visible_end(log, 35)
    write(log, 7, aborted=True)
    assert readable_end(log, 10, end + 7) == end
