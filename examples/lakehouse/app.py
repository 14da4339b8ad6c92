"""Tables of Postgres that change, as a lakehouse: orders with their products in Delta, sales by hour in Iceberg."""

import operator
import os
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import msgspec

import kstreams as ks

SHOP = os.environ.get("SHOP", "postgresql://postgres:postgres@127.0.0.1/postgres")
LAKE = Path("lake").absolute()
CATALOG = {"type": "sql", "uri": f"sqlite:///{LAKE}/catalog.db", "warehouse": LAKE.as_uri()}

Money = Annotated[Decimal, msgspec.Meta(extra={"scale": 2})]


class Product(msgspec.Struct):
    id: int
    name: str
    category: str
    price: Money


class Order(msgspec.Struct):
    id: int
    product_id: int
    quantity: int
    ordered_at: datetime


class PricedOrder(msgspec.Struct):
    product: str
    category: str
    quantity: int
    amount: Money
    ordered_at: datetime


class CategoryHour(msgspec.Struct, frozen=True):
    category: str
    hour: datetime


class Sales(msgspec.Struct, frozen=True):
    orders: int
    quantity: int
    amount: Money

    def __add__(self, other: "Sales") -> "Sales":
        return Sales(self.orders + other.orders, self.quantity + other.quantity, self.amount + other.amount)

    def __sub__(self, other: "Sales") -> "Sales":
        return Sales(self.orders - other.orders, self.quantity - other.quantity, self.amount - other.amount)


def priced(order: Order, product: Product) -> PricedOrder:
    amount = order.quantity * product.price
    return PricedOrder(product.name, product.category, order.quantity, amount, order.ordered_at)


def in_its_hour(id: int, order: PricedOrder) -> tuple[CategoryHour, Sales]:
    hour = order.ordered_at.replace(minute=0, second=0, microsecond=0)
    return CategoryHour(order.category, hour), Sales(1, order.quantity, order.amount)


config = {"application.id": "lakehouse", "processing.guarantee": "exactly_once_v2"}
topology = ks.StreamsBuilder()

products = topology.table(ks.sources.postgres(SHOP, "products", Product, key="id"), name="products")
orders = topology.table(ks.sources.postgres(SHOP, "orders", Order, key="id"), name="orders")
priced_orders = orders.join(products, priced, foreign_key=ks.col("product_id"))
sales = priced_orders.group_by(in_its_hour).reduce(operator.add, operator.sub).filter(ks.col("orders") > 0)

LAKE.mkdir(exist_ok=True)
in_delta = ks.sinks.delta(LAKE / "orders", mode="upsert", key="id", commit_interval=2_000)
in_iceberg = ks.sinks.iceberg(
    CATALOG, "shop.sales_by_hour", mode="upsert", key=["category", "hour"], commit_interval=2_000
)
priced_orders.to_stream().to(in_delta, name="orders-in-delta")
sales.to_stream().to(in_iceberg, name="sales-in-iceberg")
