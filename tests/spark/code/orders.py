"""An application of expressions alone: every form that a PySpark program has."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any, Literal

import msgspec

import kstreams as ks


class Address(msgspec.Struct, frozen=True):
    city: str
    street: str | None = None


class Order(msgspec.Struct, frozen=True):
    item: str
    amount: int
    price: float
    note: str | None = None
    tags: list[str] = []
    address: Address | None = None


class Line(msgspec.Struct, frozen=True):
    item: str
    amount: int
    price: float
    note: str | None
    address: Address | None


class Cost(msgspec.Struct, frozen=True):
    item: str
    cost: float
    hour: int
    size: str


class Total(msgspec.Struct, frozen=True):
    orders: int
    amount: int
    dearest: float
    mean: float


class Payment(msgspec.Struct, frozen=True):
    paid: int


class Paid(msgspec.Struct, frozen=True):
    item: str
    amount: int
    paid: int | None


class Customer(msgspec.Struct, frozen=True):
    name: str
    level: int


class Greeted(msgspec.Struct, frozen=True):
    item: str
    name: str | None


class Parcel(msgspec.Struct, frozen=True):
    weight: int
    packed: datetime | None


class Shipment(msgspec.Struct, frozen=True):
    sent: datetime
    due: date | None
    price: Decimal
    kind: Literal["letter", "parcel"]
    parcels: list[Parcel]
    stops: dict[str, datetime]


class Arrival(msgspec.Struct, frozen=True):
    sent: datetime
    day: datetime | None
    seen: datetime | None
    price: Decimal
    kind: str
    due: date | None


class Either(msgspec.Struct, frozen=True):
    amount: int | None
    paid: int | None


topology = ks.StreamsBuilder()
config = {"application.id": "orders"}

MINUTES = ks.TimeWindows(size=timedelta(minutes=1), grace=timedelta(seconds=10))
HOPS = ks.TimeWindows(size=timedelta(minutes=1), advance=timedelta(seconds=20), grace=timedelta(seconds=10))
SESSIONS = ks.SessionWindows(gap=timedelta(seconds=5), grace=timedelta(seconds=10))
TOTALS: dict[str, Any] = {
    "orders": ks.len(),
    "amount": ks.col("amount").sum(),
    "dearest": ks.col("price").max(),
    "mean": ks.col("amount").mean(),
}

orders = topology.stream("orders", key=str, value=Line)
payments = topology.stream("payments", key=str, value=Payment)
customers = topology.table("customers", key=str, value=Customer)
articles = topology.global_table("articles", key=str, value=Customer)

orders.filter((ks.col("amount") > 5) & ~ks.col("note").is_null()).to("noted")
orders.filter_not(ks.col("note").str.contains("é")).to("plain")
orders.map_values(
    ks.struct(
        item=ks.col("item").str.upper(),
        cost=ks.col("amount") * ks.col("price") / 2,
        hour=ks.timestamp.cast(datetime).dt.hour(),
        size=ks.when(ks.col("amount") % 3 == 0).then("three").otherwise(ks.col("amount").cast(str)),
    ),
    value=Cost,
).to("costs")
orders.select_key(ks.col("item")).to("by-item")
orders.map((ks.col("amount") // 4, ks.key + "/" + ks.col("item")), key=int, value=str).to("by-amount")
sizes = (
    orders.split(name="size-")
    .branch(ks.col("amount") < 3, name="small")
    .branch(ks.col("note").is_null(), name="silent")
    .default_branch(name="other")
)
sizes["size-small"].merge(sizes["size-other"]).to("small-or-other")
sizes["size-silent"].to("silent")

by_item = orders.group_by(ks.col("item"))
by_item.aggregate(**TOTALS, value=Total).to_stream().to("totals")
orders.group_by_key().count().to_stream().to("counts")

by_customer = orders.group_by_key()
by_customer.windowed_by(MINUTES).count().to_stream().to("minutes")
by_item.windowed_by(HOPS).aggregate(**TOTALS, value=Total).to_stream().to("hops")
by_customer.windowed_by(MINUTES).aggregate(**TOTALS, value=Total).suppress(
    ks.Suppressed.until_window_closes()
).to_stream().to("closed-minutes")
by_customer.windowed_by(SESSIONS).count().suppress(ks.Suppressed.until_window_closes()).to_stream().to("sessions")

joined = ks.struct(item=ks.left.col("item"), amount=ks.left.col("amount"), paid=ks.right.col("paid"))
within = ks.JoinWindows(before=timedelta(seconds=2), after=timedelta(seconds=2), grace=timedelta(seconds=10))
orders.join(payments, joined, windows=within, value=Paid).to("paid")
orders.left_join(payments, joined, windows=within, value=Paid).to("perhaps-paid")
greeted = ks.struct(item=ks.left.col("item"), name=ks.right.col("name"))
orders.join(customers, greeted, value=Greeted).to("greeted")
orders.left_join(articles, greeted, key_selector=ks.col("item"), value=Greeted).to("described")

shipments = topology.stream("shipments", key=str, value=Shipment)
shipments.filter(ks.col("sent") > datetime(2020, 9, 13, 12, 30)).to("shipped")
shipments.map_values(
    ks.struct(
        sent=ks.col("sent"),
        day=ks.col("sent").dt.truncate(timedelta(days=1)),
        seen=ks.timestamp.cast(datetime),
        price=ks.col("price"),
        kind=ks.col("kind").str.upper(),
        due=ks.col("due"),
    ),
    value=Arrival,
).to("arrivals")
shipments.flat_map_values(ks.col("parcels"), value=Parcel).filter(ks.col("weight") > 2).to("parcels")
shipments.explode("parcels").to("parcels-of-shipments")

counts = orders.group_by_key().count()
counts.filter(ks.value > 60).to_stream().to("many")
counts.map_values(ks.value * 2, value=int).filter_not(ks.value % 3 == 0).to_stream().to("doubled")
valued = customers.filter(ks.col("level") > 1)
valued.to_stream().to("valued")
customers.map_values(
    ks.struct(name=ks.col("name").str.lower(), level=ks.col("level") + 1), value=Customer
).to_stream().to("raised")
payments.to_table().filter(ks.col("paid") > 50).to_stream().to("last-payments")
orders.join(valued, greeted, value=Greeted).to("greeted-valued")
orders.join(
    orders, ks.struct(amount=ks.left.col("amount"), paid=ks.right.col("amount")), windows=within, value=Either
).to("pairs")
orders.outer_join(
    payments, ks.struct(amount=ks.left.col("amount"), paid=ks.right.col("paid")), windows=within, value=Either
).to("either")
