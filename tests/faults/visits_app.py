"""The application of the fault runs: repartition, windowed count, suppress, foreign-key join, aggregate of a table."""

from __future__ import annotations

import kstreams as ks


def visits_and_orders(grace: int) -> ks.StreamsBuilder:
    """Visits counted by minute, orders with the names of their customers, and the number of orders of each customer."""
    builder = ks.StreamsBuilder()
    visits = builder.stream("visits", key=str, value=str)
    windows = ks.TimeWindows(size=60_000, grace=grace)
    counts = visits.group_by(lambda _, page: page, key=str).windowed_by(windows).count(materialized="counts")
    counts.to_stream(_window_name, key=str).to("counts", key=str, value=int)
    finals = counts.suppress(ks.Suppressed.until_window_closes())
    finals.to_stream(_window_name, key=str).to("finals", key=str, value=int)

    orders = builder.table("orders", key=str, value=str)
    customers = builder.table("customers", key=str, value=str)
    named = orders.join(customers, lambda order, name: f"{order} of {name}", foreign_key=lambda order: order.split()[0])
    named.to_stream().to("named", key=str, value=str)
    loads = orders.group_by(lambda key, order: (order.split()[0], key), key=str, value=str).count(materialized="loads")
    loads.to_stream().to("loads", key=str, value=int)
    return builder


def _window_name(key: ks.Windowed, _: object) -> str:
    return f"{key.key}@{key.window.start_ms}"


topology = visits_and_orders(grace=86_400_000)
history = visits_and_orders(grace=5_000)
"""What is read in order of time is never later than it was written."""
