"""An application of Python functions, each of which a program can have."""

from __future__ import annotations

import math
from math import sqrt as root

import msgspec

import kstreams as ks


class Order(msgspec.Struct):
    customer: str
    amount: int
    price: float
    note: str | None = None


class Cost(msgspec.Struct):
    item: str
    cost: float
    note: str | None = None


LIMIT = 5
RATES = {"ann": 1.5}


def rate(name: str) -> float:
    """The rate of a name."""
    return RATES.get(name, 1.0)


def cost(order: Order) -> Cost | None:
    if order.amount == 0:
        return None
    total = order.amount * order.price * rate(order.customer)
    return Cost(order.customer, math.floor(total) / root(4), note=order.note)


topology = ks.StreamsBuilder()
config = {"application.id": "functions"}
orders = topology.stream("orders", key=str, value=Order)
orders.filter(lambda key, order: order is not None and order.amount > LIMIT).to("large")
orders.filter(lambda key, order: order is not None).filter_not(lambda key, order: key and order.note).to("silent")
there = orders.filter(~ks.value.is_null())
there.map_values(cost, value=Cost).to("costs")
there.map_values(lambda key, order: f"{key}: {order.customer}", value=str, with_key=True).to("names")
there.select_key(lambda key, order: order.customer, key=str).to("by-customer")
there.map(lambda key, order: (order.amount, order.note), key=int, value=str).to("pairs")
there.map_values(ks.col("customer"), value=str).flat_map_values(lambda name: name.split("n"), value=str).to("letters")
counted = there.filter(lambda key, order: order.amount > 2).group_by_key()
counted.windowed_by(ks.TimeWindows(size=10_000, grace=0)).count().suppress(
    ks.Suppressed.until_window_closes()
).to_stream().to("counts")

OUTPUTS = ["large", "silent", "costs", "names", "by-customer", "pairs", "letters", "counts"]
