"""The application whose registry goes away: it marks orders, and sums them up behind a repartition topic."""

from __future__ import annotations

import dataclasses

import kstreams as ks


@dataclasses.dataclass(frozen=True)
class Order:
    id: int
    customer: str
    amount: int
    note: str = "none"


@dataclasses.dataclass(frozen=True)
class Total:
    customer: str
    amount: int
    orders: int


topology = ks.StreamsBuilder()
orders = topology.stream("orders", key=str, value=ks.Avro(Order))
orders.map_values(lambda order: dataclasses.replace(order, amount=-order.amount)).to(
    "marked", key=str, value=ks.Avro(Order)
)
by_customer = orders.group_by(lambda _, order: order.customer, key=ks.Avro('"string"'), value=ks.Avro(Order))
totals = by_customer.aggregate(
    lambda: Total("", 0, 0),
    lambda key, order, total: Total(key, total.amount + order.amount, total.orders + 1),
    value=ks.Avro(Total),
    materialized="totals",
)
totals.to_stream().to("totals", key=ks.Avro('"string"'), value=ks.Avro(Total))
