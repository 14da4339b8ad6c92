"""The application of `tests.faults.takeover`: a windowed count behind a repartition, a join by foreign key."""

from __future__ import annotations

import kstreams as ks


def counted_and_named(grace: int) -> ks.StreamsBuilder:
    """Visits counted by minute, and orders with the names of their customers."""
    builder = ks.StreamsBuilder()
    visits = builder.stream("visits", key=str, value=str)
    windows = ks.TimeWindows(size=60_000, grace=grace)
    counts = visits.group_by(lambda _, page: page, key=str).windowed_by(windows).count(materialized="counts")
    counts.to_stream(lambda key, _: f"{key.key}@{key.window.start_ms}", key=str).to("counts", key=str, value=int)

    orders = builder.table("orders", key=str, value=str)
    customers = builder.table("customers", key=str, value=str)
    named = orders.join(customers, lambda order, name: f"{order} of {name}", foreign_key=lambda order: order.split()[0])
    named.to_stream().to("named", key=str, value=str)
    return builder


topology = counted_and_named(grace=86_400_000)
history = counted_and_named(grace=5_000)
"""What is read in order of time is never later than it was written."""
