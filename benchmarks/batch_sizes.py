"""What a record costs as batches grow: by record and in columns, from 1 to 100,000 rows in a batch."""

from __future__ import annotations

import kstreams as ks
from benchmarks import baseline, one_task
from benchmarks.expressions import Order, amount, plain, price, row_of, tumbling

MOST_BATCHES, MOST_ROWS = 2_000, 200_000
SIZES = (1, 10, 100, 1_000, 10_000, 100_000)


def run() -> dict[str, float]:
    """Nanoseconds a record, for a filter and a sum by tumbling window."""
    rows = [row_of(number) for number in range(MOST_ROWS)]
    figures = {"plain loop": baseline.rate(MOST_ROWS, lambda: plain(rows))}
    for size in SIZES:
        some = rows[: min(size * MOST_BATCHES, MOST_ROWS)]
        for way, columns in (("by record", False), ("in columns", True)):
            rate = one_task.rate(_topology(), some, batch_rows=size, columns=columns)
            figures[f"{way}, batches of {size:,} (ns)"] = 1e9 / rate
    return figures


def _topology() -> ks.Topology:
    builder = ks.StreamsBuilder({"default.dsl.store": "in_memory"})
    stream = builder.stream("in", key=str, value=Order).filter(amount > 20)
    stream.group_by_key().windowed_by(tumbling).aggregate(total=(amount * price).sum(), orders=ks.len())
    return builder.build()
