"""Expressions in columns against the same record by record, and against Python functions; JSON values, one task."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

import kstreams as ks
from benchmarks import baseline, one_task
from kstreams.kernel.batch import Row

ROWS, KEYS, BATCH = 200_000, 200, 10_000


class Order(msgspec.Struct):
    """A small JSON value."""

    shop: str
    amount: int
    price: float


class Total(msgspec.Struct):
    """What is made of one."""

    shop: str
    total: float


def run() -> dict[str, float]:
    """Records a second."""
    rows = [row_of(number) for number in range(ROWS)]
    shops = [Row(b"shop-%d" % number, b"the shop", 0, ()) for number in range(KEYS)]
    rate = partial(one_task.rate, rows=rows, batch_rows=BATCH, before={"shops": shops})
    figures = {"plain loop": baseline.rate(ROWS, lambda: plain(rows))}
    for name, (by_expression, by_function) in JOBS.items():
        figures[f"{name}, functions"] = rate(_topology(by_function), columns=False)
        figures[f"{name}, expressions record by record"] = rate(_topology(by_expression), columns=False)
        figures[f"{name}, expressions in columns"] = rate(_topology(by_expression), columns=True)
    return figures


def row_of(number: int) -> Row:
    """One record; one comes every millisecond."""
    value = b'{"shop":"s%d","amount":%d,"price":%d.5}' % (number % 7, number % 100, number % 13)
    return Row(b"shop-%d" % (number * 7 % KEYS), value, 1_000_000 + number, ())


def plain(rows: list[Row]) -> None:
    """A sum by key, in a dict."""
    decode, totals = msgspec.json.Decoder(Order).decode, dict[bytes, float]()
    for row in rows:
        order = decode(row.value)
        totals[row.key] = totals.get(row.key, 0.0) + order.amount * order.price


def _topology(job: Callable[[Any, Any], Any]) -> ks.Topology:
    builder = ks.StreamsBuilder({"default.dsl.store": "in_memory"})
    shops = builder.table("shops", key=str, value=str)
    job(builder.stream("in", key=str, value=Order), shops)
    return builder.build()


amount, price, shop = ks.col("amount"), ks.col("price"), ks.col("shop")
tumbling, sessions = ks.TimeWindows(size=10_000, grace=10_000), ks.SessionWindows(gap=1_000, grace=10_000)


def _total(order: Order) -> Total:
    return Total(order.shop, order.amount * order.price)


def _add(key: str, order: Order, total: float) -> float:
    return total + order.amount * order.price


def _merge(key: str, total: float, other: float) -> float:
    return total + other


Job = Callable[[Any, Any], Any]
JOBS: dict[str, tuple[Job, Job]] = {
    "filter and map to a topic": (
        lambda s, t: s.filter(amount > 50).map_values(ks.struct(shop=shop, total=amount * price)).to("out", key=str),
        lambda s, t: s.filter(lambda key, order: order.amount > 50).map_values(_total).to("out", key=str),
    ),
    "sum by key": (
        lambda s, t: s.group_by_key().aggregate(total=(amount * price).sum()),
        lambda s, t: s.group_by_key().aggregate(float, _add, value=float),
    ),
    "sum by tumbling window": (
        lambda s, t: s.group_by_key().windowed_by(tumbling).aggregate(total=(amount * price).sum()),
        lambda s, t: s.group_by_key().windowed_by(tumbling).aggregate(float, _add, value=float),
    ),
    "sum by session": (
        lambda s, t: s.group_by_key().windowed_by(sessions).aggregate(total=(amount * price).sum()),
        lambda s, t: s.group_by_key().windowed_by(sessions).aggregate(float, _add, merger=_merge, value=float),
    ),
    "join with a table": (
        lambda s, t: s.join(t, ks.struct(shop=ks.right.value, total=amount * price)).to("out", key=str),
        lambda s, t: s.join(t, lambda order, name: Total(name, order.amount * order.price)).to(
            "out", key=str, value=Total
        ),
    ),
}
