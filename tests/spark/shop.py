"""A shop: orders by size in windows, re-keyed; orders with their payments; large orders."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import kstreams as ks
from tests.spark.running import Application, Row

TYPES = {"orders": (str, int), "payments": (str, int), "large": (str, int), "by-size": (str, int), "paid": (str, str)}
INPUTS, OUTPUTS = ("orders", "payments"), ("by-size", "paid", "large")
START = 1_700_000_000_000


def shop(takes: Callable[[str, int], bool] = lambda key, amount: True) -> ks.StreamsBuilder:
    """The topology; `takes` is asked for every order."""
    builder = ks.StreamsBuilder()
    orders = builder.stream("orders", key=str, value=int).filter(takes)
    payments = builder.stream("payments", key=str, value=int)
    by_size = orders.group_by(lambda key, amount: f"size {amount % 7}", key=str)
    counts = by_size.windowed_by(ks.TimeWindows(size=10_000, grace=2_000)).count()
    named = counts.to_stream(lambda key, count: f"{key.key}@{key.window.start_ms}")
    named.to("by-size", key=str, value=int)
    windows = ks.JoinWindows(before=1_000, after=1_000, grace=2_000)
    paid = orders.join(payments, lambda amount, payment: f"{amount}:{payment}", windows=windows)
    paid.to("paid", key=str, value=str)
    orders.filter(lambda key, amount: amount >= 900).to("large", key=str, value=int)
    return builder


def shop_rows(seed: int, count: int) -> list[Row]:
    """Orders and payments, up to 200 ms out of order."""
    draw, rows = random.Random(seed), []
    for number in range(count):
        time, key = START + number * 20, f"k{draw.randrange(300)}"
        topic = draw.choice(INPUTS)
        rows.append(Row(topic, key, draw.randrange(1_000), time + draw.randrange(200)))
    return rows


def results(app: Application, prefix: str = "spark-") -> dict[str, Counter[tuple[Any, ...]]]:
    """All records of all results, however often each is there."""
    return {topic: Counter(app.rows(topic, prefix)) for topic in OUTPUTS}
