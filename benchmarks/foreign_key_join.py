"""Foreign-key join of orders with products: each order subscribes and is answered, each product answers its orders."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

import kstreams as ks
from benchmarks import baseline, job

ORDERS, PRODUCTS, PRICES = 100_000, 1_000, 2_000


def run() -> dict[str, float]:
    """Orders a second where the products come first, and answers a second where they change later."""
    random = np.random.default_rng(7)
    orders = [f"product-{number}" for number in random.integers(0, PRODUCTS, ORDERS).tolist()]
    figures = {"orders: plain loop": baseline.rate(ORDERS, lambda: _plain(orders))}
    figures["orders: two topics and four stores"] = _rate(orders, PRODUCTS, 0, ORDERS)
    answers = ORDERS * PRICES // PRODUCTS
    figures["answers to products that change (a second)"] = _rate(orders, PRICES, ORDERS, answers)
    return figures


def _rate(orders: Sequence[str], prices: int, prices_at: int, count: int) -> float:
    """Records a second; `prices_at` says whether the prices come before the orders or after."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        names = _column([f"order-{number}" for number in range(len(orders))])
        job.write(log, "orders", names, _column(orders), np.arange(len(orders)))
        products = _column([f"product-{number % PRODUCTS}" for number in range(prices)])
        job.write(log, "products", products, products, np.full(prices, prices_at))
        return job.rate(_topology(), log, count)


def _column(texts: Sequence[str]) -> pa.Array:
    return pa.array(texts).cast(pa.binary())


def _plain(orders: Sequence[str]) -> list[str]:
    products = {f"product-{number}": f"product-{number}" for number in range(PRODUCTS)}
    return [f"{order}@{products[order]}" for order in orders if order in products]


def _topology() -> ks.Topology:
    builder = ks.StreamsBuilder()
    orders, products = (builder.table(topic, key=str, value=str) for topic in ("orders", "products"))
    joined = orders.join(products, lambda order, price: f"{order}@{price}", foreign_key=lambda order: order, value=str)
    joined.to_stream().to("out", key=str, value=str)
    return builder.build()
