"""The application of `tests.faults.cluster` for queries of Spark: a filter, a join, final windows by another key."""

from __future__ import annotations

import kstreams as ks

topology = ks.StreamsBuilder()
orders = topology.stream("orders", key=str, value=int)
payments = topology.stream("payments", key=str, value=int)

by_product = orders.group_by((ks.value % 500).cast(str), key=str)
minutes = by_product.windowed_by(ks.TimeWindows(size=60_000, grace=2_000))
minutes.emit_strategy(ks.EmitStrategy.ON_WINDOW_CLOSE).count().to_stream().to("minutes")

payments.filter(ks.value % 3 == 0).map_values(ks.value * 2, value=int).to("large")
windows = ks.JoinWindows(before=5_000, after=5_000, grace=1_000)
payments.join(payments, ks.left.value * 10_000 + ks.right.value, windows=windows, value=int).to("pairs")

config = {"application.id": "sales", "statestore.cache.max.bytes": 0}
