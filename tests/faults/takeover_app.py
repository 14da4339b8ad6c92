"""The application of `tests.faults.takeover`: a windowed count behind a repartition, a join by foreign key."""

from __future__ import annotations

import kstreams as ks

topology = ks.StreamsBuilder()
visits = topology.stream("visits", key=str, value=str)
windows = ks.TimeWindows(size=60_000, grace=86_400_000)
counts = visits.group_by(lambda _, page: page, key=str).windowed_by(windows).count(materialized="counts")
counts.to_stream(lambda key, _: f"{key.key}@{key.window.start_ms}", key=str).to("counts", key=str, value=int)

orders = topology.table("orders", key=str, value=str)
customers = topology.table("customers", key=str, value=str)
named = orders.join(customers, lambda order, name: f"{order} of {name}", foreign_key=lambda order: order.split()[0])
named.to_stream().to("named", key=str, value=str)
