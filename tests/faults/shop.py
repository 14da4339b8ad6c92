"""The application of `tests.faults.cluster`: a window behind a repartition topic, a sum by key, and a join."""

from __future__ import annotations

import kstreams as ks

topology = ks.StreamsBuilder()
orders = topology.stream("orders", key=str, value=int)
payments = topology.stream("payments", key=str, value=int)

by_product = orders.group_by(lambda customer, amount: f"p{amount % 500}", key=str)
minutes = by_product.windowed_by(ks.TimeWindows(size=60_000, grace=2_000)).count()
minutes.to_stream(lambda key, count: f"{key.key}@{key.window.start_ms}", key=str).to("minutes", key=str, value=int)

sums = orders.group_by_key().reduce(lambda total, amount: total + amount)
sums.to_stream().to("sums", key=str, value=int)

windows = ks.JoinWindows.of(5_000, grace=1_000)
paid = orders.join(payments, lambda amount, payment: amount * 10_000 + payment, windows=windows)
paid.to("paid", key=str, value=int)

config = {"application.id": "shop", "statestore.cache.max.bytes": 0}
