"""A producer that writes numbers, each in a transaction with the position behind it; it goes on where it was killed."""

from __future__ import annotations

import sys
from collections.abc import Callable

from kstreams.kernel.batch import TopicPartition
from kstreams.log import Log, open_log
from kstreams.log.api import OffsetAndMetadata

POSITION = TopicPartition("numbers", 0)
KEYS = 50
BATCH = 20


def position_of(log: Log) -> int:
    """Return the number behind the last committed one."""
    with log.admin() as admin:
        committed = admin.committed("numbers", [POSITION]).get(POSITION)
    return committed.offset if committed is not None else 0


def write_numbers(log: Log, numbers: int, on_commit: Callable[[int], None]) -> None:
    """Write the numbers that are missing."""
    with log.producer({"transactional.id": "numbers"}) as producer:
        for first in range(position_of(log), numbers, BATCH):
            end = min(first + BATCH, numbers)
            producer.begin_transaction()
            for number in range(first, end):
                producer.send("sent", b"k%d" % (number % KEYS), number.to_bytes(8, "big"), timestamp=number)
            producer.commit_transaction({POSITION: OffsetAndMetadata(end)}, "numbers")
            on_commit(end)


def main(address: str, numbers: int) -> None:
    with open_log(address) as log:
        write_numbers(log, numbers, lambda position: None)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
