"""A producer that writes numbers, each in a transaction with the position behind it; it goes on where it was killed."""

from __future__ import annotations

import sys

from kstreams.kernel.batch import TopicPartition
from kstreams.log import open_log
from kstreams.log.api import OffsetAndMetadata

POSITION = TopicPartition("numbers", 0)
KEYS = 50
BATCH = 20


def main(address: str, numbers: int) -> None:
    with open_log(address) as log, log.admin() as admin, log.producer({"transactional.id": "numbers"}) as producer:
        committed = admin.committed("numbers", [POSITION]).get(POSITION)
        position = committed.offset if committed is not None else 0
        for first in range(position, numbers, BATCH):
            end = min(first + BATCH, numbers)
            producer.begin_transaction()
            for number in range(first, end):
                producer.send("sent", b"k%d" % (number % KEYS), number.to_bytes(8, "big"), timestamp=number)
            producer.commit_transaction({POSITION: OffsetAndMetadata(end)}, "numbers")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
