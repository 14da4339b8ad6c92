"""Changes of a database to a lakehouse: Debezium's events of a table, as a Delta table with the rows of now.

Needs `pip install 'kstreams-dsl[delta]'`.
"""

import os

import msgspec

import kstreams as ks

LAKE = os.environ.get("LAKE", "lake")


class Customer(msgspec.Struct, frozen=True):
    id: int
    name: str
    city: str


config = {"application.id": "cdc-lakehouse", "processing.guarantee": "exactly_once_v2"}
topology = ks.StreamsBuilder()

customers = topology.table(
    "shop.public.customers",
    key=ks.ConnectJson(int, field="id", schemas=False),
    value=ks.Debezium(Customer),
    materialized="customers",
)
customers.to_stream().to(ks.sinks.delta(f"{LAKE}/customers", mode="upsert", key="id"), name="customers-in-delta")
(
    customers.group_by((ks.col("city"), ks.value), key=str)
    .aggregate(customers=ks.len())
    .to_stream()
    .to("customers-by-city")
)
