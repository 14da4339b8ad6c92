"""The input of the shop: orders and payments with jittered times, in partitions of which some are ahead of others."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from kstreams.kernel.batch import Batch, TopicPartition
from kstreams.log import open_log
from kstreams.log.partitioning import partitions_of
from kstreams.serdes import serde_of

PARTITIONS, CUSTOMERS, SPAN_MS = 4, 5_000, 2_000_000
SKEW_MS = np.array([0, 0, 60_000, 1_500])
"""How far each partition is ahead: a step that takes the same share of all would make others late."""


def write(address: str, rows: int, seed: int) -> None:
    """Three orders to two payments."""
    random = np.random.default_rng(seed)
    with open_log(address) as log, log.admin() as admin, log.producer() as producer:
        for topic, count in (("orders", rows * 3 // 5), ("payments", rows * 2 // 5)):
            admin.create_topic(topic, PARTITIONS)
            for batch in _batches(random, topic, count):
                producer.send_batch(batch)


def _batches(random: np.random.Generator, topic: str, count: int) -> list[Batch]:
    customers = pa.array([f"c{n}".encode() for n in range(CUSTOMERS)]).take(
        pa.array(random.integers(0, CUSTOMERS, count))
    )
    amounts = serde_of(int).encode_column(pa.array(random.integers(0, 10_000, count)))
    chosen = partitions_of(customers, PARTITIONS)
    jitter = random.integers(0, 600, count)
    times = pa.array(10_000_000 + np.arange(count) * SPAN_MS // count + SKEW_MS[chosen] - jitter)
    found = []
    for partition in range(PARTITIONS):
        mine = pa.array(np.flatnonzero(chosen == partition))
        offsets = np.arange(len(mine), dtype=np.int64)
        columns = customers.take(mine), amounts.take(mine), times.take(mine)
        whole = Batch(TopicPartition(topic, partition), offsets, *columns)
        found += [whole.slice(start, min(start + 20_000, len(whole))) for start in range(0, len(whole), 20_000)]
    return found
